// A CUDA driver without a GPU: device memory that neither the process nor the kernel on its behalf can access
// at its addresses. Only the driver's copies reach it, through a second mapping. As with a driver of a GPU, a
// thread needs a current context, and each call takes a host time of its own, reads clocks, and sleeps.
// What it answers about memory is what a driver of a GPU answers (answers.txt).
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

enum {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  invalid_device = 101,
  invalid_context = 201,
};
enum { of_nothing = 0, of_host = 1, of_device = 2 };  // CUmemorytype
enum { page_bytes = 4096, step_bytes = 512, granule_bytes = 2 << 20, depth = 8, most_allocations = 128 };

struct Allocation {
  uint64_t begin;
  uint64_t bytes;
  void* context;
  unsigned type;  // of_nothing: a reserved range of addresses
  unsigned is_managed;
  uint64_t range_begin;  // what is reported as the allocation
  uint64_t range_bytes;
};

static struct Allocation allocations[most_allocations];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char* device_memory;  // the addresses
static char* alias;          // the memory itself
static uint64_t used_bytes;
static int context_of_program;
static int context_of_device;
static int users_of_device;
static int was_device_used;
static int is_initialized;
// The last short copy to the device, until a call in the same context waits for it.
static struct {
  void* context;
  uint64_t to;
  size_t bytes;  // 0: it has ended
  char from[64 << 10];
} copying;
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

// That of memory, if the address is in one; otherwise that of a reserved range.
static struct Allocation* find(uint64_t address) {
  struct Allocation* found = NULL;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < most_allocations; ++i) {
    struct Allocation* one = &allocations[i];
    if (address - one->begin < one->bytes && (found == NULL || found->type == of_nothing)) found = one;
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

static int keep_whole(uint64_t begin, uint64_t bytes, void* context, unsigned type, unsigned is_managed) {
  return keep((struct Allocation){begin, bytes, context, type, is_managed, begin, bytes});
}

static int map_device_memory(void) {
  static const size_t bytes = (size_t)8 << 40;
  const int file = memfd_create("device", 0);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) return out_of_memory;
  alias = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  device_memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  close(file);
  return alias != MAP_FAILED && device_memory != MAP_FAILED ? success : out_of_memory;
}

// Small allocations share pages. Addresses are not used again.
static uint64_t next_address(size_t bytes) {
  const uint64_t alignment = bytes < granule_bytes ? step_bytes : granule_bytes;
  pthread_mutex_lock(&mutex);
  const uint64_t begin =
      ((uint64_t)(uintptr_t)device_memory + used_bytes + alignment - 1) / alignment * alignment;
  used_bytes = begin + bytes - (uint64_t)(uintptr_t)device_memory;
  pthread_mutex_unlock(&mutex);
  return begin;
}

static int allocate(unsigned long long* address, size_t bytes, void* context) {
  *address = next_address(bytes);
  return keep_whole(*address, bytes, context, of_device, 0);
}

static char* pages_of_host(size_t bytes) {
  void* pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages != MAP_FAILED ? pages : NULL;
}

static void* current(void) {
  return used_contexts > 0 ? contexts[used_contexts - 1] : NULL;
}

// The range may lie in several allocations.
static int is_device_memory(uint64_t address, size_t bytes) {
  while (bytes > 0) {
    const struct Allocation* memory = find(address);
    if (memory == NULL || memory->type != of_device || memory->is_managed) return 0;
    const uint64_t left = memory->begin + memory->bytes - address;
    const size_t part = bytes < left ? bytes : left;
    address += part;
    bytes -= part;
  }
  return 1;
}

static char* alias_of(uint64_t address) {
  return alias + (address - (uint64_t)(uintptr_t)device_memory);
}

static void end_copy(void) {
  memcpy(alias_of(copying.to), copying.from, copying.bytes);
  copying.bytes = 0;
}

