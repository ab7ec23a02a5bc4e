// A part of the line on one device: n cells between two ghost cells, as it was and as it will be.

int device_gpus(void);                                // GPUs that the compiler was built for; 0: the processor works
void device_take(int number);                         // the calling thread works with this GPU from now on
void device_open(const float *u, const float *v, long n); // both lines have memory on the device
void device_step(const float *in, float *out, long n);    // cells 1 to n, from those before
void device_fetch_ends(float *out, long n);           // cells 1 and n come to the host
void device_store_ghosts(const float *out, long n);   // cells 0 and n + 1 go to the device
void device_close(float *u, float *v, long n);        // both lines come to the host
