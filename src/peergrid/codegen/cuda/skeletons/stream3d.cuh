// Updates of a 3D grid, streaming along axis 0.
//
// A thread block takes a tile of ROWS rows and COLUMNS columns and goes through the planes of a piece of the grid. Its
// clock is the plane that the last node of the pipeline makes; a node makes the plane LEAD ahead of it. Planes come from
// memory by asynchronous copies, AHEAD clocks before they are first read, into rings in shared memory. What a node
// makes for later nodes is in rings, too. A thread has the W cells of ROWS_EACH rows one below the other, and keeps in
// registers planes of its own cells: those older than the planes of a ring or, where OWN, all. Then rings are there for
// other threads' cells alone, and columns beside a thread's come from its neighbours in the warp.
//
// Before this text comes `Shape`: the constants above, THREADS of a block (whole warps: the last may have idle ones), KEPT
// (the planes that a thread keeps), UNROLL (clocks in the body of the loop), POLLS (see `Pace`), BARRIER_AT (where a
// barrier is in shared memory, in values), AROUND (the rows and columns around its own cells that a thread keeps, too),
// SPLIT (see `Halves`), PACED (whether blocks keep in step), PERIODIC (whether any axis of the grid is), TENSOR (whether
// planes come by tensor copies, see `Arrivals`), ARRIVALS_AT (where their barriers are), HINTS (whether the L2 cache is to
// keep what is loaded longer than what is stored).
// With it come `planes3d.cuh` and `tensor_copy.cuh`. Behind it come the plan (rings and nodes) and the kernel.

// ---------------------------------------------------------------- a thread of a block
template <class Plan, class N, int r> struct Around;
template <class Plan, class N, class U> struct LayerCell;

