// A half step as a pass of peergrid's: the words of a box, from one slot of the field to the other. Whatever brings them to
// the other GPUs comes between passes.

struct HalfStep {
  const uint4* neighbours[2];  // of red, of blue: of the variables that this GPU owns
  u32 origin;                  // their first word
  u32 limits[5], seed[2];
};

extern "C" __global__ void __launch_bounds__(256) half_step_pass(const __grid_constant__ Arguments a,
                                                                 const __grid_constant__ HalfStep h) {
  const u32 first = a.lo[0], last = a.hi[0], group = group_of(first);
  const u32* const other = reinterpret_cast<const u32*>(a.fields[0].slot[a.source]);
  const u64 step = (u64)(a.step + (a.clock ? *a.clock : 0));
  const u32 mine = drawn_word(h, h.neighbours[a.target], h.origin, other, first, last, group, step);
  const u32 word = group * GROUP + threadIdx.x % 32;
  if (threadIdx.x % 32 < GROUP && word >= first && word < last)
    reinterpret_cast<u32*>(a.fields[0].slot[a.target])[word] = mine;
}
