// The list of a recorded run, in memory that all devices reach: who takes the next place says there what it did. The
// list begins with the places taken and those there are; a place has eight words: in queues the site, and what a word
// stood at; in kernels that exchange what a tile did (negative), its device, side, passes before, what a counter stood
// at, and its box.

struct Noted { long long* list; long long site; const long long* word; };

__device__ __forceinline__ long long* next_place(long long* const list) {
  __threadfence_system();
  const long long place = (long long)atomicAdd_system((unsigned long long*)list, 1ull);
  __threadfence_system();
  return place < list[1] ? list + 2 + 8 * place : nullptr;
}
// A queue came to a site; what a word stood at then.
extern "C" __global__ void note(const __grid_constant__ Noted n) {
  long long* const place = next_place(n.list);
  if (!place) return;
  place[1] = n.word ? *(const volatile long long*)n.word : 0;
  place[0] = n.site;
}
