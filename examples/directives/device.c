#include "device.h"
#include <openacc.h>

int device_gpus(void) { return acc_get_num_devices(acc_device_nvidia); }

void device_take(int number) { acc_set_device_num(number, acc_device_nvidia); }

void device_open(const float *u, const float *v, long n) {
#pragma acc enter data copyin(u[0 : n + 2], v[0 : n + 2])
}

void device_step(const float *restrict in, float *restrict out, long n) {
#pragma acc parallel loop present(in[0 : n + 2], out[0 : n + 2])
  for (long i = 1; i <= n; i++)
    out[i] = 0.5f * in[i] + 0.25f * in[i - 1] + 0.25f * in[i + 1];
}

void device_fetch_ends(float *out, long n) {
#pragma acc update host(out[1 : 1])
#pragma acc update host(out[n : 1])
}

void device_store_ghosts(const float *out, long n) {
#pragma acc update device(out[0 : 1])
#pragma acc update device(out[n + 1 : 1])
}

void device_close(float *u, float *v, long n) {
#pragma acc exit data copyout(u[0 : n + 2], v[0 : n + 2])
}
