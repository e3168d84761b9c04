/* Writes what MindSpore's pool on the CPU is asked for, one line per call: start (ns since the epoch), A (allocation)
 * or F (release), address, size that was asked for, end; and R for each sample that the profiler takes.
 * gcc -O1 -shared -fPIC -o interposed.so interposed.c -ldl; LD_PRELOAD=./interposed.so CALLS=calls python train.py
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static FILE *calls;

static long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void *real(const char *name) {
  const char *libraries[] = {"libmindspore_memory_pool.so", "libmindspore_cpu.so"};
  for (int i = 0; i < 2; i++) {
    void *library = dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD);
    void *found = library ? dlsym(library, name) : NULL;
    if (found) return found;
  }
  abort();
}

static void told(long start, char kind, void *address, size_t size) {
  if (!calls) {
    char path[256];
    snprintf(path, sizeof path, "%s.%d", getenv("CALLS"), getpid());
    calls = fopen(path, "w");
  }
  fprintf(calls, "%ld %c %p %zu %ld\n", start, kind, address, size, now());
}

__attribute__((destructor)) static void end(void) {
  if (calls) fflush(calls);
}

#define ALLOCATION(symbol)                                                                \
  void *symbol(void *pool, size_t size, _Bool one, _Bool two, unsigned stream) {          \
    static void *(*call)(void *, size_t, _Bool, _Bool, unsigned);                         \
    if (!call) call = real(#symbol);                                                      \
    long start = now();                                                                   \
    void *address = call(pool, size, one, two, stream);                                   \
    told(start, 'A', address, size);                                                      \
    return address;                                                                       \
  }
#define RELEASE(symbol)                                                                   \
  void symbol(void *pool, void *const *block) {                                           \
    static void (*call)(void *, void *const *);                                           \
    if (!call) call = real(#symbol);                                                      \
    void *address = *block;                                                               \
    long start = now();                                                                   \
    call(pool, block);                                                                    \
    told(start, 'F', address, 0);                                                         \
  }

ALLOCATION(_ZN9mindspore6device21DynamicMemPoolBestFit14AllocTensorMemEmbbj)
ALLOCATION(_ZTv0_n48_N9mindspore6device21DynamicMemPoolBestFit14AllocTensorMemEmbbj)
RELEASE(_ZN9mindspore6device21DynamicMemPoolBestFit13FreeTensorMemERKPv)
RELEASE(_ZTv0_n64_N9mindspore6device21DynamicMemPoolBestFit13FreeTensorMemERKPv)

void _ZN9mindspore8profiler3cpu11CPUProfiler20RecordMemoryPoolInfoEmmm(void *self, size_t used, size_t all, size_t active) {
  static void (*call)(void *, size_t, size_t, size_t);
  if (!call) call = real("_ZN9mindspore8profiler3cpu11CPUProfiler20RecordMemoryPoolInfoEmmm");
  call(self, used, all, active);
  told(now(), 'R', NULL, used);
}
