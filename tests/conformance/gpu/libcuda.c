// A CUDA driver without a GPU: device memory that neither the process nor the kernel on its behalf can access
// at its addresses. Only the driver's copies reach it, through a second mapping. As with a driver of a GPU, a
// thread needs a current context, and each call takes a host time of its own, reads clocks, and sleeps.
//
// Its first copy loads its compiler if there is one, as a driver does that has to compile kernels
// (ptxjitcompiler.c).
//
// FAKE_CUDA_FAIL=CALL=CODE lets every call of that name fail.
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { success = 0, invalid_value = 1, out_of_memory = 2, invalid_context = 201, most_allocations = 64 };
enum { of_host = 1, of_device = 2 };  // CUmemorytype
enum { page_bytes = 4096, depth = 8 };

struct Allocation {
  uint64_t begin;
  uint64_t bytes;
  char* alias;  // NULL: the memory itself
  void* context;
  unsigned type;
  unsigned is_managed;
};

static struct Allocation allocations[most_allocations];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int context_of_program;
static int context_of_device;
static _Thread_local void* contexts[depth];
static _Thread_local int used_contexts;

static int work(const char* name) {
  unsigned char random = 0;
  if (getrandom(&random, 1, 0) != 1) abort();
  struct timespec now;
  for (int i = 0; i < random % 16; ++i) clock_gettime(CLOCK_MONOTONIC, &now);
  if (random % 8 == 0) usleep(random);
  const char* fails = getenv("FAKE_CUDA_FAIL");
  const size_t length = strlen(name);
  const int fails_here = fails != NULL && strncmp(fails, name, length) == 0 && fails[length] == '=';
  return fails_here ? atoi(fails + length + 1) : success;
}

#define WORK()                            \
  do {                                    \
    const int result = work(__func__);    \
    if (result != success) return result; \
  } while (0)

static struct Allocation* find(uint64_t address) {
  struct Allocation* found = NULL;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < most_allocations; ++i) {
    if (address - allocations[i].begin < allocations[i].bytes) found = &allocations[i];
  }
  pthread_mutex_unlock(&mutex);
  return found;
}

static int keep(struct Allocation allocation) {
  pthread_mutex_lock(&mutex);
  int result = out_of_memory;
  for (int i = 0; i < most_allocations && result != success; ++i) {
    if (allocations[i].bytes != 0) continue;
    allocations[i] = allocation;
    result = success;
  }
  pthread_mutex_unlock(&mutex);
  return result;
}

static int allocate(unsigned long long* address, size_t bytes, void* context) {
  const size_t size = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  const int file = memfd_create("device", 0);
  if (file < 0 || ftruncate(file, (off_t)size) != 0) return out_of_memory;
  char* alias = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* begin = mmap(NULL, size, PROT_NONE, MAP_SHARED, file, 0);
  close(file);
  if (alias == MAP_FAILED || begin == MAP_FAILED) return out_of_memory;
  *address = (unsigned long long)(uintptr_t)begin;
  return keep((struct Allocation){(uintptr_t)begin, bytes, alias, context, of_device, 0});
}

static void* current(void) {
  return used_contexts > 0 ? contexts[used_contexts - 1] : NULL;
}

// NULL: not all of it is device memory, or no context is current that reaches it.
static char* reach(uint64_t address, size_t bytes, int* result) {
  const struct Allocation* memory = find(address);
  const int is_inside =
      memory != NULL && memory->alias != NULL && bytes <= memory->begin + memory->bytes - address;
  *result = is_inside ? success : invalid_value;
  if (!is_inside) return NULL;
  if (current() == NULL || (memory->context != NULL && current() != memory->context))
    *result = invalid_context;
  return *result == success ? memory->alias + (address - memory->begin) : NULL;
}

// Drivers have threads of their own, which look at their files from time to time.
static void* watch(void* nothing) {
  for (;;) poll(NULL, 0, 1);
  return nothing;
}

int cuInit(unsigned flags) {
  WORK();
  pthread_t watcher;
  if (pthread_create(&watcher, NULL, watch, NULL) != 0 || pthread_detach(watcher) != 0) return out_of_memory;
  return flags == 0 ? success : invalid_value;
}