// Calls of one context are in order, those of different ones are not.
static void wait_in_context(void) {
  if (copying.bytes != 0 && copying.context == current()) end_copy();
}

// Drivers have threads of their own, which look at their files from time to time.
static void* watch(void* nothing) {
  for (;;) poll(NULL, 0, 1);
  return nothing;
}

int cuInit(unsigned flags) {
  WORK();
  if (flags != 0) return invalid_value;
  if (is_initialized) return success;
  pthread_t watcher;
  if (pthread_create(&watcher, NULL, watch, NULL) != 0 || pthread_detach(watcher) != 0) return out_of_memory;
  is_initialized = 1;
  return map_device_memory();
}

int cuCtxCreate_v2(void** context, unsigned flags, int device) {
  WORK();
  if (!is_initialized) return not_initialized;
  if (flags != 0 || device != 0) return invalid_value;
  *context = contexts[used_contexts++] = &context_of_program;
  return success;
}

int cuCtxPushCurrent_v2(void* context) {
  WORK();
  if (context == NULL || used_contexts == depth) return invalid_value;
  contexts[used_contexts++] = context;
  return success;
}

int cuCtxPopCurrent_v2(void** context) {
  WORK();
  if (used_contexts == 0) return invalid_context;
  *context = contexts[--used_contexts];
  return success;
}

// Once only: a driver of a GPU needs a good part of a second to create the context.
int cuDevicePrimaryCtxRetain(void** context, int device) {
  WORK();
  if (device != 0) return invalid_device;
  if (users_of_device == 0 && was_device_used) return out_of_memory;
  ++users_of_device;
  was_device_used = 1;
  *context = &context_of_device;
  return success;
}

int cuCtxGetCurrent(void** context) {
  WORK();
  *context = current();
  return success;
}

int cuCtxGetDevice(int* device) {
  WORK();
  *device = 0;
  return current() != NULL ? success : invalid_context;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  WORK();
  if (device != 0 || users_of_device == 0) return invalid_context;
  --users_of_device;
  return success;
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
  char* memory = flags != 0 ? pages_of_host(bytes) : NULL;
  *address = (unsigned long long)(uintptr_t)memory;
  return memory != NULL ? keep_whole(*address, bytes, current(), of_device, 1) : invalid_value;
}

int cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  WORK();
  *memory = flags == 0 ? pages_of_host(bytes) : NULL;
  return *memory != NULL ? keep_whole((uintptr_t)*memory, bytes, current(), of_host, 0) : invalid_value;
}

int cuMemHostRegister_v2(void* memory, size_t bytes, unsigned flags) {
  WORK();
  return flags == 0 ? keep_whole((uintptr_t)memory, bytes, current(), of_host, 0) : invalid_value;
}

int cuMemAddressReserve(unsigned long long* begin, size_t bytes, size_t alignment, unsigned long long wanted,
                        unsigned long long flags) {
  WORK();
  if (alignment != 0 || wanted != 0 || flags != 0 || bytes % granule_bytes != 0) return invalid_value;
  *begin = next_address(bytes);
  return keep_whole(*begin, bytes, NULL, of_nothing, 0);
}

int cuMemCreate(unsigned long long* handle, size_t bytes, const void* properties, unsigned long long flags) {
  WORK();
  static unsigned long long handles;
  *handle = ++handles;
  return bytes % granule_bytes == 0 && properties != NULL && flags == 0 ? success : invalid_value;
}

// Mapped memory belongs to no context, and reports its reserved range as the allocation.
int cuMemMap(unsigned long long begin, size_t bytes, size_t offset, unsigned long long handle,
             unsigned long long flags) {
  WORK();
  const struct Allocation* range = find(begin);
  if (range == NULL || range->type != of_nothing || offset != 0 || handle == 0 || flags != 0)
    return invalid_value;
  return keep((struct Allocation){begin, bytes, NULL, of_device, 0, range->begin, range->bytes});
}

