// Several time steps of a 2D problem in one pass over memory: tiles in which each cell is tested for its updates.
//
// They serve what `stream2d.cuh` does not: the grid's edges, confined updates, sources, receivers. A thread block
// streams down the rows of a tile; warp t makes step t, the last warp loads rows, AHEAD of the others. Rows wait in
// rings in shared memory, of every field and step one (see `Ring`), those of coefficients in one for all steps; a stage
// makes the row that lies LAG rows behind, a step LAG rows behind the step before. Between rows there is a barrier of
// the block.
//
// A plan says, for one problem and shape, what is in capitals here, and of each stage:
//   ROWS_READ  the rows that it reads: field, offset, ring (-1: what lies in memory is read there);
//   WRITES     what it writes: field, ring, the place of its row before among ROWS_READ, whether it is final;
//   BOXES      where its updates apply (see `UpdateBox`); update, the new values of a cell.

#include "numbers.cuh"
#include "bounds.cuh"
#include "places.cuh"

// The rows of a field: of step t the `rows` that begin at `start + t * stride`; where `first_rows` is not 0, those of
// step 0, which were loaded, at `first`, and of step t at `start + (t - 1) * stride`.
struct Ring { int start, stride, rows, first, first_rows; };

template <class Plan, class Stage> struct StageRow {
  const R* from[Stage::READS];
  R* to[Stage::WRITTEN];
  bool in[Stage::UPDATES ? Stage::UPDATES : 1];
};

// A cell of a row, as an update sees it.
template <class Tile, class Stage> struct BoundaryCell {
  const Tile& tile;
  const Arguments& a;
  const StageRow<typename Tile::Plan, Stage>& row;
  const int y, c;

  template <int FIELD, int I> __device__ static constexpr int place() {
    for (int k = 0; k < Stage::READS; ++k)
      if (Stage::ROWS_READ[k][0] == FIELD && Stage::ROWS_READ[k][1] == I && Stage::ROWS_READ[k][2] >= 0) return k;
    return -1;
  }
  template <int FIELD, int I, int J> __device__ __forceinline__ R at() const {
    constexpr int k = place<FIELD, I>();
    if constexpr (k < 0)
      return a.fields[FIELD].slot[0][nearest<FIELD, 0, I>(y) * a.fields[FIELD].pitch[0] + nearest<FIELD, 1, J>(tile.x0 + c)];
    else if constexpr (J != 0 && GRID_MIRRORS[1])
      return row.from[k][mirrored<1>(tile.x0 + c + J) - tile.x0];
    else
      return row.from[k][c + J];
  }
  template <int FIELD, int AXIS, int I, int J> __device__ __forceinline__ R profile() const {
    using Plan = typename Tile::Plan;
    return tile.s[Plan::PROFILE_START[FIELD] + (AXIS == 0 ? y - tile.first + Plan::ROWS_BESIDE + I : c + Plan::PAD + J)];
  }
  template <int FIELD, int AXIS, int OFFSET> __device__ __forceinline__ int nearest(int at) const {
    return pg_clamp(mirrored<AXIS>(at + OFFSET), known_from<FIELD, AXIS>(a), known_to<FIELD, AXIS>(a));
  }
  __device__ __forceinline__ R signal(int number) const { return sample(a.signals[number], tile.step); }
};

// Without norms; with them: `BoundarySums`.
struct NoRowSums {
  template <class Tile> __device__ __forceinline__ void add(const Tile&, const R*, int) {}
};

