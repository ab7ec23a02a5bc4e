// Several time steps of a 2D problem in one pass over memory.
//
// A warp takes a strip of 32 * COLUMNS columns and streams down its rows. Rows arrive in rings in shared memory by
// asynchronous copies, AHEAD rows before they are needed. A *node* is one stage of one step: for each row that arrives,
// every node computes the row that lies LAG rows behind it. What a node writes stays in registers until the nodes that
// read it are done with it; neighbours along the row come from other lanes by shuffle. MARGIN columns on either side
// of the strip are lost to the steps.
//
// Registers are chosen by the compiler, and only for arrays whose every index is a constant. So a row never moves:
// of KEPT rows that follow each other each has its own slot, the row of an age is in slot (PHASE - age) % KEPT, and the
// phase of a row in a turn of the loop is a template parameter. (With ROTATES false rows do move, from age to age: that
// takes fewer registers and more instructions.)
//
// A plan says, for one problem and shape:
//   STEPS, STAGES, FIELDS, COLUMNS, AHEAD, MARGIN, KEPT, ROTATES  as above;
//   ABOVE, BELOW           rows that a tile reads above and below its own;
//   LAG[STEPS][STAGES]     of each node;
//   RING_ROWS[FIELDS]      rows of a field that are kept in shared memory, 0 where none is loaded;
//   STATE[FIELDS]          whether a field has two slots, one to read and one to write;
//   POINTERS               whether addresses are kept from row to row, or computed for each;
//   NORM, EARLY            the field whose change is summed up (or -1); rows before its first with which a tile begins;
//   Stage<K>               READS and WRITES of a stage, and `update`, which computes the new values of a cell.

struct Read {
  int field, row, column;
};  // what a stage reads: a field, and the offset of the cell

template <int... I> struct Indices {};
template <int N, int... I> struct Counted : Counted<N - 1, N - 1, I...> {};
template <int... I> struct Counted<0, I...> {
  using Type = Indices<I...>;
};
template <int N> using Count = typename Counted<N>::Type;  // 0, 1, …, N - 1

template <int NUMBER, class First, class... Others> struct Picked {
  using Type = typename Picked<NUMBER - 1, Others...>::Type;
};
template <class First, class... Others> struct Picked<0, First, Others...> {
  using Type = First;
};
template <int NUMBER, class... All> using Pick = typename Picked<NUMBER, All...>::Type;

// ---------------------------------------------------------------- what follows from a plan
template <class Stage> struct Reads;

template <class Plan> struct Nodes {
  static constexpr int COUNT = Plan::STEPS * Plan::STAGES;

  template <int NODE> using Stage = typename Plan::template Stage<NODE % Plan::STAGES>;

  template <class Stage> __device__ static constexpr int place(int field) {  // among what a stage writes, or -1
    for (int k = 0; k < Stage::WRITTEN; ++k)
      if (Stage::WRITES[k] == field) return k;
    return -1;
  }
  template <int STAGE> __device__ static constexpr bool writes(int stage, int field) {
    if constexpr (STAGE < Plan::STAGES)
      return stage == STAGE ? place<typename Plan::template Stage<STAGE>>(field) >= 0 : writes<STAGE + 1>(stage, field);
    return false;
  }
  // The last node before this one that writes the field; -1: rows of it are as they were loaded.
  __device__ static constexpr int writer(int before, int field) {
    for (int node = before - 1; node >= 0; --node)
      if (writes<0>(node % Plan::STAGES, field)) return node;
    return -1;
  }
  // Whether some node before this one reads a loaded row of the field, so many rows before the newest.
  template <int FIRST> __device__ static constexpr bool loads(int before, int field, int age) {
    if constexpr (FIRST < COUNT) {
      if (FIRST >= before || writer(FIRST, field) >= 0) return false;
      return Reads<Stage<FIRST>>::row(field, lag(FIRST) - age) >= 0 || loads<FIRST + 1>(before, field, age);
    }
    return false;
  }
  __device__ static constexpr int lag(int node) {
    return node < 0 ? 0 : Plan::LAG[node / Plan::STAGES][node % Plan::STAGES];
  }
  __device__ static constexpr int slowest() {
    int found = 0;
    for (int field = 0; field < Plan::FIELDS; ++field)
      if (stored(field) && lag(writer(COUNT, field)) > found) found = lag(writer(COUNT, field));
    return found;
  }
  __device__ static constexpr bool stored(int field) { return Plan::STATE[field] && Plan::RING_ROWS[field] > 0; }

  __device__ static constexpr int most_rows() {
    int found = 1;
    for (int field = 0; field < Plan::FIELDS; ++field)
      if (Plan::RING_ROWS[field] > found) found = Plan::RING_ROWS[field];
    return found;
  }
  template <int STAGE> __device__ static constexpr int most_written() {
    if constexpr (STAGE < Plan::STAGES) {
      constexpr int own = Plan::template Stage<STAGE>::WRITTEN, others = most_written<STAGE + 1>();
      return own > others ? own : others;
    }
    return 1;
  }
};

