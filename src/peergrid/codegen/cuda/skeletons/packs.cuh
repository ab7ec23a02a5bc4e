// The values of W neighbouring cells of a row, in one access of 16 bytes, and arithmetic on them: each operation is the
// IEEE operation on every cell. `R` is the grid's type; `Pack` comes before this text.
constexpr int W = 16 / sizeof(R);
typedef Pack<W> Cells;
struct Mask { bool v[W]; };

__device__ __forceinline__ R element(const Cells& a, int n) { return a.v[n]; }
__device__ __forceinline__ R element(R a, int) { return a; }
__device__ __forceinline__ bool element(const Mask& a, int n) { return a.v[n]; }
__device__ __forceinline__ bool element(bool a, int) { return a; }

// The result type `To` of an operation on the cells of `a` and `b`, either of which may be one value for all.
#define PG_CELLWISE(To, NAME, A, B, VALUE)                         \
  __device__ __forceinline__ To NAME(const A& a, const B& b) {     \
    To found;                                                      \
    _Pragma("unroll") for (int n = 0; n < W; ++n) {                \
      const auto x = element(a, n);                                \
      const auto y = element(b, n);                                \
      found.v[n] = VALUE;                                          \
    }                                                              \
    return found;                                                  \
  }
#define PG_CELLS(To, NAME, VALUE)          \
  PG_CELLWISE(To, NAME, Cells, Cells, VALUE) \
  PG_CELLWISE(To, NAME, Cells, R, VALUE)     \
  PG_CELLWISE(To, NAME, R, Cells, VALUE)
#define PG_MASKS(NAME, VALUE)               \
  PG_CELLWISE(Mask, NAME, Mask, Mask, VALUE) \
  PG_CELLWISE(Mask, NAME, Mask, bool, VALUE) \
  PG_CELLWISE(Mask, NAME, bool, Mask, VALUE)

PG_CELLS(Cells, operator+, x + y)
PG_CELLS(Cells, operator-, x - y)
PG_CELLS(Cells, operator*, x * y)
PG_CELLS(Cells, operator/, x / y)
PG_CELLS(Cells, pg_min, pg_min(x, y))
PG_CELLS(Cells, pg_max, pg_max(x, y))
PG_CELLS(Mask, operator<, x < y)
PG_CELLS(Mask, operator<=, x <= y)
PG_CELLS(Mask, operator>, x > y)
PG_CELLS(Mask, operator>=, x >= y)
PG_CELLS(Mask, operator==, x == y)
PG_CELLS(Mask, operator!=, x != y)
PG_MASKS(operator&&, x && y)
PG_MASKS(operator||, x || y)

// The same of an operation on the cells of `a` alone.
#define PG_EACH(To, NAME, A, VALUE)                  \
  __device__ __forceinline__ To NAME(const A& a) {   \
    To found;                                        \
    _Pragma("unroll") for (int n = 0; n < W; ++n) {  \
      const auto x = element(a, n);                  \
      found.v[n] = VALUE;                            \
    }                                                \
    return found;                                    \
  }

PG_EACH(Cells, operator-, Cells, -x)
PG_EACH(Mask, operator!, Mask, !x)
PG_EACH(Cells, pg_sqrt, Cells, pg_sqrt(x))
PG_EACH(Cells, pg_abs, Cells, pg_abs(x))

// One value for all cells, or a value for each.
PG_EACH(Cells, cells, R, x)
__device__ __forceinline__ Cells cells(const Cells& a) { return a; }
// The values of `a` where the condition holds, of `b` elsewhere.
template <class C, class A, class B> __device__ __forceinline__ Cells pg_where(const C& c, const A& a, const B& b) {
  Cells found;
#pragma unroll
  for (int n = 0; n < W; ++n) found.v[n] = element(c, n) ? element(a, n) : element(b, n);
  return found;
}
// A condition as a number: 1 where it holds, 0 elsewhere.
__device__ __forceinline__ R pg_number(bool c) { return R(c); }
__device__ __forceinline__ Cells pg_number(const Mask& c) { return pg_where(c, R(1), R(0)); }