template <class Given, class Sums = NoRowSums> struct Boundary2D {
  using Plan = Given;
  static constexpr int STEPS = Plan::STEPS;

  const Arguments& a;
  const Region& tile;
  R* const s;
  const int source, target, lane, t, y0, y1, c0, c1, x0, first, last, width;
  const long long step;
  Sums sums;
  unsigned here;  // a bit for each confined field that the tile touches

  __device__ __forceinline__ Boundary2D(const Arguments& arguments, const Region& region, int from, int to,
                                        long long step0, unsigned char* shared, const Sums& zero = {})
      : a(arguments),
        tile(region),
        s(reinterpret_cast<R*>(shared)),
        source(from),
        target(to),
        lane(threadIdx.x & 31),
        t(threadIdx.x >> 5),
        y0(tile.lo[0]),
        y1(tile.hi[0]),
        c0(tile.lo[1]),
        c1(tile.hi[1]),
        x0(GRID_WRAPS[1] ? c0 - Plan::LEFT : max(c0 - Plan::LEFT, 0)),
        first(GRID_WRAPS[0] ? y0 - Plan::ABOVE : max(y0 - Plan::ABOVE, 0)),
        last(GRID_WRAPS[0] ? y1 + Plan::BELOW : min(y1 + Plan::BELOW, GRID_SHAPE[0])),
        width(min(Plan::WIDTH, (GRID_WRAPS[1] ? c1 + Plan::RIGHT : min(c1 + Plan::RIGHT, GRID_SHAPE[1])) - x0)),
        step(step0 + t),
        sums(zero),
        here(0) {
    touch(UpTo<FIELD_COUNT>{});
  }
  template <int... FIELD> __device__ __forceinline__ void touch(Numbers<FIELD...>) { (touch_one<FIELD>(), ...); }
  template <int FIELD> __device__ __forceinline__ void touch_one() {
    if constexpr (CONFINED[FIELD] != 0)
      if (first < BOX[FIELD][0][1] && last > BOX[FIELD][0][0] && x0 < BOX[FIELD][1][1] && x0 + width > BOX[FIELD][1][0])
        here |= CONFINED[FIELD];
  }
  template <int FIELD> __device__ __forceinline__ bool has() const {
    return CONFINED[FIELD] == 0 || (here & CONFINED[FIELD]);
  }

  // ------------------------------ what is loaded
  template <int... FIELD> __device__ __forceinline__ void load_profiles(Numbers<FIELD...>) {
    (load_profile<FIELD>(), ...);
    if constexpr (sizeof...(FIELD) > 0) __syncthreads();
  }
  template <int FIELD> __device__ __forceinline__ void load_profile() {
    constexpr int axis = PROFILE_AXIS[FIELD], count = axis == 0 ? Plan::MOST_ROWS + 2 * Plan::ROWS_BESIDE : Plan::STRIDE;
    const int begin = axis == 0 ? first - Plan::ROWS_BESIDE : x0 - Plan::PAD;
    for (int i = threadIdx.x; i < count; i += 32 * (STEPS + 1))
      s[Plan::PROFILE_START[FIELD] + i] = coefficient<FIELD, axis>(a, mirrored<axis>(begin + i));
  }
  template <int... K> __device__ __forceinline__ void load_rows(int row, Numbers<K...>) {
    (load_row<K>(row), ...);
    pg_fetched();
  }
  // A row of a field; zero where there is no such cell.
  template <int K> __device__ __forceinline__ void load_row(int row) {
    constexpr int field = Plan::LOADS[K][0], start = Plan::LOADS[K][1], rows = Plan::LOADS[K][2];
    if (!has<field>()) return;
    for (int c = lane; c < width; c += 32) {
      R* const to = s + start + Plan::PAD + pg_place<rows>(row) * Plan::STRIDE + c;
      const int x = x0 + c;
      if (row >= known_from<field, 0>(a) && row < known_to<field, 0>(a) && x >= known_from<field, 1>(a) &&
          x < known_to<field, 1>(a))
        pg_fetch<sizeof(R)>(to, a.fields[field].slot[STATE[field] ? source : 0] + (row * a.fields[field].pitch[0] + x));
      else
        *to = R(0);
    }
  }

  // ------------------------------ stages
  template <int RING> __device__ __forceinline__ R* row_of(int row) const {
    constexpr Ring ring = Plan::RINGS[RING];
    if constexpr (ring.first_rows != 0)
      return s + (t ? ring.start + (t - 1) * ring.stride : ring.first) +
             (t ? pg_place<ring.rows>(row) : pg_place<ring.first_rows>(row)) * Plan::STRIDE + Plan::PAD;
    else
      return s + (ring.start + t * ring.stride) + pg_place<ring.rows>(row) * Plan::STRIDE + Plan::PAD;
  }
  template <int... NUMBER> __device__ __forceinline__ void stages(int r, Numbers<NUMBER...>) {
    (stage<typename Plan::template Stage<NUMBER>>(r), ...);
  }
  template <class Stage> __device__ __forceinline__ void stage(int r) {
    const int y = r - t * Plan::LAG - Stage::LAG;
    if (y < first || y >= last) return;
    StageRow<Plan, Stage> row;
    find<Stage>(row, y, UpTo<Stage::READS>{}, UpTo<Stage::WRITTEN>{}, UpTo<Stage::UPDATES>{});
    for (int c = lane; c < width; c += 32)
      advance<Stage>(row, y, c, UpTo<Stage::WRITTEN>{}, UpTo<Stage::UPDATES>{});
    __syncwarp();
    finish<Stage>(row, y, UpTo<Stage::WRITTEN>{});
  }
  // The rows that a stage reads and writes, and which of its updates concern them.
  template <class Stage, int... READ, int... K, int... UPDATE>
  __device__ __forceinline__ void find(StageRow<Plan, Stage>& row, int y, Numbers<READ...>, Numbers<K...>,
                                       Numbers<UPDATE...>) const {
    ((row.from[READ] = row_read<Stage::ROWS_READ[READ][1], Stage::ROWS_READ[READ][2]>(y)), ...);
    ((row.to[K] = row_of<Stage::WRITES[K][1]>(y)), ...);
    const int yw = wrapped<0>(y);
    ((row.in[UPDATE] = inside<Stage, UPDATE, 0>(a, yw) && near<Stage, UPDATE>()), ...);
  }
  template <int OFFSET, int RING> __device__ __forceinline__ const R* row_read(int y) const {
    if constexpr (RING < 0)
      return nullptr;
    else
      return row_of<RING>(OFFSET == 0 ? y : mirrored<0>(y + OFFSET));
  }
  // Whether the tile's columns reach those of an update, tested once for a whole row.
  template <class Stage, int UPDATE> __device__ __forceinline__ bool near() const {
    constexpr UpdateBox box = Stage::BOXES[UPDATE];
    if constexpr (GRID_WRAPS[1] || box.shape[1] * 2 > GRID_SHAPE[1])
      return true;
    else
      return x0 < begin_of<Stage, UPDATE, 1>(a) + box.shape[1] && x0 + width > begin_of<Stage, UPDATE, 1>(a);
  }
  template <class Stage, int... K, int... UPDATE>
  __device__ __forceinline__ void advance(const StageRow<Plan, Stage>& row, int y, int c, Numbers<K...>,
                                          Numbers<UPDATE...>) const {
    const int x = wrapped<1>(x0 + c);
    R next[Stage::WRITTEN];
    ((next[K] = has<Stage::WRITES[K][0]>() ? row.from[Stage::WRITES[K][2]][c] : R(0)), ...);
    (apply<Stage, UPDATE>(row, x, BoundaryCell<Boundary2D, Stage>{*this, a, row, y, c}, next), ...);
    (put<Stage::WRITES[K][0]>(row.to[K][c], next[K]), ...);
  }
  template <class Stage, int UPDATE, class Cell>
  __device__ __forceinline__ void apply(const StageRow<Plan, Stage>& row, int x, const Cell& cell, R* const next) const {
    if (row.in[UPDATE] && inside<Stage, UPDATE, 1>(a, x)) Stage::template update<UPDATE>(cell, next);
  }
  template <int FIELD> __device__ __forceinline__ void put(R& to, const R value) const {
    if (has<FIELD>()) to = value;
  }

  // ------------------------------ what becomes of rows that are final
  template <class Stage, int... K>
  __device__ __forceinline__ void finish(const StageRow<Plan, Stage>& row, int y, Numbers<K...>) {
    (store<Stage, K>(row.to[K], y), ...);
    (sum<Stage, K>(row.to[K], y), ...);
    (record<Stage, K>(row.to[K], y), ...);
  }
  template <class Stage, int K> __device__ __forceinline__ void store(const R* const row, int y) const {
    constexpr int field = Stage::WRITES[K][0], least = KNOWN[field][1][1], most = KNOWN[field][1][3];
    if constexpr (Stage::WRITES[K][3] != 0)
      if (has<field>() && t == STEPS - 1 && within<field, 0>(y, y0, y1))
        for (int x = max(c0, least) + lane; x < min(c1, most); x += 32)
          a.fields[field].slot[target][y * a.fields[field].pitch[0] + x] = row[x - x0];
  }
  template <class Stage, int K> __device__ __forceinline__ void sum(const R* const row, int y) {
    if constexpr (Stage::WRITES[K][3] != 0 && Stage::WRITES[K][0] == Plan::NORM) sums.add(*this, row, y);
  }
  // A row to the receivers on it.
  template <class Stage, int K> __device__ __forceinline__ void record(const R* const row, int y) const {
    constexpr int field = Stage::WRITES[K][0];
    if constexpr (Stage::WRITES[K][3] != 0 && RECORDED[field])
      for (int k = tile.first + lane; k < tile.first + tile.variant; k += 32) {
        const Receiver q = a.receivers[k];
        if (q.field == field && q.cell[0] == y) a.traces[q.number * a.total_steps + step] = row[q.cell[1] - x0];
      }
  }
};

