// Strips along a grid's sides, such as absorbing layers, for `stream2d.cuh`: a stage has several updates, and the
// distance from the side, along AXIS, selects the one that applies to a cell; where none does, a cell keeps its value.
// Rows of a strip along axis 0 branch together; columns of a strip along axis 1 select.
//
// A plan says, of each stage: CHOICES, its updates; BOUNDS[CHOICES], from where to where each applies along AXIS;
// FIRST_CHOICE, their number among those of all stages; FIELD_OF[WRITTEN] and CARRIED[WRITTEN], of its results.

#include "bounds.cuh"

template <class Plan> struct Strip {
  static constexpr int PACK = 1;

  int rows[Plan::FIELDS][2];       // which the device holds
  int columns[Plan::FIELDS];       // whether it holds the lane's (bytes would cost instructions)
  int stored[Plan::FIELDS][2][2];  // the bounds of what is stored
  bool in[Plan::ALL_CHOICES][Plan::COLUMNS];
  R profiles[Plan::MOST_PROFILES][Plan::COLUMNS];

  __device__ __forceinline__ Strip(const Arguments& a, const Region& tile, int x) {
    know(a, x, typename Plan::Loaded{});
    bound(tile, typename Plan::Stored{});
    if constexpr (Plan::AXIS == 1) choose(x, UpTo<Plan::STAGES>{});
    fill(a, x, UpTo<Plan::PROFILE_COUNT>{});
  }
  template <int... FIELD> __device__ __forceinline__ void know(const Arguments& a, int x, Numbers<FIELD...>) {
    ((rows[FIELD][0] = known_from<FIELD, 0>(a), rows[FIELD][1] = known_to<FIELD, 0>(a),
      columns[FIELD] = x + Plan::COLUMNS > known_from<FIELD, 1>(a) && x < known_to<FIELD, 1>(a)),
     ...);
  }
  template <int... FIELD> __device__ __forceinline__ void bound(const Region& tile, Numbers<FIELD...>) {
    ((stored[FIELD][0][0] = max(tile.lo[0], BOX[FIELD][0][0]), stored[FIELD][0][1] = min(tile.hi[0], BOX[FIELD][0][1]),
      stored[FIELD][1][0] = max(tile.lo[1], BOX[FIELD][1][0]), stored[FIELD][1][1] = min(tile.hi[1], BOX[FIELD][1][1])),
     ...);
  }
  template <int... STAGE> __device__ __forceinline__ void choose(int x, Numbers<STAGE...>) {
    (choose_of<typename Plan::template Stage<STAGE>>(x, UpTo<Plan::template Stage<STAGE>::CHOICES>{}), ...);
  }
  template <class Stage, int... CHOICE> __device__ __forceinline__ void choose_of(int x, Numbers<CHOICE...>) {
    (choose_columns<Stage, CHOICE>(x, UpTo<Plan::COLUMNS>{}), ...);
  }
  template <class Stage, int CHOICE, int... C> __device__ __forceinline__ void choose_columns(int x, Numbers<C...>) {
    ((in[Stage::FIRST_CHOICE + CHOICE][C] = applies<Stage, CHOICE>(x + C)), ...);
  }
  template <class Stage, int CHOICE> __device__ __forceinline__ static bool applies(int at) {
    constexpr int least = Stage::BOUNDS[CHOICE][0], most = Stage::BOUNDS[CHOICE][1];
    return (least == -FAR || at >= least) && (most == FAR || at < most);
  }
  // Profiles along axis 1 stay; where the device has none, the nearest, which is never used.
  template <int... NUMBER> __device__ __forceinline__ void fill(const Arguments& a, int x, Numbers<NUMBER...>) {
    (fill_columns<NUMBER, Plan::PROFILES[NUMBER][0]>(a, x, UpTo<Plan::COLUMNS>{}), ...);
  }
  template <int NUMBER, int FIELD, int... C>
  __device__ __forceinline__ void fill_columns(const Arguments& a, int x, Numbers<C...>) {
    ((profiles[NUMBER][C] = coefficient<FIELD, 1>(a, x + (C + Plan::PROFILES[NUMBER][1]))), ...);
  }
  __device__ static constexpr int profile_number(int field, int offset) {
    for (int k = 0; k < Plan::PROFILE_COUNT; ++k)
      if (Plan::PROFILES[k][0] == field && Plan::PROFILES[k][1] == offset) return k;
    return -1;
  }

  // ------------------------------ what `Stream2D` asks
  __device__ __forceinline__ static int left(const Region& tile) {
    const int column = (tile.lo[1] & ~7) - Plan::MARGIN;
    return GRID_WRAPS[1] ? column : max(column, 0);
  }
  __device__ __forceinline__ static int first(const Region& tile) {
    return GRID_WRAPS[0] ? tile.lo[0] - Plan::ABOVE : max(tile.lo[0] - Plan::ABOVE, 0);
  }
  __device__ __forceinline__ static int last(const Region& tile) {
    return GRID_WRAPS[0] ? tile.hi[0] + Plan::BELOW : min(tile.hi[0] + Plan::BELOW, GRID_SHAPE[0]);
  }
  template <int FIELD> __device__ __forceinline__ bool has(int row) const {
    return columns[FIELD] && row >= rows[FIELD][0] && row < rows[FIELD][1];
  }
  template <int FIELD, class Tile> __device__ __forceinline__ bool stores(const Tile&, int row, int lag) const {
    return row >= stored[FIELD][0][0] + lag && row < stored[FIELD][0][1] + lag;
  }
  template <int FIELD, int C, class Tile> __device__ __forceinline__ bool stores_column(const Tile& tile) const {
    return tile.x + C >= stored[FIELD][1][0] && tile.x + C < stored[FIELD][1][1];
  }
  template <int FIELD, int AXIS, int J, int C, class Tile>
  __device__ __forceinline__ R profile(const Tile& tile, int row) const {
    if constexpr (AXIS == 1)
      return profiles[profile_number(FIELD, J)][C];
    else
      return coefficient<FIELD, 0>(tile.a, row);
  }
  template <int NODE, int PHASE, class Stage, class Tile, int... K>
  __device__ __forceinline__ void update(Tile& tile, Numbers<K...>) const {
    (carry<NODE, PHASE, Stage, K>(tile), ...);
    apply_all<NODE, PHASE, Stage>(tile, UpTo<Stage::CHOICES>{});
  }
  template <int NODE, int PHASE, class Stage, int K, class Tile>
  __device__ __forceinline__ static void carry(Tile& tile) {
    if constexpr (Stage::CARRIED[K]) {
      constexpr int field = Stage::FIELD_OF[K];
      copy(tile.template result<NODE, K, PHASE>(), tile.template row_before<NODE, NODE % Plan::STAGES, field, PHASE>(),
           UpTo<Plan::COLUMNS>{});
    }
  }
  template <int... C> __device__ __forceinline__ static void copy(Row<Plan>& to, const Row<Plan>& from, Numbers<C...>) {
    ((to.at[C] = from.at[C]), ...);
  }
  template <int NODE, int PHASE, class Stage, class Tile, int... CHOICE>
  __device__ __forceinline__ void apply_all(Tile& tile, Numbers<CHOICE...>) const {
    (apply<NODE, PHASE, Stage, CHOICE>(tile, UpTo<Plan::COLUMNS>{}), ...);
  }
  template <int NODE, int PHASE, class Stage, int CHOICE, class Tile, int... C>
  __device__ __forceinline__ void apply(Tile& tile, Numbers<C...>) const {
    if (Plan::AXIS == 1 || applies<Stage, CHOICE>(tile.r + (PHASE - Tile::N::lag(NODE))))
      (apply_to<NODE, PHASE, Stage, CHOICE, C>(tile), ...);
  }
  template <int NODE, int PHASE, class Stage, int CHOICE, int C, class Tile>
  __device__ __forceinline__ void apply_to(Tile& tile) const {
    if (Plan::AXIS == 0 || in[Stage::FIRST_CHOICE + CHOICE][C])
      Stage::template update<CHOICE>(Cell<Tile, NODE, PHASE, C>{tile, tile.a});
  }
};