// The rows that a stage reads, and the columns of each that a lane needs beside its own.
template <class Stage> struct Reads {
  __device__ static constexpr int row(int field, int offset) {  // the number of a row, or of the first read after all
    for (int k = 0; k < Stage::READ; ++k)
      if (Stage::READS[k].field == field && Stage::READS[k].row == offset) return k;
    return -1;
  }
  __device__ static constexpr bool has(int field, int row, int column) {
    for (int k = 0; k < Stage::READ; ++k)
      if (Stage::READS[k].field == field && Stage::READS[k].row == row && Stage::READS[k].column == column) return true;
    return false;
  }
  __device__ static constexpr int left() {
    int found = 0;
    for (int k = 0; k < Stage::READ; ++k)
      if (-Stage::READS[k].column > found) found = -Stage::READS[k].column;
    return found;
  }
  __device__ static constexpr int right() {
    int found = 0;
    for (int k = 0; k < Stage::READ; ++k)
      if (Stage::READS[k].column > found) found = Stage::READS[k].column;
    return found;
  }
  // Whether some read of the same row finds the column `at` of the window, for some column of a lane.
  __device__ static constexpr bool needs(int number, int at, int columns) {
    for (int k = 0; k < Stage::READ; ++k)
      if (row(Stage::READS[k].field, Stage::READS[k].row) == number) {
        const int column = at - left() - Stage::READS[k].column;
        if (column >= 0 && column < columns) return true;
      }
    return false;
  }
};

