// The three-point stencil on a line that several devices share: an OpenMP thread for each, OpenACC on each (device.c).
//
//     make -C examples/directives
//     examples/directives/three_points DEVICES STEPS FIRST LAST
//
// FIRST and LAST are files of float32 values: those at the start, and those after STEPS steps. The first and the last
// cell of the line never change. Each device holds a part of the line with one ghost cell at either end; after a step
// the threads hand the outermost cells of their parts to one another through the host's memory. Prints the kind of
// device and the seconds of the steps.

#include "device.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  float first, last; // the outermost cells of a part
} Ends;

static void fail(const char *sentence, const char *name) {
  fprintf(stderr, "three_points: %s '%s'.\n", sentence, name);
  exit(2);
}

static float *read_line(const char *name, long *cells) {
  FILE *file = fopen(name, "rb");
  if (!file || fseek(file, 0, SEEK_END))
    fail("no file can be read at", name);
  *cells = ftell(file) / (long)sizeof(float);
  float *values = malloc(*cells * sizeof(float));
  rewind(file);
  if (!values || fread(values, sizeof(float), *cells, file) != (size_t)*cells)
    fail("the values do not come from", name);
  fclose(file);
  return values;
}

static void write_line(const char *name, const float *values, long cells) {
  FILE *file = fopen(name, "wb");
  if (!file || fwrite(values, sizeof(float), cells, file) != (size_t)cells || fclose(file))
    fail("the values cannot be written to", name);
}

// Ghost cells from the neighbours' ends. Two sets of ends take turns, so that one barrier a step is enough.
static void exchange(float *out, long n, Ends *ends, int part, int parts) {
  device_fetch_ends(out, n);
  ends[part] = (Ends){out[1], out[n]};
#pragma omp barrier
  if (part > 0)
    out[0] = ends[part - 1].last;
  if (part < parts - 1)
    out[n + 1] = ends[part + 1].first;
  device_store_ghosts(out, n);
}

// One thread's part of the line, from its left ghost cell on. Returns the seconds of the steps.
static double work(float *line, long n, long steps, Ends *ends, int part, int parts) {
  float *u = malloc((n + 2) * sizeof(float)), *v = malloc((n + 2) * sizeof(float));
  for (long i = 0; i < n + 2; i++)
    u[i] = v[i] = line[i];
  device_open(u, v, n);
#pragma omp barrier
  const double began = omp_get_wtime();
  for (long s = 0; s < steps; s++) {
    float *in = s % 2 ? v : u, *out = s % 2 ? u : v;
    device_step(in, out, n);
    exchange(out, n, ends + s % 2 * parts, part, parts);
  }
#pragma omp barrier
  const double seconds = omp_get_wtime() - began;
  device_close(u, v, n);
  for (long i = 1; i <= n; i++)
    line[i] = steps % 2 ? v[i] : u[i];
  free(u);
  free(v);
  return seconds;
}

static double run(float *line, long cells, int parts, long steps) {
  Ends *ends = malloc(2 * parts * sizeof(Ends));
  double seconds = 0;
#pragma omp parallel num_threads(parts) reduction(max : seconds)
  {
    const int part = omp_get_thread_num(), gpus = device_gpus();
    if (gpus)
      device_take(part % gpus);
    const long first = part * (cells - 2) / parts, next = (part + 1) * (cells - 2) / parts;
    seconds = work(line + first, next - first, steps, ends, part, parts);
  }
  free(ends);
  return seconds;
}

int main(int argc, char **argv) {
  const int parts = argc == 5 ? atoi(argv[1]) : 0;
  const long steps = argc == 5 ? atol(argv[2]) : -1;
  if (parts < 1 || steps < 0) {
    fprintf(stderr, "usage: three_points DEVICES STEPS FIRST LAST\n");
    return 2;
  }
  long cells;
  float *line = read_line(argv[3], &cells);
  if (cells < parts + 2)
    fail("there are not enough cells for every device in", argv[3]);
  const double seconds = run(line, cells, parts, steps);
  write_line(argv[4], line, cells);
  printf("%s %.6f\n", device_gpus() ? "gpu" : "cpu", seconds);
  free(line);
  return 0;
}
