// Lists of constants and of types, for what is written out at compile time.

template <int... I> struct Numbers {};
template <int N, int... I> struct Counted : Counted<N - 1, N - 1, I...> {};
template <int... I> struct Counted<0, I...> {
  using All = Numbers<I...>;
};
template <int N> using UpTo = typename Counted<N>::All;  // 0, 1, …, N - 1

template <int NUMBER, class First, class... Others> struct Picked : Picked<NUMBER - 1, Others...> {};
template <class First, class... Others> struct Picked<0, First, Others...> {
  using Type = First;
};
template <int NUMBER, class... All> using Pick = typename Picked<NUMBER, All...>::Type;

__device__ constexpr int max_of(int one) { return one; }
template <class... Others> __device__ constexpr int max_of(int one, Others... others) {
  const int most = max_of(others...);
  return one > most ? one : most;
}