template <class Plan>
__device__ __forceinline__ void advance_strip(const Arguments& a, const Region& tile, int source, int target,
                                              long long step0, unsigned char* shared) {
  Stream2D<Plan, Strip<Plan>>(a, tile, source, target, step0, shared).run();
}
// Tiles of all strips, two along each axis at most, by a warp each; `variant` says which one's.
template <class... Plans> struct StripTiles {
  static constexpr int WARP_BYTES = (max_of(Plans::WARP_BYTES...) + 127) / 128 * 128;
  static_assert(sizeof...(Plans) <= 4);

  template <class... Norms>
  __device__ __forceinline__ static void advance(const Arguments& a, const Region& tile, int source, int target,
                                                 long long step0, unsigned char* shared, const Norms&... norms) {
    switch (tile.variant) {
      case 0: advance_in<0>(a, tile, source, target, step0, shared, norms...); break;
      case 1: advance_in<1>(a, tile, source, target, step0, shared, norms...); break;
      case 2: advance_in<2>(a, tile, source, target, step0, shared, norms...); break;
      case 3: advance_in<3>(a, tile, source, target, step0, shared, norms...); break;
    }
  }
  template <int NUMBER, class... Given>
  __device__ __forceinline__ static void advance_in(const Arguments& a, const Region& tile, const Given&... given) {
    if constexpr (NUMBER < sizeof...(Plans)) advance_strip<Pick<NUMBER, Plans...>>(a, tile, given...);
  }
};