template <class Plan> struct Stream : Plan::State {
  static constexpr int ACROSS = Shape::COLUMNS / W;  // threads along a row
  static constexpr int WORKING = ACROSS * Shape::ROWS / Shape::ROWS_EACH;
  static constexpr bool CORRECTED = !Same<typename Plan::Narrow, List<>>::value;  // rings of copies are written to, too

  const Arguments& a;
  const Wraps& wraps;
  const Tensor* const tensors;  // of the fields that rings are filled from
  Arrivals& arrivals;
  const Region tile;  // a copy: memory may be written by anyone
  R* const shared;
  const long long step;
  const int left, top;    // the first cell of the block
  const int row, column;  // of the thread's first cell in the tile; threads of the last warp may have the same as others
  const int ends;         // whether the thread's neighbours in a row are not those in its warp: 1 left, 2 right
  int plane;              // the clock
  bool crossing = false;  // whether the thread may copy cells beyond periodic edges, behind tensor copies
  Place first_cell;       // of the thread, in a layer that is narrow along rows (x -1: none)
  Halves halves;
  Cells kept[Shape::KEPT > 0 ? Shape::KEPT : 1][Shape::ROWS_EACH + 2 * Shape::AROUND];
  R beside[Shape::KEPT > 0 ? Shape::KEPT : 1][Shape::ROWS_EACH + 2 * Shape::AROUND][2];  // left and right; where AROUND

  __device__ __forceinline__ Stream(const Arguments& given, const Wraps& edges, const Tensor* maps, Arrivals& planes,
                                    const Region& box, R* memory)
      : a(given), wraps(edges), tensors(maps), arrivals(planes), tile(box), shared(memory), step(now(given)),
        left(Plan::first(box.lo[2], 2) & ~(W - 1)), top(Plan::first(box.lo[1], 1)),
        row(min(static_cast<int>(threadIdx.x), WORKING - 1) / ACROSS * Shape::ROWS_EACH),
        column(static_cast<int>(threadIdx.x) % ACROSS * W),
        ends((threadIdx.x % 32 == 0 || column == 0 ? 1 : 0) + (threadIdx.x % 32 == 31 || column == Shape::COLUMNS - W ? 2 : 0)),
        plane(box.lo[0] - Plan::EARLY), first_cell{0, -1}, halves(memory) {
    if constexpr (CORRECTED)
      if (static_cast<int>(threadIdx.x) % Plan::SHARE < layer_cells()) first_cell = place_of(threadIdx.x % Plan::SHARE);
  }

  // The W cells of row r of the thread at an offset; PLANE is counted from the clock.
  template <class F, int PLANE, int Y, int X, int r> __device__ __forceinline__ Cells read() const {
    constexpr int MORE = Shape::AROUND, K = F::KEPT_FROM + F::YOUNGEST - PLANE;
    constexpr bool IN_REGISTERS = PLANE <= F::YOUNGEST && PLANE > F::YOUNGEST - F::KEPT && r + Y >= -MORE &&
                                  r + Y < Shape::ROWS_EACH + MORE;
    if constexpr (IN_REGISTERS && X == 0) {
      return kept[K][r + Y + MORE];
    } else if constexpr (IN_REGISTERS && Shape::AROUND && (X == 1 || X == -1)) {
      return shifted<X>(kept[K][r + Y + MORE], beside[K][r + Y + MORE][X > 0]);
    } else if constexpr (IN_REGISTERS && Shape::OWN && (X == 1 || X == -1)) {
      return moved<F, PLANE, X, r + Y>(kept[K][r + Y]);
    } else {
      constexpr int FIRST = (X >= 0 ? X : X - W + 1) / W * W, SHIFT = X - FIRST;
      const R* const from = at<F, PLANE>() + (r + Y) * F::WIDTH + FIRST;
      const Cells low = *reinterpret_cast<const Cells*>(from);
      if constexpr (SHIFT == 0) {
        return low;
      } else {
        const Cells high = *reinterpret_cast<const Cells*>(from + W);
        Cells found;
#pragma unroll
        for (int n = 0; n < W; ++n) found.v[n] = n + SHIFT < W ? low.v[(n + SHIFT) % W] : high.v[(n + SHIFT) % W];
        return found;
      }
    }
  }

  // What lies one column beside: all but one of the cells are the thread's own, that one is a neighbour's. At the ends of
  // a warp and of the tile it is in the ring, if the ring has columns beside the tile; else nobody needs it.
  template <class F, int PLANE, int X, int ROW> __device__ __forceinline__ Cells moved(const Cells& here) const {
    R other;
    if constexpr (X < 0) {
      other = __shfl_up_sync(0xffffffffu, here.v[W - 1], 1);
      if constexpr (F::LEFT > 0)
        if (ends & 1) other = at<F, PLANE>()[ROW * F::WIDTH - 1];
    } else {
      other = __shfl_down_sync(0xffffffffu, here.v[0], 1);
      if constexpr (F::RIGHT > 0)
        if (ends & 2) other = at<F, PLANE>()[ROW * F::WIDTH + W];
    }
    return shifted<X>(here, other);
  }
  template <int X> static __device__ __forceinline__ Cells shifted(const Cells& here, R other) {
    Cells found;
#pragma unroll
    for (int n = 0; n < W; ++n) found.v[n] = n + X < 0 || n + X >= W ? other : here.v[(n + X + W) % W];
    return found;
  }

  // Where a ring has the thread's first cell of a plane.
  template <class F, int PLANE> __device__ __forceinline__ R* at() const {
    const int slot = this->F::Slots::slot[F::Slots::index(PLANE)];
    return shared + (slot + (row * F::WIDTH + column)) + (F::START + F::ABOVE * F::WIDTH + F::LEFT);
  }

  // The cells of the tile and `beyond` it that there are of a field, along an axis.
  template <class F> __device__ __forceinline__ int lowest(int axis, int beyond = 0) const {
    return max(max(tile.lo[axis] + beyond, a.lo[axis] + F::REACH::lo(axis)), F::HOME::lo(axis));
  }
  template <class F> __device__ __forceinline__ int highest(int axis, int beyond = 0) const {
    return min(min(tile.hi[axis] + beyond, a.hi[axis] + F::REACH::hi(axis)), F::HOME::hi(axis));
  }
  // Planes have fewer than 2^32 bytes.
  static __device__ __forceinline__ long long plane_at(const Field& field, int z) {
    return static_cast<long long>(z) * static_cast<int>(field.pitch[0]);
  }

  // Whether there is a plane, counted from the clock, that anybody reads.
  template <class F> __device__ __forceinline__ bool there(int ahead) const {
    return plane + ahead >= lowest<F>(0, F::NEED::lo(0)) && plane + ahead < highest<F>(0, F::NEED::hi(0));
  }
  // Begin to copy a plane into a slot of its ring.
  template <class F> __device__ __forceinline__ void fetch(int ahead, int slot) const {
    if (!there<F>(ahead)) return;
    const int z = plane + ahead;
    const R* const field = block_of<F::FIELD, F::VERSION>(a) + plane_at(a.fields[F::FIELD], wraps(z, 0));
    const char* const from = reinterpret_cast<const char*>(field + this->Copies<F>::corner);
    R* const to = shared + (slot + static_cast<int>(threadIdx.x) * W) + F::START;
#pragma unroll
    for (int k = 0; k < Copies<F>::EACH; ++k) {
      if (!Copies<F>::any(k)) continue;
      pg_fetch_line(to + k * Shape::THREADS * W, from + this->Copies<F>::from[k]);
    }
  }

  template <class F> __device__ __forceinline__ void place() {
    const int first = lowest<F>(1, F::NEED::lo(1)), last = highest<F>(1, F::NEED::hi(1)) - 1;
    this->Copies<F>::place(left - F::LEFT, top - F::ABOVE, first, last, static_cast<int>(a.fields[F::FIELD].pitch[1]), wraps);
  }
  // The plane, or one that counts for a node: profiles have no values for others.
  template <class N> __device__ __forceinline__ int counted(int z) const {
    return min(max(z, tile.lo[0] + N::NEED::lo(0)), tile.hi[0] + N::NEED::hi(0) - 1);
  }
  // Slots are counted from `nothing`, a 0 that the compiler cannot know: where it keeps them in uniform registers, NVRTC
  // 13.0 encodes copies with a hint to the L2 cache wrongly (`LDGSTS [R+UR0], desc[UR1]`, an illegal instruction).
  __device__ __forceinline__ int nothing() const { return tile.variant; }

  template <class... P> __device__ __forceinline__ void start(List<P...>) { (this->P::start(nothing()), ...); }

  template <class... P> __device__ __forceinline__ void load_profiles(List<P...>) {
    (this->P::load(a, top + row, left + column), ...);
  }

  template <class... F> __device__ __forceinline__ void begin(List<F...> all) {
    if constexpr (Shape::TENSOR) {
      begin_tensors(all);
    } else {
      (place<F>(), ...);
      (first_planes<F>(), ...);
      pg_fetched();
#pragma unroll
      for (int k = 1; k < Shape::AHEAD; ++k) {
        (fetch<F>(F::NEWEST + k, nothing() + F::Slots::index(F::NEWEST + k) * F::SIZE), ...);
        pg_fetched();
      }
    }
    if constexpr (Shape::SPLIT) {
      settle();
      __syncthreads();
    }
  }
  template <class F> __device__ __forceinline__ void first_planes() const {
#pragma unroll 1
    for (int p = F::OLDEST; p <= F::NEWEST; ++p) fetch<F>(p, nothing() + F::Slots::index(p) * F::SIZE);
  }
  template <class... F> __device__ __forceinline__ void fetch_next(List<F...>) const {
    (fetch<F>(F::NEWEST + Shape::AHEAD, this->F::Slots::slot[F::Slots::index(F::NEWEST + Shape::AHEAD)]), ...);
    pg_fetched();
  }

  // The planes of this clock are there, those before are read: the copy of another one begins. Behind tensor copies, cells
  // beyond periodic edges follow the rest of their plane, some clocks before it is read (see `Arrivals`).
  template <class Fields> __device__ __forceinline__ void next_planes(Fields fields) const {
    if constexpr (Shape::TENSOR) arrivals.await();
    settle();
    __syncthreads();
    ask_next(fields);
    fetch_beyond(fields);
  }
  // Copies of the thread's own that others read behind the next barrier are there.
  __device__ __forceinline__ void settle() const {
    if constexpr (Shape::TENSOR) {
      if (crossing) pg_await<0>();
      if (crossing || CORRECTED) pg_written();
    } else {
      constexpr int LATER = Shape::AHEAD - 1 - Shape::SPLIT;
      pg_await<(LATER > 0 ? LATER : 0)>();
    }
  }
  template <class Fields> __device__ __forceinline__ void ask_next(Fields fields) const {
    if constexpr (!Shape::TENSOR) fetch_next(fields);
    else if (threadIdx.x == 0) ask_planes(fields);
  }

  // The same by tensor copies.
  template <class... F> __device__ __forceinline__ void begin_tensors(List<F...>) {
    if (threadIdx.x == 0) {
      unsigned long long* barrier = arrivals.expect((0 + ... + first_bytes<F>()));
      (ask_first<F>(barrier), ...);
      for (int k = 1; k < Shape::AHEAD; ++k) {
        barrier = arrivals.expect((0 + ... + bytes<F>(F::NEWEST + k)));
        (ask<F>(F::NEWEST + k, F::Slots::index(F::NEWEST + k) * F::SIZE, barrier), ...);
      }
    }
    if constexpr (Shape::PERIODIC) {
      crossing = (0 | ... | place_beyond<F>());
      for (int k = 0; k < Arrivals::EARLY; ++k) arrivals.await();
      (first_beyond<F>(), ...);
      pg_fetched();
    }
  }
  template <class F> __device__ __forceinline__ bool place_beyond() {
    const int left = this->left - F::LEFT, top = this->top - F::ABOVE;
    const int low = max(top, lowest<F>(1, F::NEED::lo(1))), bottom = min(top + F::HEIGHT, highest<F>(1, F::NEED::hi(1)));
    const int right = min(left + F::WIDTH, (highest<F>(2, F::NEED::hi(2)) + W - 1) & ~(W - 1));
    return this->Beyond<F>::place(left, top, low, bottom, right, static_cast<int>(a.fields[F::FIELD].pitch[1]), wraps);
  }
  template <class F> __device__ __forceinline__ void first_beyond() const {
    for (int p = F::OLDEST; p < F::NEWEST + Arrivals::EARLY; ++p) fetch_beyond<F>(p, F::Slots::index(p) * F::SIZE);
  }
  template <class... F> __device__ __forceinline__ void fetch_beyond(List<F...>) const {
    constexpr int EARLY = Arrivals::EARLY;
    if constexpr (Shape::TENSOR && Shape::PERIODIC) {
      if (!crossing) return;
      (fetch_beyond<F>(F::NEWEST + EARLY, this->F::Slots::slot[F::Slots::index(F::NEWEST + EARLY)]), ...);
      pg_fetched();
    }
  }
  template <class F> __device__ __forceinline__ void fetch_beyond(int ahead, int slot) const {
    if (!there<F>(ahead)) return;
    const R* const from = block_of<F::FIELD, F::VERSION>(a) + plane_at(a.fields[F::FIELD], wraps(plane + ahead, 0));
#pragma unroll
    for (int k = 0; k < Beyond<F>::EACH; ++k)
      if (this->Beyond<F>::from[k] != NOTHING)
        pg_fetch_line(shared + slot + F::START + this->Beyond<F>::to(k), from + this->Beyond<F>::from[k]);
  }
  template <class... F> __device__ __forceinline__ void ask_planes(List<F...>) const {
    unsigned long long* const barrier = arrivals.expect((0 + ... + bytes<F>(F::NEWEST + Shape::AHEAD)));
    (ask<F>(F::NEWEST + Shape::AHEAD, this->F::Slots::slot[F::Slots::index(F::NEWEST + Shape::AHEAD)], barrier), ...);
  }
  template <class F> __device__ __forceinline__ unsigned bytes(int ahead) const {
    return there<F>(ahead) ? F::WIDTH * F::HEIGHT * sizeof(R) : 0;
  }
  template <class F> __device__ __forceinline__ unsigned first_bytes() const {
    unsigned found = 0;
    for (int p = F::OLDEST; p <= F::NEWEST; ++p) found += bytes<F>(p);
    return found;
  }
  template <class F> __device__ __forceinline__ void ask_first(unsigned long long* barrier) const {
    for (int p = F::OLDEST; p <= F::NEWEST; ++p) ask<F>(p, F::Slots::index(p) * F::SIZE, barrier);
  }
  template <class F> __device__ __forceinline__ void ask(int ahead, int slot, unsigned long long* barrier) const {
    if (!there<F>(ahead)) return;
    const Tensor& from = tensors[F::NUMBER];
    constexpr int EACH = 8 / sizeof(R);  // values of an element
    pg_copy_box<Shape::HINTS>(shared + slot + F::START, from.map[F::VERSION == TARGET ? a.target : a.source],
                (left - F::LEFT - from.first[2]) / EACH, top - F::ABOVE - from.first[1],
                wraps(plane + ahead, 0) - from.first[0], barrier);
  }
  // All copies that were asked for have come.
  __device__ __forceinline__ void end() const {
    if constexpr (Shape::TENSOR)
      for (int k = Arrivals::EARLY; k < Shape::AHEAD; ++k) arrivals.await();
    pg_await<0>();
  }

  // What threads keep of a plane: of that which leaves a ring's reach or, where OWN, of that which has come.
  template <class F> __device__ __forceinline__ void hold() {
    if constexpr (F::KEPT > 0) {
#pragma unroll
      for (int k = F::KEPT - 1; k > 0; --k)
#pragma unroll
        for (int r = 0; r < Shape::ROWS_EACH + 2 * Shape::AROUND; ++r) {
          kept[F::KEPT_FROM + k][r] = kept[F::KEPT_FROM + k - 1][r];
          if constexpr (Shape::AROUND > 0)
            for (int x = 0; x < 2; ++x) beside[F::KEPT_FROM + k][r][x] = beside[F::KEPT_FROM + k - 1][r][x];
        }
      if constexpr (!Shape::OWN) take<F, F::OLDEST>();
    }
  }
  template <class F, int PLANE> __device__ __forceinline__ void take() {
    constexpr int UP = F::ABOVE < Shape::AROUND ? F::ABOVE : Shape::AROUND;
    constexpr int DOWN = F::BELOW < Shape::AROUND ? F::BELOW : Shape::AROUND;
#pragma unroll
    for (int r = -UP; r < Shape::ROWS_EACH + DOWN; ++r) {
      const R* const from = at<F, PLANE>() + r * F::WIDTH;
      kept[F::KEPT_FROM][r + Shape::AROUND] = *reinterpret_cast<const Cells*>(from);
      if constexpr (Shape::AROUND > 0 && F::LEFT > 0) beside[F::KEPT_FROM][r + Shape::AROUND][0] = from[-1];
      if constexpr (Shape::AROUND > 0 && F::RIGHT > 0) beside[F::KEPT_FROM][r + Shape::AROUND][1] = from[W];
    }
  }
  template <class F> __device__ __forceinline__ void take_new() {
    if constexpr (Shape::OWN && F::KEPT > 0) take<F, F::NEWEST>();
  }
  template <class... F> __device__ __forceinline__ void take_all(List<F...>) { (take_new<F>(), ...); }
  template <class... F> __device__ __forceinline__ void hold_all(List<F...>) { (hold<F>(), ...); }

  template <class... N> __device__ __forceinline__ void make_all(List<N...>) { (make<N>(), ...); }

  // The same where SPLIT. Slots are free for planes that others have read at the clock before. Copies by threads are there
  // before their warp arrives, two clocks before they are read; for tensor copies each thread waits by itself. The last
  // node works after its warp has arrived: where it reads what the first one makes, others may do so of a clock that the
  // first would write over, if it did not wait.
  template <class Fields, class First, class... N>
  __device__ __forceinline__ void make_apart(Fields fields, List<First, N...>) {
    if constexpr (Shape::TENSOR) arrivals.await();
    fetch_beyond(fields);
    take_all(fields);
    if constexpr (sizeof...(N) == 1) halves.await();
    make<First>();
    if constexpr (sizeof...(N) > 1) halves.await();
    ask_next(fields);
    make_later<N...>();
  }
  template <class N, class... More> __device__ __forceinline__ void make_later() {
    if constexpr (sizeof...(More) == 0) {
      settle();
      halves.arrive();
    }
    make<N>();
    if constexpr (sizeof...(More) > 0) make_later<More...>();
  }
  // One node of the pipeline: its plane at this clock.
  template <class N> __device__ __forceinline__ void make() {
    if constexpr (N::BARRIER) __syncthreads();  // what other threads made at this clock is read
    if constexpr (Same<typename N::Corrections, List<>>::value) {
      make_usual<N>();
    } else {
      const int count = layer_cells();
      R own[N::OWN];
      if (count > 0 && first_cell.x >= 0 && counts<N>(first_cell)) load_cell<N>(first_cell, own, typename N::Corrections{});
      make_usual<N>();
      if (count > 0) {
        __syncthreads();  // what the usual updates made is there
        correct_layers<N>(own, count);
      }
    }
  }
  template <class N> __device__ __forceinline__ void make_usual() {
    if (!Shape::OWN && WORKING < Shape::THREADS && threadIdx.x >= WORKING) return;
    if (!Shape::OWN && N::SLOW_AT_ZERO && !works<N>()) return;  // rings have zeros beyond the grid
    Cells made[Shape::ROWS_EACH][N::VALUES];
    update<N, 0>(made);
    keep_all<N>(made, typename N::Makes{});
    if constexpr (!Same<typename N::Gives, List<>>::value)
      if (beside_layers(typename Plan::Narrow{})) give<N>(made, typename N::Gives{});
  }
  template <class N, int r>
  __device__ __forceinline__ void update(Cells (&made)[Shape::ROWS_EACH][N::VALUES]) const {
    N::update(Around<Plan, N, r>{*this}, a, step, made[r]);
    if constexpr (r + 1 < Shape::ROWS_EACH) update<N, r + 1>(made);
  }

  // Corrections change what the usual updates made, in layers that are narrow along rows, as absorbers at the ends of rows:
  // in place, in a ring and in memory. Each cell of these layers in the tile has a thread for each field that a node
  // corrects. A thread asks for what its first cell needs of memory before the usual updates.
  __device__ __forceinline__ int layer_cells() const {
    return columns_of_layers(typename Plan::Narrow{}) * Shape::ROWS;
  }
  template <class... C> __device__ __forceinline__ int columns_of_layers(List<C...>) const {
    return (0 + ... + columns_of<C>());
  }
  template <class C> __device__ __forceinline__ int columns_of() const {
    return C::FROM < left + Shape::COLUMNS && C::END > left ? C::END - C::FROM : 0;
  }
  __device__ __forceinline__ Place place_of(int number) const {
    const int columns = columns_of_layers(typename Plan::Narrow{});
    Place found{top + number / columns, number % columns};
    column_of(found.x, typename Plan::Narrow{});
    return found;
  }
  template <class C, class... More> __device__ __forceinline__ void column_of(int& x, List<C, More...>) const {
    const int columns = columns_of<C>();
    if (x < columns) {
      x += C::FROM;
    } else if constexpr (sizeof...(More) > 0) {
      x -= columns;
      column_of(x, List<More...>{});
    }
  }
  // Whether a thread has cells of the tile, or as far beyond it as others need.
  template <class N> __device__ __forceinline__ bool works() const {
    typedef typename N::NEED Need;
    const int z = plane + N::LEAD, y = top + row, x = left + column;
    return z >= tile.lo[0] + Need::lo(0) && z < tile.hi[0] + Need::hi(0) && y + Shape::ROWS_EACH > tile.lo[1] + Need::lo(1) &&
           y < tile.hi[1] + Need::hi(1) && x + W > tile.lo[2] + Need::lo(2) && x < tile.hi[2] + Need::hi(2);
  }
  // Whether a cell is one of the tile, or as far beyond it as others need.
  template <class N> __device__ __forceinline__ bool counts(const Place& at) const {
    typedef typename N::NEED Need;
    const int z = plane + N::LEAD;
    return z >= tile.lo[0] + Need::lo(0) && z < tile.hi[0] + Need::hi(0) && at.y >= tile.lo[1] + Need::lo(1) &&
           at.y < tile.hi[1] + Need::hi(1) && at.x >= tile.lo[2] + Need::lo(2) && at.x < tile.hi[2] + Need::hi(2);
  }
  template <class N, class U> __device__ __forceinline__ bool corrects(const Place& at) const {
    return threadIdx.x / Plan::SHARE == U::NUMBER && U::BOX::has(plane + N::LEAD, at.y, at.x);
  }
  template <class N, class U, class... More>
  __device__ __forceinline__ void load_cell(const Place& at, R* own, List<U, More...>) const {
    if (corrects<N, U>(at)) LayerCell<Plan, N, U>{*this, at, own}.load();
    if constexpr (sizeof...(More) > 0) load_cell<N>(at, own, List<More...>{});
  }
  template <class N, class U, class... More>
  __device__ __forceinline__ void correct_cell(const Place& at, R* own, List<U, More...>) const {
    if (corrects<N, U>(at)) LayerCell<Plan, N, U>{*this, at, own}.correct();
    if constexpr (sizeof...(More) > 0) correct_cell<N>(at, own, List<More...>{});
  }
  template <class N> __device__ __forceinline__ void correct_layers(R* own, int count) const {
    typedef typename N::Corrections Corrections;
    if (first_cell.x >= 0 && counts<N>(first_cell)) correct_cell<N>(first_cell, own, Corrections{});
    for (int number = threadIdx.x % Plan::SHARE + Plan::SHARE; number < count; number += Plan::SHARE) {
      const Place at = place_of(number);
      if (!counts<N>(at)) continue;
      load_cell<N>(at, own, Corrections{});
      correct_cell<N>(at, own, Corrections{});
    }
  }
  template <class N, class... G>
  __device__ __forceinline__ void give(const Cells (&made)[Shape::ROWS_EACH][N::VALUES], List<G...>) const {
    (give<N>(made, G{}), ...);
  }
  template <class N, int PLACE, class Ring>
  __device__ __forceinline__ void give(const Cells (&made)[Shape::ROWS_EACH][N::VALUES], Given<PLACE, Ring>) const {
#pragma unroll
    for (int r = 0; r < Shape::ROWS_EACH; ++r)
      *reinterpret_cast<Cells*>(at<Ring, N::LEAD>() + r * Ring::WIDTH) = made[r][PLACE];
  }
  template <class... C> __device__ __forceinline__ bool beside_layers(List<C...>) const {
    return ((left + column + W > C::FROM && left + column < C::END) || ...);
  }

  // The values that cells outside an update's box keep, from row r on.
  template <class N, class M, int r>
  __device__ __forceinline__ void keep_columns(Cells (&made)[Shape::ROWS_EACH][N::VALUES]) const {
    const int x = left + column;
    const Cells old = read<typename M::OLD, N::LEAD, 0, 0, r>();
#pragma unroll
    for (int n = 0; n < W; ++n)
      if (M::outside(n) && (x + n < M::BOX::lo(2) || x + n >= M::BOX::hi(2))) made[r][M::N].v[n] = old.v[n];
    if constexpr (r + 1 < Shape::ROWS_EACH) keep_columns<N, M, r + 1>(made);
  }
  template <class N, class M, int r>
  __device__ __forceinline__ void keep_rows(Cells (&made)[Shape::ROWS_EACH][N::VALUES]) const {
    const int z = plane + N::LEAD, y = top + row + r;
    if (z < M::BOX::lo(0) || z >= M::BOX::hi(0) || y < M::BOX::lo(1) || y >= M::BOX::hi(1))
      made[r][M::N] = read<typename M::OLD, N::LEAD, 0, 0, r>();
    if constexpr (r + 1 < Shape::ROWS_EACH) keep_rows<N, M, r + 1>(made);
  }
  template <class N, class M>
  __device__ __forceinline__ void keep(Cells (&made)[Shape::ROWS_EACH][N::VALUES]) {
    typedef typename M::RING Ring;
    const int z = plane + N::LEAD;
    int y = top + row, x = left + column;
    if constexpr (!Same<typename M::OLD, void>::value) {
      keep_columns<N, M, 0>(made);
      const bool planes = z >= M::BOX::lo(0) && z < M::BOX::hi(0);
      if (!planes || y < M::BOX::lo(1) || y + Shape::ROWS_EACH > M::BOX::hi(1)) keep_rows<N, M, 0>(made);
    }
#pragma unroll
    for (int r = 0; r < Shape::ROWS_EACH; ++r) {
      const Cells& value = made[r][M::N];
      if constexpr (!Same<Ring, void>::value) {
        if constexpr (Shape::OWN && Ring::KEPT > 0) kept[Ring::KEPT_FROM][r + Shape::AROUND] = value;
        if constexpr (Ring::PLANES > 0) {  // where a thread has its own cells, others need those at the border
          const bool border = r < Ring::BELOW || r >= Shape::ROWS_EACH - Ring::ABOVE || Ring::LEFT || Ring::RIGHT;
          if (!Shape::OWN || border) *reinterpret_cast<Cells*>(at<Ring, N::LEAD>() + r * Ring::WIDTH) = value;
        }
      }
    }
    if constexpr (M::FIELD >= 0) {
      if (z < lowest<M>(0) || z >= highest<M>(0)) return;
      const Field& field = a.fields[M::FIELD];
      pg_again(y);
      pg_again(x);
      const int pitch = static_cast<int>(field.pitch[1]), first = lowest<M>(1) - y, end = highest<M>(1) - y;
      const int low = lowest<M>(2) - x, high = highest<M>(2) - x;
      const unsigned line = static_cast<unsigned>(pitch) * sizeof(R);
      char* const to = reinterpret_cast<char*>(block_of<M::FIELD, M::VERSION>(a) + plane_at(field, z) + (y * pitch + x));
      const bool beside = changed<M>(typename N::Corrections{}) && beside_layers(typename Plan::Narrow{});
      if (low <= 0 && high >= W && !beside) {
#pragma unroll
        for (int r = 0; r < Shape::ROWS_EACH; ++r)
          if (r >= first && r < end) store(to + r * line, made[r][M::N]);
      } else if (low < W && high > 0) {
#pragma unroll
        for (int r = 0; r < Shape::ROWS_EACH; ++r) {
          const unsigned layers = of_layers<M>(z, top + row + r, typename N::Corrections{});
#pragma unroll
          for (int n = 0; n < W; ++n)
            if (r >= first && r < end && n >= low && n < high && !(layers >> n & 1))
              reinterpret_cast<R*>(to + r * line)[n] = made[r][M::N].v[n];
        }
      }
    }
  }
  // What corrections change, they alone store: kernels of one step that work at the same time make and read some of these
  // cells, too, and must never find a value that is not the last one.
  template <class M, class... U> static __device__ __forceinline__ constexpr bool changed(List<U...>) {
    return (... || changes<M>(typename U::Makes{}));
  }
  // Those of a thread's cells in a row that corrections change: a bit for each. Where these have all rows and planes of the
  // usual update, cells in others keep what is there.
  template <class M, class... U> __device__ __forceinline__ unsigned of_layers(int z, int y, List<U...>) const {
    return (0u | ... | of_layer<M, U>(z, y));
  }
  template <class M, class U> __device__ __forceinline__ unsigned of_layer(int z, int y) const {
    typedef typename U::BOX Box;
    if constexpr (!changes<M>(typename U::Makes{})) return 0;
    constexpr bool ALL = Box::lo(0) <= M::BOX::lo(0) && Box::hi(0) >= M::BOX::hi(0) && Box::lo(1) <= M::BOX::lo(1) &&
                         Box::hi(1) >= M::BOX::hi(1);
    if (!ALL && (z < Box::lo(0) || z >= Box::hi(0) || y < Box::lo(1) || y >= Box::hi(1))) return 0;
    return before(Box::hi(2)) & ~before(Box::lo(2));
  }
  __device__ __forceinline__ unsigned before(int end) const { return (1u << min(max(end - left - column, 0), W)) - 1; }
  static __device__ __forceinline__ void store(char* to, const Cells& value) {
    if constexpr (Shape::HINTS) pg_store_once(to, value);
    else *reinterpret_cast<Cells*>(to) = value;
  }
  template <class N, class... M>
  __device__ __forceinline__ void keep_all(Cells (&made)[Shape::ROWS_EACH][N::VALUES], List<M...>) {
    (keep<N, M>(made), ...);
  }

  template <class... P> __device__ __forceinline__ void advance(List<P...>) { (this->P::next(), ...); }
};