// By all threads of a block; it ends with a barrier.
template <class Plan, class Sums = NoRowSums>
__device__ __forceinline__ void boundary2d_tile(const Arguments& a, const Region& region, int source, int target,
                                                long long step0, unsigned char* shared, const Sums& sums = {}) {
  Boundary2D<Plan, Sums> tile(a, region, source, target, step0, shared, sums);
  using Loads = UpTo<Plan::LOAD_COUNT>;
  if (tile.t < Plan::STEPS && tile.lane == 0) record_constants(a, region, tile.step);
  tile.load_profiles(typename Plan::Profiles{});
  if (tile.t == Plan::STEPS)
    for (int r = tile.first; r < tile.first + Plan::AHEAD; ++r) tile.load_rows(r, Loads{});
  for (int r = tile.first; r < tile.y1 + Plan::STEPS * Plan::LAG; ++r) {
    if (tile.t == Plan::STEPS) {
      tile.load_rows(r + Plan::AHEAD, Loads{});
      pg_await<Plan::AHEAD>();
    } else if (tile.t < Plan::STEPS) {
      tile.stages(r, UpTo<Plan::STAGES>{});
    }
    __syncthreads();
  }
  pg_await<0>();  // rows loaded beyond the end must not arrive in what uses this memory next
}

template <class Plan>
__device__ __forceinline__ void advance_boundary(const Arguments& a, const Region& tile, int source, int target,
                                                 long long step0, unsigned char* shared) {
  boundary2d_tile<Plan>(a, tile, source, target, step0, shared);
}
template <class Plan> struct BoundaryTiles {
  static constexpr int THREADS = 32 * (Plan::STEPS + 1);
  template <class... Norms>
  __device__ __forceinline__ static void advance(const Arguments& a, const Region& tile, int source, int target,
                                                 long long step0, unsigned char* shared, const Norms&... norms) {
    advance_boundary<Plan>(a, tile, source, target, step0, shared, norms...);
  }
};