int cuMemSetAccess(unsigned long long begin, size_t bytes, const void* access, size_t count) {
  WORK();
  return begin != 0 && bytes != 0 && access != NULL && count == 1 ? success : invalid_value;
}

int cuMemUnmap(unsigned long long begin, size_t bytes) {
  WORK();
  struct Allocation* memory = find(begin);
  if (memory == NULL || memory->type != of_device || memory->begin != begin || memory->bytes != bytes)
    return invalid_value;
  memory->bytes = 0;
  return success;
}

int cuMemFree_v2(unsigned long long address) {
  WORK();
  struct Allocation* memory = find(address);
  if (memory == NULL || memory->begin != address) return invalid_value;
  if (memory->is_managed) munmap((void*)(uintptr_t)address, memory->bytes);
  memory->bytes = 0;
  return success;
}

// The memory is managed.
int cuMemsetD8_v2(unsigned long long address, unsigned char value, size_t bytes) {
  WORK();
  memset((void*)(uintptr_t)address, value, bytes);
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

// Any context reaches the memory. As short copies of pageable memory do, it may end later.
int cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t bytes) {
  WORK();
  compile();
  if (current() == NULL) return invalid_context;
  if (!is_device_memory(to, bytes)) return invalid_value;
  if (copying.bytes != 0) end_copy();
  copying.context = current();
  copying.to = to;
  copying.bytes = bytes <= sizeof copying.from ? bytes : 0;
  memcpy(copying.bytes != 0 ? copying.from : alias_of(to), from, bytes);
  return success;
}

int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
  WORK();
  if (current() == NULL) return invalid_context;
  if (!is_device_memory(from, bytes)) return invalid_value;
  wait_in_context();
  memcpy(to, alias_of(from), bytes);
  return success;
}

// Waits in code that is not the driver's own: the C library calls the sleep.
int cuStreamSynchronize(void* stream) {
  WORK();
  unsigned short random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) abort();
  thrd_sleep(&(struct timespec){0, random}, NULL);
  if (current() == NULL) return invalid_context;
  wait_in_context();
  return stream == NULL ? success : invalid_value;
}

// The range of memory that the driver does not know is left as it is.
int cuPointerGetAttributes(unsigned count, int* attributes, void** data, unsigned long long address) {
  WORK();
  if (!is_initialized) return not_initialized;
  const struct Allocation* found = find(address);
  const int is_known = found != NULL && found->type != of_nothing;
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case 1:
        *(void**)data[i] = is_known ? found->context : NULL;
        break;
      case 2:
        *(unsigned*)data[i] = is_known ? found->type : of_nothing;
        break;
      case 8:
        *(unsigned char*)data[i] = is_known && found->is_managed;
        break;
      case 9:
        *(int*)data[i] = is_known ? 0 : -2;
        break;
      case 11:
        if (found != NULL) *(uint64_t*)data[i] = found->range_begin;
        break;
      case 12:
        if (found != NULL) *(size_t*)data[i] = found->range_bytes;
        break;
      default:
        return invalid_value;
    }
  }
  return success;
}

int cuGetErrorName(int error, const char** name) {
  static const struct {
    int error;
    const char* name;
  } known[] = {{success, "CUDA_SUCCESS"},
               {invalid_value, "CUDA_ERROR_INVALID_VALUE"},
               {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY"},
               {not_initialized, "CUDA_ERROR_NOT_INITIALIZED"},
               {5, "CUDA_ERROR_PROFILER_DISABLED"},
               {invalid_device, "CUDA_ERROR_INVALID_DEVICE"},
               {invalid_context, "CUDA_ERROR_INVALID_CONTEXT"},
               {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
               {719, "CUDA_ERROR_LAUNCH_FAILED"}};
  *name = NULL;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i) {
    if (known[i].error == error) *name = known[i].name;
  }
  return *name != NULL ? success : invalid_value;
}