// What an update is given: the values around the thread's cells in its row r.
template <class Plan, class N, int r> struct Around {
  static constexpr int LEAD = N::LEAD;
  const Stream<Plan>& stream;

  template <class F, int Z, int Y, int X> __device__ __forceinline__ Cells operator()(Read<F, Z, Y, X>) const {
    return stream.template read<F, LEAD + Z, Y, X, r>();
  }
  template <int FIELD, int OFFSET> __device__ __forceinline__ R operator()(Along<FIELD, 0, OFFSET>) const {
    return __ldg(stream.a.fields[FIELD].slot[0] + stream.template counted<N>(stream.plane + LEAD) + OFFSET);
  }
  template <int FIELD, int OFFSET> __device__ __forceinline__ R operator()(Along<FIELD, 1, OFFSET>) const {
    return __ldg(stream.a.fields[FIELD].slot[0] + stream.top + stream.row + r + OFFSET);
  }
  template <int FIELD, int OFFSET> __device__ __forceinline__ Cells operator()(Along<FIELD, 2, OFFSET>) const {
    Cells found;
#pragma unroll
    for (int n = 0; n < W; ++n)
      found.v[n] = __ldg(stream.a.fields[FIELD].slot[0] + stream.left + stream.column + n + OFFSET);
    return found;
  }
  template <int FIELD, int OFFSET> __device__ __forceinline__ R operator()(Profile<FIELD, 1, OFFSET>) const {
    return stream.Profile<FIELD, 1, OFFSET>::value[r];
  }
  template <int FIELD, int OFFSET> __device__ __forceinline__ Cells operator()(Profile<FIELD, 2, OFFSET>) const {
    return stream.Profile<FIELD, 2, OFFSET>::value;
  }
};