int cuCtxCreate_v2(void** context, unsigned flags, int device) {
  WORK();
  if (flags != 0 || device != 0) return invalid_value;
  *context = contexts[used_contexts++] = &context_of_program;
  return success;
}

int cuCtxPushCurrent_v2(void* context) {
  WORK();
  if (context == NULL || used_contexts == depth) return invalid_context;
  contexts[used_contexts++] = context;
  return success;
}

int cuCtxPopCurrent_v2(void** context) {
  WORK();
  if (used_contexts == 0) return invalid_context;
  *context = contexts[--used_contexts];
  return success;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  WORK();
  *context = &context_of_device;
  return device == 0 ? success : invalid_value;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  WORK();
  return device == 0 ? success : invalid_value;
}

int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  WORK();
  return current() != NULL ? allocate(address, bytes, current()) : invalid_context;
}

// Memory of a pool belongs to no context.
int cuMemAllocAsync(unsigned long long* address, size_t bytes, void* stream) {
  WORK();
  return stream == NULL ? allocate(address, bytes, NULL) : invalid_value;
}

int cuMemAllocManaged(unsigned long long* address, size_t bytes, unsigned flags) {
  WORK();
  void* memory = flags != 0 ? malloc(bytes) : NULL;
  if (memory == NULL) return invalid_value;
  *address = (unsigned long long)(uintptr_t)memory;
  return keep((struct Allocation){(uintptr_t)memory, bytes, NULL, current(), of_device, 1});
}

int cuMemHostRegister_v2(void* memory, size_t bytes, unsigned flags) {
  WORK();
  return flags == 0 ? keep((struct Allocation){(uintptr_t)memory, bytes, NULL, current(), of_host, 0})
                    : invalid_value;
}

// The addresses stay reserved, as those of a driver do.
int cuMemFree_v2(unsigned long long address) {
  WORK();
  struct Allocation* memory = find(address);
  if (memory == NULL || memory->begin != address) return invalid_value;
  if (memory->alias != NULL) munmap(memory->alias, memory->bytes);
  memory->bytes = 0;
  return success;
}

static void compile(void) {
  static int is_done;
  if (is_done) return;
  is_done = 1;
  void* library = dlopen("libnvidia-ptxjitcompiler.so.1", RTLD_NOW);
  if (library == NULL) return;
  void (*compiler)(void) = NULL;
  if ((*(void**)& compiler = dlsym(library, "compile_kernels")) == NULL) abort();
  compiler();
}

int cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t bytes) {
  WORK();
  compile();
  int result = success;
  char* alias = reach(to, bytes, &result);
  if (alias != NULL) memcpy(alias, from, bytes);
  return result;
}

int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
  WORK();
  int result = success;
  const char* alias = reach(from, bytes, &result);
  if (alias != NULL) memcpy(to, alias, bytes);
  return result;
}

// Waits in code that is not the driver's own: the C library calls the sleep.
int cuStreamSynchronize(void* stream) {
  WORK();
  unsigned short random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) abort();
  thrd_sleep(&(struct timespec){0, random}, NULL);
  return stream != NULL ? invalid_value : current() != NULL ? success : invalid_context;
}

int cuPointerGetAttributes(unsigned count, int* attributes, void** data, unsigned long long address) {
  WORK();
  const struct Allocation nothing = {0};
  const struct Allocation* found = find(address);
  if (found == NULL) found = &nothing;
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case 1:
        *(void**)data[i] = found->context;
        break;
      case 2:
        *(unsigned*)data[i] = found->type;
        break;
      case 8:
        *(unsigned char*)data[i] = (unsigned char)found->is_managed;
        break;
      case 9:
        *(int*)data[i] = 0;
        break;
      case 11:
        *(uint64_t*)data[i] = found->begin;
        break;
      case 12:
        *(size_t*)data[i] = found->bytes;
        break;
      default:
        return invalid_value;
    }
  }
  return success;
}

int cuGetErrorName(int error, const char** name) {
  *name = error == invalid_value     ? "CUDA_ERROR_INVALID_VALUE"
          : error == invalid_context ? "CUDA_ERROR_INVALID_CONTEXT"
          : error == 719             ? "CUDA_ERROR_LAUNCH_FAILED"
                                     : NULL;
  return *name != NULL ? success : invalid_value;
}
