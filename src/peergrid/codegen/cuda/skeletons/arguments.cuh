// The arguments of a kernel: see `common/arguments.py`, which fills them.

struct Field { R* slot[2]; long long pitch[2]; long long into[2]; };
struct Signal { const R* samples; long long count; };
struct Region { int lo[3]; int hi[3]; int variant; int first; };
struct Receiver { int cell[3]; int field; int number; };
struct Arguments {
  Field fields[FIELD_COUNT];
  R* scratch[SCRATCH_COUNT];
  Signal signals[SIGNAL_COUNT];
  const Region* regions;
  const Receiver* receivers;
  R* traces;
  const long long* clock;
  long long total_steps;
  long long step;
  R params[PARAM_COUNT];
  int corners[CORNER_COUNT][3];
  int lo[3];
  int hi[3];
  int count;
  int source;
  int target;
};