#include "layer_cell.cuh"
// ---------------------------------------------------------------- tiles
// UNROLL clocks, of which n are done. Clocks behind the last plane of a tile make nothing that anybody reads.
template <int n, class Plan> __device__ __forceinline__ void stream_planes(Stream<Plan>& stream, Pacer& pacer) {
  pacer.before();
  if constexpr (Shape::SPLIT) {
    stream.make_apart(typename Plan::Fields{}, typename Plan::Nodes{});
  } else {
    stream.next_planes(typename Plan::Fields{});
    stream.take_all(typename Plan::Fields{});
    stream.make_all(typename Plan::Nodes{});
  }
  stream.hold_all(typename Plan::Rings{});
  stream.advance(typename Plan::Counts{});
  ++stream.plane;
  if constexpr (n + 1 < Shape::UNROLL) stream_planes<n + 1>(stream, pacer);
}

template <class Plan>
__device__ __forceinline__ void stream_tile(const Arguments& a, const Region& tile, Pacer& pacer, const Wraps& wraps,
                                            const Tensor* tensors, Arrivals& arrivals, R* shared) {
  Stream<Plan> stream(a, wraps, tensors, arrivals, tile, shared);
  stream.start(typename Plan::Counts{});
  stream.load_profiles(typename Plan::Profiles{});
  stream.begin(typename Plan::Fields{});
#pragma unroll 1
  while (stream.plane < stream.tile.hi[0]) stream_planes<0>(stream, pacer);
  stream.end();
}

// Blocks that keep in step are all at work at once, each on several tiles; others have one each.
template <class Plan>
__device__ __forceinline__ void stream_tiles(const Arguments& a, const Pace& pace, const Wraps& wraps, const Awaited& awaited,
                                             const Tensor* tensors, R* shared) {
  Pacer pacer(pace);
  Arrivals arrivals(shared);
  stream_tile<Plan>(a, a.regions[blockIdx.x], pacer, wraps, tensors, arrivals, shared);
  awaited.done(blockIdx.x);
  if constexpr (Shape::PACED) {
#pragma unroll 1
    for (int n = blockIdx.x + gridDim.x; n < a.count; n += gridDim.x) {
      __syncthreads();  // the tile before is read
      stream_tile<Plan>(a, a.regions[n], pacer, wraps, tensors, arrivals, shared);
      awaited.done(n);
    }
    pacer.end();
  }
}
