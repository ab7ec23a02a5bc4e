// Several time steps of a 2D problem in one pass over memory: time skewing in registers.
//
// A warp takes a strip of 32 * COLUMNS columns and streams down its rows. Rows arrive in rings in shared memory by
// asynchronous copies, AHEAD rows before they are needed. A *node* is one stage of one step: with each row that
// arrives it computes the row that lies LAG rows behind it. What nodes write stays in registers until the nodes that
// read it are done with it; neighbours along the row come from other lanes by shuffle. MARGIN columns on either side
// of a strip are lost to the steps.
//
// Registers serve arrays whose every index is a constant, so no row moves: of KEPT rows that follow each other each has
// a slot, and the phase of a row in an iteration of the loop is a template parameter. (With ROTATES false rows do move from
// slot to slot: fewer registers, more instructions.)
//
// A plan says, for one problem and shape, what is in capitals here, and of each stage:
//   READS     rows and columns that it reads;
//   WRITES    the fields it writes; update, the new values of a cell.

#include "numbers.cuh"

// A lane's columns of a row, and what it got of its neighbours.
template <class Plan> struct Row {
  R at[Plan::COLUMNS], beyond[2 * Plan::REACH];

  template <int I> __device__ __forceinline__ R& get() {
    if constexpr (I >= 0 && I < Plan::COLUMNS)
      return at[I];
    else
      return beyond[I < 0 ? I + Plan::REACH : I - Plan::COLUMNS + Plan::REACH];
  }
};

// What a plan's nodes read of which rows.
template <class Plan> struct Nodes {
  static constexpr int COUNT = Plan::STEPS * Plan::STAGES;
  struct Place {
    int row, age;  // the number of a result in the pass, or -1 - field for what is loaded; rows since the newest of it
    __device__ constexpr bool operator==(const Place& other) const { return row == other.row && age == other.age; }
  };
  __device__ static constexpr int lag(int node) { return Plan::LAG[node / Plan::STAGES][node % Plan::STAGES]; }
  // A field `back` rows behind the newest one loaded, as it stands when a stage of a step begins.
  __device__ static constexpr Place place(int step, int stage, int field, int back) {
    const int result = Plan::BEFORE[stage][field], number = result % Plan::RESULTS;
    const int made = step - (result >= Plan::RESULTS);
    return result < 0 || made < 0
               ? Place{-1 - field, back}
               : Place{made * Plan::RESULTS + number, back - Plan::LAG[made][Plan::STAGE_OF[number]]};
  }
  __device__ static constexpr Place place(int node, int read) {
    const int stage = node % Plan::STAGES;
    return place(node / Plan::STAGES, stage, Plan::READS[read][0], lag(node) - Plan::READS[read][1]);
  }
  // Whether something before a read of a node wanted the same row (and column, where a neighbour has it).
  __device__ static constexpr bool seen(int node, int read, int column = 0, bool row = true) {
    for (int n = 0; n <= node; ++n)
      for (int k = Plan::FIRST_READ[n % Plan::STAGES]; k < Plan::FIRST_READ[n % Plan::STAGES + 1]; ++k) {
        if (n == node && k == read) return false;
        const int at = column - Plan::READS[k][2];
        if (place(n, k) == place(node, read) && (row || (at >= 0 && at < Plan::COLUMNS))) return true;
      }
    return false;
  }
  // Whether a node, the last or one before it, has loaded a row of a field.
  __device__ static constexpr bool loaded(int field, int age, int last = COUNT - 1) {
    for (int n = 0; n <= last; ++n)
      for (int k = Plan::FIRST_READ[n % Plan::STAGES]; k < Plan::FIRST_READ[n % Plan::STAGES + 1]; ++k)
        if (place(n, k) == Place{-1 - field, age}) return true;
    return false;
  }
};