// ---------------------------------------------------------------- a tile
template <class Plan> struct Stream2D {
  static constexpr int COLUMNS = Plan::COLUMNS, FIELDS = Plan::FIELDS, PERIOD = Plan::ROTATES ? Plan::KEPT : 1;
  static constexpr int PACK = COLUMNS * sizeof(R) < 16 ? COLUMNS : 16 / sizeof(R), PARTS = COLUMNS / PACK;
  static constexpr int PACK_BYTES = PACK * sizeof(R);
  static constexpr unsigned ROW_BYTES = 32 * COLUMNS * sizeof(R), PART_BYTES = 32 * PACK * sizeof(R);
  static constexpr int SUMS = COLUMNS < 4 ? 1 : COLUMNS / 4;
  static constexpr int NORM_ROWS = 24, TURNS = NORM_ROWS / PERIOD;
  using N = Nodes<Plan>;
  using Columns = Count<COLUMNS>;
  static constexpr int MOST_ROWS = N::most_rows();
  static constexpr int MOST_WRITTEN = N::template most_written<0>();

  const Arguments& a;
  const int source, target, lane, y0, y1, c0, c1, x, first, last;
  const bool owned;  // whether the tile has the first column of the lane
  const long long step0;
  unsigned char* const ring;
  const R* in[FIELDS];
  R* out[FIELDS];
  unsigned loading[FIELDS], newest[FIELDS];  // places in the rings
  int r;                                     // the newest row at the begin of a turn
  R inputs[FIELDS][MOST_ROWS][COLUMNS];      // what nodes read of the rings
  R rows[N::COUNT][MOST_WRITTEN][Plan::KEPT][COLUMNS];
  R sums[Plan::STEPS][SUMS];

  __device__ __forceinline__ Stream2D(const Arguments& arguments, const Region& tile, int from, int to, long long step,
                                      unsigned char* shared)
      : a(arguments),
        source(from),
        target(to),
        lane(threadIdx.x & 31),
        y0(tile.lo[0]),
        y1(tile.hi[0]),
        c0(tile.lo[1]),
        c1(tile.hi[1]),
        x(c0 - Plan::MARGIN + lane * COLUMNS),
        first(y0 - Plan::ABOVE),
        last(y1 + Plan::BELOW),
        owned((x >= c0) & (x < c1)),
        step0(step),
        ring(shared + lane * PACK_BYTES),
        r(first - Plan::EARLY),
        rows{},
        sums{} {
    begin<0>();
    begin_stores<0>();
    begin_rings<0>();
  }

  // ------------------------------ memory
  __device__ static constexpr unsigned start(int field) {  // of a field's ring
    unsigned rows_before = 0;
    for (int k = 0; k < field; ++k) rows_before += Plan::RING_ROWS[k];
    return rows_before * ROW_BYTES;
  }
  __device__ static constexpr int counter(int field) {  // rings of as many rows share their places
    for (int k = 0; k < field; ++k)
      if (Plan::RING_ROWS[k] == Plan::RING_ROWS[field]) return k;
    return field;
  }
  template <int FIELD> __device__ __forceinline__ const R* read_from(int row) const {
    return a.fields[FIELD].slot[Plan::STATE[FIELD] ? source : 0] + (row * a.fields[FIELD].pitch[0] + x);
  }
  template <int FIELD> __device__ __forceinline__ R* write_to(int row) const {
    return a.fields[FIELD].slot[target] + (row * a.fields[FIELD].pitch[0] + x);
  }
  template <int FIELD> __device__ __forceinline__ void begin() {
    if constexpr (FIELD < FIELDS) {
      if constexpr (Plan::POINTERS && Plan::RING_ROWS[FIELD] > 0) in[FIELD] = read_from<FIELD>(first);
      begin<FIELD + 1>();
    }
  }
  template <int FIELD> __device__ __forceinline__ void begin_stores() {
    if constexpr (FIELD < FIELDS) {
      constexpr int lag = N::lag(N::writer(N::COUNT, FIELD));
      if constexpr (Plan::POINTERS && N::stored(FIELD)) out[FIELD] = write_to<FIELD>(first - Plan::EARLY - lag);
      begin_stores<FIELD + 1>();
    }
  }
  template <int FIELD> __device__ __forceinline__ void begin_rings() {
    if constexpr (FIELD < FIELDS) {
      constexpr int ring_rows = Plan::RING_ROWS[FIELD];
      loading[FIELD] = 0;
      if constexpr (ring_rows > 0) newest[FIELD] = (ring_rows - Plan::EARLY % ring_rows) % ring_rows * ROW_BYTES;
      begin_rings<FIELD + 1>();
    }
  }
  // Rings turn by a row.
  template <int FIELD> __device__ __forceinline__ void advance(unsigned (&places)[FIELDS]) {
    if constexpr (FIELD < FIELDS) {
      if constexpr (Plan::RING_ROWS[FIELD] > 0 && counter(FIELD) == FIELD)
        places[FIELD] = places[FIELD] == (Plan::RING_ROWS[FIELD] - 1) * ROW_BYTES ? 0 : places[FIELD] + ROW_BYTES;
      advance<FIELD + 1>(places);
    }
  }
  // Asks for a row of every field.
  template <int FIELD> __device__ __forceinline__ void ask(int row) {
    if constexpr (FIELD < FIELDS) {
      if constexpr (Plan::RING_ROWS[FIELD] > 0) {
        const R* const from = Plan::POINTERS ? in[FIELD] : read_from<FIELD>(row);
        ask_parts<FIELD>(from, Count<PARTS>{});
        if constexpr (Plan::POINTERS) in[FIELD] += a.fields[FIELD].pitch[0];
      }
      ask<FIELD + 1>(row);
    }
  }
  template <int FIELD, int... PART> __device__ __forceinline__ void ask_parts(const R* from, Indices<PART...>) {
    (pg_fetch<PACK_BYTES>(ring + loading[counter(FIELD)] + (start(FIELD) + PART * PART_BYTES), from + PART * PACK),
     ...);
  }
  // Row r + ROW of every field, where there is one.
  template <int ROW> __device__ __forceinline__ void fetch() {
    if (r + ROW < last) ask<0>(r + ROW);
    pg_fetched();
    advance<0>(loading);
  }
  template <int... K>
  __device__ __forceinline__ void fill(Indices<K...>) {  // the first rows, with none of the EARLY ones
    ((K < Plan::EARLY ? pg_fetched() : fetch<K>()), ...);
  }
  // A row from its ring; age: how many rows before the newest.
  template <int FIELD, int AGE> __device__ __forceinline__ void load(R (&to)[COLUMNS]) const {
    constexpr unsigned back = AGE * ROW_BYTES, whole = Plan::RING_ROWS[FIELD] * ROW_BYTES;
    const unsigned now = newest[counter(FIELD)];
    const unsigned place = AGE ? min(now - back, now + (whole - back)) : now;
    unpack_all(to, ring + (place + start(FIELD)), Count<PARTS>{});
  }
  template <int... PART>
  __device__ __forceinline__ static void unpack_all(R (&to)[COLUMNS], const unsigned char* from, Indices<PART...>) {
    (unpack<PART>(to, *reinterpret_cast<const Pack<PACK>*>(from + PART * PART_BYTES), Count<PACK>{}), ...);
  }
  template <int PART, int... K>
  __device__ __forceinline__ static void unpack(R (&to)[COLUMNS], const Pack<PACK> values, Indices<K...>) {
    ((to[PART * PACK + K] = values.v[K]), ...);
  }
  // The row of a field as the nodes before NODE left it, LAG rows behind the newest one loaded; LOADED: what nodes
  // before this one read is there already.
  template <int NODE, int FIELD, int LAG, int PHASE, int LOADED = NODE>
  __device__ __forceinline__ void row_of(R (&to)[COLUMNS]) {
    constexpr int writer = N::writer(NODE, FIELD), age = LAG - N::lag(writer);
    if constexpr (writer < 0) {
      if constexpr (!N::template loads<0>(LOADED, FIELD, age)) load<FIELD, age>(inputs[FIELD][age]);
      copy(to, inputs[FIELD][age], Columns{});
    } else {
      constexpr int place = N::template place<typename N::template Stage<writer>>(FIELD);
      constexpr int slot = Plan::ROTATES ? (PHASE - age + 2 * PERIOD) % PERIOD : age;
      copy(to, rows[writer][place][slot], Columns{});
    }
  }
  template <int... C>
  __device__ __forceinline__ static void copy(R (&to)[COLUMNS], const R (&from)[COLUMNS], Indices<C...>) {
    ((to[C] = from[C]), ...);
  }
  template <int... PART>
  __device__ __forceinline__ void pack_all(R* to, const R (&values)[COLUMNS], Indices<PART...>) const {
    (pack<PART>(to, values, Count<PACK>{}), ...);
  }
  template <int PART, int... K>
  __device__ __forceinline__ void pack(R* to, const R (&values)[COLUMNS], Indices<K...>) const {
    if (PART ? x + PART * PACK >= c0 && x + PART * PACK < c1 : owned)
      *reinterpret_cast<Pack<PACK>*>(to + PART * PACK) = Pack<PACK>{{values[PART * PACK + K]...}};
  }
  template <int FIELD, int PHASE> __device__ __forceinline__ void store() {
    if constexpr (FIELD < FIELDS) {
      if constexpr (N::stored(FIELD)) {
        constexpr int lag = N::lag(N::writer(N::COUNT, FIELD));
        R* const to = Plan::POINTERS ? out[FIELD] : write_to<FIELD>(r + PHASE - lag);
        R values[COLUMNS];
        row_of<N::COUNT, FIELD, lag, PHASE>(values);
        if (r + PHASE >= y0 + lag && r + PHASE < y1 + lag) pack_all(to, values, Count<PARTS>{});
        if constexpr (Plan::POINTERS) out[FIELD] += a.fields[FIELD].pitch[0];
      }
      store<FIELD + 1, PHASE>();
    }
  }

  // ------------------------------ nodes
  // What the cells of a lane read in one node.
  template <class Stage> struct Window {
    static constexpr int LEFT = Reads<Stage>::left(), WIDTH = LEFT + COLUMNS + Reads<Stage>::right();
    R at[Stage::READ][WIDTH];
  };
  template <int NODE, int PHASE, int NUMBER, class Stage> __device__ __forceinline__ void look(Window<Stage>& window) {
    if constexpr (NUMBER < Stage::READ) {
      constexpr int field = Stage::READS[NUMBER].field, offset = Stage::READS[NUMBER].row;
      if constexpr (Reads<Stage>::row(field, offset) == NUMBER) {
        R row[COLUMNS];
        row_of<NODE, field, N::lag(NODE) - offset, PHASE>(row);
        spread<NUMBER, 0>(window, row);
      }
      look<NODE, PHASE, NUMBER + 1>(window);
    }
  }
  template <int NUMBER, int AT, class Stage>
  __device__ __forceinline__ static void spread(Window<Stage>& window, const R (&row)[COLUMNS]) {
    if constexpr (AT < Window<Stage>::WIDTH) {
      if constexpr (Reads<Stage>::needs(NUMBER, AT, COLUMNS)) {
        constexpr int column = AT - Window<Stage>::LEFT + 64 * COLUMNS;
        constexpr int lanes = column / COLUMNS - 64, element = column % COLUMNS;
        if constexpr (lanes == 0) window.at[NUMBER][AT] = row[element];
        if constexpr (lanes < 0) window.at[NUMBER][AT] = __shfl_up_sync(0xffffffffu, row[element], -lanes);
        if constexpr (lanes > 0) window.at[NUMBER][AT] = __shfl_down_sync(0xffffffffu, row[element], lanes);
      }
      spread<NUMBER, AT + 1>(window, row);
    }
  }

  // One cell of a node, as an update sees it.
  template <class Stage, int C> struct Cell {
    const Window<Stage>& window;
    const Arguments& a;
    const int y, x;
    const long long step;

    template <int FIELD, int ROW, int COLUMN> __device__ __forceinline__ R at() const {
      static_assert(Reads<Stage>::has(FIELD, ROW, COLUMN), "a stage reads what its READS name");
      return window.at[Reads<Stage>::row(FIELD, ROW)][Window<Stage>::LEFT + C + COLUMN];
    }
    template <int FIELD, int AXIS, int ROW, int COLUMN> __device__ __forceinline__ R profile() const {
      return a.fields[FIELD].slot[0][AXIS == 0 ? y + ROW : x + (C + COLUMN)];
    }
    __device__ __forceinline__ R signal(int number) const { return sample(a.signals[number], step); }
  };
  template <int NODE, int PHASE, class Stage, int... C>
  __device__ __forceinline__ void cells(const Window<Stage>& window, int y, Indices<C...>) {
    (cell<NODE, PHASE, C>(window, y, Count<Stage::WRITTEN>{}), ...);
  }
  template <int NODE, int PHASE, int C, class Stage, int... K>
  __device__ __forceinline__ void cell(const Window<Stage>& window, int y, Indices<K...>) {
    constexpr int slot = Plan::ROTATES ? PHASE : 0;
    R next[Stage::WRITTEN];
    Stage::update(Cell<Stage, C>{window, a, y, x, step0 + NODE / Plan::STAGES}, next);
    ((rows[NODE][K][slot][C] = next[K]), ...);
  }
  template <int NODE, int PHASE> __device__ __forceinline__ void nodes() {
    if constexpr (NODE < N::COUNT) {
      using Stage = typename N::template Stage<NODE>;
      if constexpr (Stage::WRITTEN > 0) {
        Window<Stage> window;
        look<NODE, PHASE, 0>(window);
        constexpr int step = NODE / Plan::STAGES;
        cells<NODE, PHASE>(window, r + (PHASE - N::lag(NODE)), Columns{});
        if constexpr (Plan::NORM >= 0)
          if constexpr (N::writer((step + 1) * Plan::STAGES, Plan::NORM) == NODE) difference<NODE, PHASE>();
      }
      nodes<NODE + 1, PHASE>();
    }
  }
  // Rows that move: each becomes one older.
  template <int NODE, int PLACE = 0, int SLOT = Plan::KEPT - 1> __device__ __forceinline__ void grow_older() {
    if constexpr (NODE < N::COUNT) {
      if constexpr (PLACE == N::template Stage<NODE>::WRITTEN) {
        grow_older<NODE + 1>();
      } else if constexpr (SLOT == 0) {
        grow_older<NODE, PLACE + 1>();
      } else {
        copy(rows[NODE][PLACE][SLOT], rows[NODE][PLACE][SLOT - 1], Columns{});
        grow_older<NODE, PLACE, SLOT - 1>();
      }
    }
  }

  // ------------------------------ the norm of each step's change
  // Squares of four neighbours along the row are added one after another, row by row, in blocks of NORM_ROWS rows and
  // 8 columns. The turns of the loop at which blocks end are known when the kernel is compiled.
  template <int NODE, int PHASE> __device__ __forceinline__ void difference() {
    constexpr int step = NODE / Plan::STAGES, place = N::template place<typename N::template Stage<NODE>>(Plan::NORM);
    R before[COLUMNS];
    row_of<step * Plan::STAGES, Plan::NORM, N::lag(NODE), PHASE, NODE + 1>(before);
    add_squares<step>(rows[NODE][place][Plan::ROTATES ? PHASE : 0], before, Columns{});
  }
  template <int STEP, int... C>
  __device__ __forceinline__ void add_squares(const R (&now)[COLUMNS], const R (&before)[COLUMNS], Indices<C...>) {
    ((sums[STEP][C / 4] = fma(now[C] - before[C], now[C] - before[C], sums[STEP][C / 4])), ...);
  }
  // Whether a block of the step ends with a row of a turn; turns are numbered within a block.
  template <int STEP> __device__ static constexpr bool ends(int turn, int phase) {
    constexpr int lag = N::lag(N::writer((STEP + 1) * Plan::STAGES, Plan::NORM));
    return (Plan::EARLY + Plan::ABOVE + lag - 1) % NORM_ROWS == turn * PERIOD + phase;
  }
  // The first turn at which some block ends, and the last.
  template <int STEP = 0> __device__ static constexpr int first_ending() {
    if constexpr (STEP < Plan::STEPS) {
      constexpr int lag = N::lag(N::writer((STEP + 1) * Plan::STAGES, Plan::NORM)), others = first_ending<STEP + 1>();
      constexpr int own = (Plan::EARLY + Plan::ABOVE + lag - 1) % NORM_ROWS / PERIOD;
      return own < others ? own : others;
    }
    return TURNS;
  }
  template <int STEP = 0> __device__ static constexpr int last_ending() {
    if constexpr (STEP < Plan::STEPS) {
      constexpr int lag = N::lag(N::writer((STEP + 1) * Plan::STAGES, Plan::NORM)), others = last_ending<STEP + 1>();
      constexpr int own = (Plan::EARLY + Plan::ABOVE + lag - 1) % NORM_ROWS / PERIOD;
      return own > others ? own : others;
    }
    return 0;
  }
  // The sums of the blocks whose last row this was to memory.
  template <int TURN, int PHASE, int STEP, class Norms> __device__ __forceinline__ void end_blocks(const Norms& norms) {
    if constexpr (STEP < Plan::STEPS) {
      if constexpr (ends<STEP>(TURN, PHASE)) {
        constexpr int parts = COLUMNS < 8 ? 1 : COLUMNS / 8;
        const int y = r + PHASE - N::lag(N::writer((STEP + 1) * Plan::STAGES, Plan::NORM));
        R found[parts];
        if constexpr (COLUMNS == 4) {
          found[0] = sums[STEP][0] + __shfl_xor_sync(0xffffffffu, sums[STEP][0], 1);
        } else {
#pragma unroll
          for (int part = 0; part < parts; ++part) found[part] = sums[STEP][2 * part] + sums[STEP][2 * part + 1];
        }
#pragma unroll
        for (int part = 0; part < parts; ++part) {
          const int column = x + 8 * part;
          if (y >= y0 && y < y1 && !(COLUMNS == 4 && (lane & 1)) && (part ? column >= c0 && column < c1 : owned))
            norms.partial[STEP * norms.plane + (y / NORM_ROWS) * norms.pitch + column / 8] = found[part];
        }
#pragma unroll
        for (int k = 0; k < SUMS; ++k) sums[STEP][k] = R(0);
      }
      end_blocks<TURN, PHASE, STEP + 1>(norms);
    }
  }

  // ------------------------------ the loop
  // PERIOD rows, one after the other: load ahead, wait for the newest, every node, the finished rows.
  template <int TURN, int PHASE = 0, class Norms> __device__ __forceinline__ void turn(const Norms& norms) {
    if constexpr (PHASE < PERIOD) {
      fetch<PHASE + Plan::AHEAD>();
      pg_await<Plan::AHEAD>();
      nodes<0, PHASE>();
      if constexpr (TURN >= 0) end_blocks<TURN, PHASE, 0>(norms);
      store<0, PHASE>();
      advance<0>(newest);
      if constexpr (!Plan::ROTATES) grow_older<0>();
      turn<TURN, PHASE + 1>(norms);
    }
  }
  // The turns at which blocks end; whether the tile ended with one of them.
  template <int TURN, class Norms> __device__ __forceinline__ bool ending_turns(int end, const Norms& norms) {
    if constexpr (TURN <= last_ending()) {
      turn<TURN>(norms);
      return (r += PERIOD) >= end || ending_turns<TURN + 1>(end, norms);
    }
    return false;
  }
  template <class Norms> __device__ __forceinline__ void run(const Norms& norms) {
    const int end = y1 + N::slowest();
    fill(Count<Plan::AHEAD>{});
    if constexpr (Plan::NORM < 0) {
      for (; r < end; r += PERIOD) turn<-1>(norms);
    } else {
      constexpr int among = TURNS - 1 - (last_ending() - first_ending());
      for (int left = first_ending();; left = among) {
        for (; left && r < end; --left, r += PERIOD) turn<-1>(norms);
        if (r >= end || ending_turns<first_ending()>(end, norms)) break;
      }
    }
  }
};

struct NoNorms {};
