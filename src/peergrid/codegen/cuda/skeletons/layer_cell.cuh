// One cell of a layer that is narrow along rows, and what its update is given. own: its values of the fields of the layer
// alone, and of profiles along rows.
template <class Plan, class N, class U> struct LayerCell {
  const Stream<Plan>& stream;
  const Place& place;
  R* const own;

  template <class F, int Z, int Y, int X> __device__ __forceinline__ R* at() const {
    const int slot = stream.F::Slots::slot[F::Slots::index(N::LEAD + Z)];
    const int row = place.y - stream.top + F::ABOVE + Y, column = place.x - stream.left + F::LEFT + X;
    return stream.shared + (slot + F::START) + (row * F::WIDTH + column);
  }
  template <int FIELD> __device__ __forceinline__ long long memory() const {
    const Field& field = stream.a.fields[FIELD];
    return stream.plane_at(field, stream.plane + N::LEAD) + (place.y * static_cast<int>(field.pitch[1]) + place.x);
  }
  template <class F, int Z, int Y, int X> __device__ __forceinline__ R operator()(Read<F, Z, Y, X>) const {
    return *at<F, Z, Y, X>();
  }
  template <int K> __device__ __forceinline__ R operator()(Mine<K>) const { return own[K]; }
  template <int FIELD, int AXIS, int OFFSET> __device__ __forceinline__ R operator()(Along<FIELD, AXIS, OFFSET>) const {
    const int index = AXIS == 0 ? stream.plane + N::LEAD : AXIS == 1 ? place.y : place.x;
    return __ldg(stream.a.fields[FIELD].slot[0] + index + OFFSET);
  }

  __device__ __forceinline__ void load() const { load(0, typename U::Loads{}); }
  template <class First, class... More> __device__ __forceinline__ void load(int number, List<First, More...>) const {
    own[number] = load(First{});
    load(number + 1, List<More...>{});
  }
  __device__ __forceinline__ void load(int, List<>) const {}
  template <int FIELD> __device__ __forceinline__ R load(Here<FIELD>) const {
    return block_of<FIELD, SOURCE>(stream.a)[memory<FIELD>()];
  }
  template <int FIELD, int AXIS, int OFFSET> __device__ __forceinline__ R load(Along<FIELD, AXIS, OFFSET> read) const {
    return (*this)(read);
  }

  __device__ __forceinline__ void correct() const {
    Cells found[U::VALUES];
    U::update(*this, stream.a, stream.step, found);
    leave(found, typename U::Makes{});
  }
  template <class... M> __device__ __forceinline__ void leave(const Cells* found, List<M...>) const {
    (leave(found[M::N].v[0], M{}), ...);
  }
  template <int K, int FIELD> __device__ __forceinline__ void leave(R value, Own<K, FIELD>) const {
    const Region& tile = stream.tile;
    const int z = stream.plane + N::LEAD, y = place.y, x = place.x;
    if (z >= tile.lo[0] && z < tile.hi[0] && y >= tile.lo[1] && y < tile.hi[1] && x >= tile.lo[2] && x < tile.hi[2])
      block_of<FIELD, TARGET>(stream.a)[memory<FIELD>()] = value;
  }
  template <int K, class M, class Ring> __device__ __forceinline__ void leave(R value, InPlace<K, M, Ring>) const {
    if constexpr (!Same<Ring, void>::value) *at<Ring, 0, 0, 0>() = value;
    if constexpr (M::FIELD >= 0) store<M>(value);
  }
  template <class M> __device__ __forceinline__ void store(R value) const {
    const int z = stream.plane + N::LEAD, y = place.y, x = place.x;
    if (z >= stream.template lowest<M>(0) && z < stream.template highest<M>(0) && y >= stream.template lowest<M>(1) &&
        y < stream.template highest<M>(1) && x >= stream.template lowest<M>(2) && x < stream.template highest<M>(2))
      block_of<M::FIELD, M::VERSION>(stream.a)[memory<M::FIELD>()] = value;
  }
};