// A cell of a node, as an update sees it.
template <class Tile, int NODE, int PHASE, int C> struct Cell {
  Tile& tile;
  const Arguments& a;

  template <int FIELD, int I, int J> __device__ __forceinline__ R at() const {
    return tile.template row_of<NODE, FIELD, I, PHASE>().template get<C + J>();
  }
  template <int FIELD, int AXIS, int I, int J> __device__ __forceinline__ R profile() const {
    return tile.where.template profile<FIELD, AXIS, J, C>(tile, tile.r + (PHASE - Tile::N::lag(NODE) + I));
  }
  __device__ __forceinline__ R signal(int number) const {
    return sample(a.signals[number], tile.step0 + NODE / Tile::STAGES);
  }
  template <int RESULT> __device__ __forceinline__ R& next() const {
    return tile.template result<NODE, RESULT, PHASE>().at[C];
  }
};

// Where all cells have one update of each stage and tiles find all that they read; at the grid's sides: `Strip`.
template <class Plan> struct Interior {
  static constexpr int PACK = Plan::COLUMNS * sizeof(R) < 16 ? Plan::COLUMNS : 16 / sizeof(R);  // values a store moves

  __device__ __forceinline__ Interior(const Arguments&, const Region&, int) {}
  __device__ __forceinline__ static int left(const Region& tile) { return tile.lo[1] - Plan::MARGIN; }
  __device__ __forceinline__ static int first(const Region& tile) { return tile.lo[0] - Plan::ABOVE; }
  __device__ __forceinline__ static int last(const Region& tile) { return tile.hi[0] + Plan::BELOW; }
  template <int FIELD> __device__ __forceinline__ static bool has(int) { return true; }
  template <int FIELD, class Tile> __device__ __forceinline__ static bool stores(const Tile& tile, int row, int lag) {
    return row >= tile.y0 + lag && row < tile.y1 + lag;
  }
  template <int FIELD, int C, class Tile> __device__ __forceinline__ static bool stores_column(const Tile& tile) {
    return tile.x + C >= tile.c0 && tile.x + C < tile.c1;
  }
  template <int FIELD, int AXIS, int J, int C, class Tile>
  __device__ __forceinline__ static R profile(const Tile& tile, int row) {
    return tile.a.fields[FIELD].slot[0][AXIS == 0 ? row : tile.x + (C + J)];
  }
  // Result after result, of each all columns: so values live shorter than with all results of a column.
  template <int NODE, int PHASE, class Stage, class Tile, int... K>
  __device__ __forceinline__ static void update(Tile& tile, Numbers<K...>) {
    (columns<NODE, PHASE, Stage, K>(tile, UpTo<Plan::COLUMNS>{}), ...);
  }
  template <int NODE, int PHASE, class Stage, int K, class Tile, int... C>
  __device__ __forceinline__ static void columns(Tile& tile, Numbers<C...>) {
    (column<NODE, PHASE, Stage, K>(tile, Cell<Tile, NODE, PHASE, C>{tile, tile.a}), ...);
  }
  template <int NODE, int PHASE, class Stage, int K, class Tile, class Cell>
  __device__ __forceinline__ static void column(Tile&, const Cell& cell) {
    R next[Stage::WRITTEN];
    Stage::update(cell, next);
    cell.template next<K>() = next[K];
  }
};

// Without norms; with them: `BlockSums`.
struct NoSums {
  template <int NODE, int PHASE, class Tile> __device__ __forceinline__ void add(Tile&) {}
  template <int ITERATION, int PHASE, class Tile> __device__ __forceinline__ void end(Tile&) {}
};

template <class Plan, class Where = Interior<Plan>, class Sums = NoSums> struct Stream2D {
  static constexpr int COLUMNS = Plan::COLUMNS, STAGES = Plan::STAGES, PERIOD = Plan::ROTATES ? Plan::KEPT : 1;
  static constexpr int PACK = Interior<Plan>::PACK, PARTS = COLUMNS / PACK;
  static constexpr int PACK_BYTES = PACK * sizeof(R), KEPT_ROWS = Plan::STEPS * Plan::RESULTS * Plan::KEPT;
  static constexpr unsigned ROW_BYTES = 32 * COLUMNS * sizeof(R), PART_BYTES = 32 * PACK * sizeof(R);
  using N = Nodes<Plan>;
  using Loaded = typename Plan::Loaded;
  using Stored = typename Plan::Stored;

  const Arguments& a;
  const int source, target, lane, y0, y1, c0, c1, x, first, last;
  const long long step0;
  unsigned char* const ring;
  const Where where;
  Sums sums;
  const R* in[Plan::FIELDS];
  R* out[Plan::FIELDS];
  unsigned loading[Plan::RINGS], newest[Plan::RINGS];
  int r;                                           // the newest row at the begin of an iteration
  Row<Plan> rows[KEPT_ROWS];                            // what nodes wrote
  Row<Plan> loads[Plan::LOADED_ROWS];  // rows that came from the rings in this iteration, by field and age

  __device__ __forceinline__ Stream2D(const Arguments& arguments, const Region& tile, int from, int to, long long step,
                                      unsigned char* shared, const Sums& zero = {})
      : a(arguments),
        source(from),
        target(to),
        lane(threadIdx.x & 31),
        y0(tile.lo[0]),
        y1(tile.hi[0]),
        c0(tile.lo[1]),
        c1(tile.hi[1]),
        x(Where::left(tile) + lane * COLUMNS),
        first(Where::first(tile)),
        last(Where::last(tile)),
        step0(step),
        ring(pg_kept(shared + lane * PACK_BYTES)),
        where(a, tile, x),
        sums(zero),
        r(first - Plan::EARLY),
        rows{} {
    begin(Loaded{}, Stored{}, UpTo<Plan::RINGS>{});
  }
  template <int... FIELD, int... WRITTEN, int... RING>
  __device__ __forceinline__ void begin(Numbers<FIELD...>, Numbers<WRITTEN...>, Numbers<RING...>) {
    if constexpr (Plan::POINTERS) {
      ((in[FIELD] = input<FIELD>(first)), ...);
      ((out[WRITTEN] = output<WRITTEN>(first - Plan::EARLY)), ...);
    }
    ((loading[RING] = 0,
      newest[RING] = (Plan::RING_ROWS[RING] - Plan::EARLY % Plan::RING_ROWS[RING]) % Plan::RING_ROWS[RING] * ROW_BYTES),
     ...);
  }

  // ------------------------------ memory
  template <int FIELD> __device__ __forceinline__ const R* input(int row) const {
    return a.fields[FIELD].slot[STATE[FIELD] ? source : 0] + (row * a.fields[FIELD].pitch[0] + x);
  }
  template <int FIELD> __device__ __forceinline__ R* output(int row) const {  // row: the newest
    return a.fields[FIELD].slot[target] + ((row - lag_of<FIELD>()) * a.fields[FIELD].pitch[0] + x);
  }
  template <int... RING>
  __device__ __forceinline__ static void advance(unsigned (&places)[Plan::RINGS], Numbers<RING...>) {
    ((places[RING] = places[RING] == (Plan::RING_ROWS[RING] - 1) * ROW_BYTES ? 0 : places[RING] + ROW_BYTES), ...);
  }
  template <int FIELD, int... PART> __device__ __forceinline__ void ask(int row, Numbers<PART...>) {
    unsigned char* const to = ring + loading[Plan::RING[FIELD]] + Plan::START[FIELD] * ROW_BYTES;
    const R* const from = Plan::POINTERS ? in[FIELD] : input<FIELD>(row);
    if (where.template has<FIELD>(row)) (pg_fetch<PACK_BYTES>(to + PART * PART_BYTES, from + PART * PACK), ...);
    if constexpr (Plan::POINTERS) in[FIELD] += a.fields[FIELD].pitch[0];
  }
  template <int... FIELD> __device__ __forceinline__ void fetch(bool wanted, int row, Numbers<FIELD...>) {
    if (wanted) (ask<FIELD>(row, UpTo<PARTS>{}), ...);
    pg_fetched();
    advance(loading, UpTo<Plan::RINGS>{});
  }
  template <int... K> __device__ __forceinline__ void fill(Numbers<K...>) {
    ((K < Plan::EARLY ? pg_fetched() : fetch(first - Plan::EARLY + K < last, first - Plan::EARLY + K, Loaded{})), ...);
  }
  // A row from its ring; AGE: rows since.
  template <int FIELD, int AGE> __device__ __forceinline__ void load() {
    constexpr unsigned back = AGE * ROW_BYTES, size = Plan::RING_ROWS[Plan::RING[FIELD]] * ROW_BYTES;
    const unsigned now = newest[Plan::RING[FIELD]], place = AGE ? min(now - back, now + (size - back)) : now;
    unpack_all(loads[Plan::FIRST_LOADED[FIELD] + AGE], ring + place + Plan::START[FIELD] * ROW_BYTES, UpTo<PARTS>{});
  }
  template <int... PART>
  __device__ __forceinline__ static void unpack_all(Row<Plan>& to, const unsigned char* from, Numbers<PART...>) {
    (unpack<PART>(to, *reinterpret_cast<const Pack<PACK>*>(from + PART * PART_BYTES), UpTo<PACK>{}), ...);
  }
  template <int PART, int... K>
  __device__ __forceinline__ static void unpack(Row<Plan>& to, const Pack<PACK> values, Numbers<K...>) {
    ((to.at[PART * PACK + K] = values.v[K]), ...);
  }
  template <int FIELD, int PHASE> __device__ __forceinline__ void store() {
    constexpr auto place = N::place(Plan::STEPS - 1, STAGES, FIELD, lag_of<FIELD>());
    if constexpr (place.row < 0 && !N::loaded(FIELD, 0)) load<FIELD, 0>();
    R* const to = Plan::POINTERS ? out[FIELD] : output<FIELD>(r + PHASE);
    if (where.template stores<FIELD>(*this, r + PHASE, lag_of<FIELD>()))
      store_parts<FIELD>(to, row_at<place.row, place.age, PHASE>(), UpTo<COLUMNS / Where::PACK>{});
    if constexpr (Plan::POINTERS) out[FIELD] += a.fields[FIELD].pitch[0];
  }
  template <int FIELD, int... PART>
  __device__ __forceinline__ void store_parts(R* to, const Row<Plan>& row, Numbers<PART...>) const {
    (store_part<FIELD, PART * Where::PACK>(to, row, UpTo<Where::PACK>{}), ...);
  }
  template <int FIELD, int C, int... K>
  __device__ __forceinline__ void store_part(R* to, const Row<Plan>& row, Numbers<K...>) const {
    if (where.template stores_column<FIELD, C>(*this))
      *reinterpret_cast<Pack<Where::PACK>*>(to + C) = {{row.at[C + K]...}};
  }

  // ------------------------------ nodes
  template <int ROW, int AGE, int PHASE> __device__ __forceinline__ Row<Plan>& row_at() {
    if constexpr (ROW < 0)
      return loads[Plan::FIRST_LOADED[-1 - ROW] + AGE];
    else
      return rows[ROW * Plan::KEPT + (Plan::ROTATES ? (PHASE - AGE + 8 * PERIOD) % PERIOD : AGE)];
  }
  template <int NODE, int FIELD, int ROW, int PHASE> __device__ __forceinline__ Row<Plan>& row_of() {
    constexpr auto place = N::place(NODE / STAGES, NODE % STAGES, FIELD, N::lag(NODE) - ROW);
    return row_at<place.row, place.age, PHASE>();
  }
  // A row as it stands before a stage of a node's step, where the node works.
  template <int NODE, int STAGE, int FIELD, int PHASE> __device__ __forceinline__ Row<Plan>& row_before() {
    constexpr auto place = N::place(NODE / STAGES, STAGE, FIELD, N::lag(NODE));
    if constexpr (place.row < 0 && !N::loaded(FIELD, place.age, NODE)) load<FIELD, place.age>();
    return row_at<place.row, place.age, PHASE>();
  }
  template <int NODE, int K, int PHASE> __device__ __forceinline__ Row<Plan>& result() {
    constexpr int first_of_stage = Plan::template Stage<NODE % STAGES>::FIRST;
    return row_at<NODE / STAGES * Plan::RESULTS + first_of_stage + K, 0, PHASE>();
  }
  template <int FIELD> __device__ static constexpr int lag_of() {  // of the last values
    constexpr int result = Plan::BEFORE[STAGES][FIELD];
    return result < 0 ? 0 : Plan::LAG[Plan::STEPS - 1][Plan::STAGE_OF[result]];
  }
  template <int NODE, int PHASE, int... READ> __device__ __forceinline__ void look_all(Numbers<READ...>) {
    (look<NODE, Plan::FIRST_READ[NODE % STAGES] + READ, PHASE>(UpTo<COLUMNS>{}), ...);
  }
  template <int NODE, int READ, int PHASE, int... C> __device__ __forceinline__ void look(Numbers<C...>) {
    constexpr auto place = N::place(NODE, READ);
    if constexpr (place.row < 0 && !N::seen(NODE, READ)) load<-1 - place.row, place.age>();
    (look_beside<NODE, READ, C + Plan::READS[READ][2]>(row_at<place.row, place.age, PHASE>()), ...);
  }
  template <int NODE, int READ, int COLUMN> __device__ __forceinline__ void look_beside(Row<Plan>& row) {
    if constexpr ((COLUMN < 0 || COLUMN >= COLUMNS) && !N::seen(NODE, READ, COLUMN, false)) {
      constexpr int lanes = (COLUMN + 64 * COLUMNS) / COLUMNS - 64, element = (COLUMN + 64 * COLUMNS) % COLUMNS;
      if constexpr (lanes < 0)
        row.template get<COLUMN>() = __shfl_up_sync(0xffffffffu, row.at[element], -lanes);
      else
        row.template get<COLUMN>() = __shfl_down_sync(0xffffffffu, row.at[element], lanes);
    }
  }
  template <int PHASE, int NODE> __device__ __forceinline__ void node() {
    constexpr int stage = NODE % STAGES;
    using Stage = typename Plan::template Stage<stage>;
    look_all<NODE, PHASE>(UpTo<Plan::FIRST_READ[stage + 1] - Plan::FIRST_READ[stage]>{});
    where.template update<NODE, PHASE, Stage>(*this, UpTo<Stage::WRITTEN>{});
    sums.template add<NODE, PHASE>(*this);
  }

  // ------------------------------ rows, one after another: load ahead, wait for the newest, every node, store
  template <int K> __device__ __forceinline__ void grow_older() {
    if constexpr (K % Plan::KEPT) rows[K] = rows[K - 1];
  }
  template <int... K> __device__ __forceinline__ void all_grow_older(Numbers<K...>) {
    (grow_older<KEPT_ROWS - 1 - K>(), ...);
  }
  template <int ITERATION, int PHASE, int... NODE, int... STORED>
  __device__ __forceinline__ void next_row(Numbers<NODE...>, Numbers<STORED...>) {
    fetch(r + (PHASE + Plan::AHEAD) < last, r + (PHASE + Plan::AHEAD), Loaded{});
    pg_await<Plan::AHEAD>();
    (node<PHASE, NODE>(), ...);
    sums.template end<ITERATION, PHASE>(*this);
    (store<STORED, PHASE>(), ...);
    advance(newest, UpTo<Plan::RINGS>{});
    if constexpr (!Plan::ROTATES) all_grow_older(UpTo<KEPT_ROWS>{});
  }
  // ITERATION: its number in a block of rows whose ends are known in advance, if it is one (see `BlockSums`).
  template <int ITERATION, int... PHASE> __device__ __forceinline__ void iteration(Numbers<PHASE...>) {
    (next_row<ITERATION, PHASE>(UpTo<N::COUNT>{}, Stored{}), ...);
  }
  __device__ __forceinline__ void run() {
    fill(UpTo<Plan::AHEAD>{});
    for (; r < y1 + Plan::LAST_LAG; r += PERIOD) iteration<-1>(UpTo<PERIOD>{});
  }
};

template <class Plan>
__device__ __forceinline__ void advance_interior(const Arguments& a, const Region& tile, int source, int target,
                                                 long long step0, unsigned char* shared) {
  Stream2D<Plan>(a, tile, source, target, step0, shared).run();
}
template <class Plan> struct InteriorTiles {
  static constexpr bool ANY = true;
  static constexpr int WARP_BYTES = Plan::WARP_BYTES;
  template <class... Norms>
  __device__ __forceinline__ static void advance(const Arguments& a, const Region& tile, int source, int target,
                                                 long long step0, unsigned char* shared, const Norms&... norms) {
    advance_interior<Plan>(a, tile, source, target, step0, shared, norms...);
  }
};
