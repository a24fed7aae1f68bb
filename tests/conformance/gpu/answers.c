// What a CUDA driver answers about memory, so that a driver without a GPU (libcuda.c) can be compared with a
// real one. No answer depends on an address.
//
//   answers LIBCUDA
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

typedef unsigned long long Device;

enum { bytes = 1000, granule = 2 << 20 };

static void* library;
static void* context;

// A result of its own where the driver has no such function.
static int (*find(const char* name))() {
  int (*function)() = NULL;
  *(void**)&function = dlsym(library, name);
  if (function == NULL) {
    fprintf(stderr, "no %s\n", name);
    exit(5);
  }
  return function;
}

#define CALL(name, ...) find(#name)(__VA_ARGS__)

#define REQUIRE(call)                             \
  do {                                            \
    const int result = call;                      \
    if (result != 0) {                            \
      fprintf(stderr, "%s: %d\n", #call, result); \
      exit(6);                                    \
    }                                             \
  } while (0)

static const char* known(uint64_t address) {
  char byte = 0;
  const struct iovec to = {&byte, 1};
  const struct iovec from = {(void*)(uintptr_t)address, 1};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 ? "is" : "is not";
}

// The address as an offset in the allocation that the driver reports.
static void ask(const char* what, uint64_t address) {
  static int attributes[] = {2, 8, 1, 9, 11, 12};
  const uint64_t untouched = 99;
  unsigned type = untouched;
  unsigned char is_managed[4] = {untouched};
  void* its_context = &library;
  int device = untouched;
  uint64_t begin = untouched;
  uint64_t size = untouched;
  void* values[] = {&type, is_managed, &its_context, &device, &begin, &size};
  const int result = CALL(cuPointerGetAttributes, 6, attributes, values, (Device)address);
  printf("%s: result %d, type %u, managed %d, context %s, device %d, ", what, result, type, is_managed[0],
         its_context == NULL      ? "none"
         : its_context == context ? "own"
                                  : "another",
         device);
  if (begin == untouched && size == untouched) {
    printf("range untouched");
  } else {
    printf("offset %lld of %llu", (long long)(address - begin), (unsigned long long)size);
  }
  printf(", %s the process's\n", known(address));
}

static Device allocate(size_t size) {
  Device address = 0;
  REQUIRE(CALL(cuMemAlloc_v2, &address, size));
  return address;
}

static void ask_of_device_memory(void) {
  const Device first = allocate(bytes);
  const Device second = allocate(bytes);
  const uint64_t apart = second > first ? second - first : first - second;
  ask("allocated", first);
  ask("its last byte", first + bytes - 1);
  printf("alignment: %d of 512, apart %s\n", (int)(first % 512),
         apart < 4096 ? "less than 4096" : "4096 or more");
  ask("before the second", second - 1);
  ask("second", second);
  REQUIRE(CALL(cuMemFree_v2, second));
  ask("freed", second);
  printf("freed twice: %d\n", CALL(cuMemFree_v2, second));
  static char host[2 * granule];
  printf("copy from freed: %d\n", CALL(cuMemcpyDtoH_v2, host, second, (size_t)bytes));
  printf("copy to freed: %d\n", CALL(cuMemcpyHtoD_v2, second, host, (size_t)bytes));
  printf("copy of nothing: %d\n", CALL(cuMemcpyDtoH_v2, host, first, (size_t)0));
  printf("copy beyond: %d\n", CALL(cuMemcpyDtoH_v2, host, first, (size_t)bytes + 1));
  printf("copy far beyond: %d\n", CALL(cuMemcpyDtoH_v2, host, first, (size_t)granule));
  printf("free of the middle: %d\n", CALL(cuMemFree_v2, first + 1));
  Device large = allocate(2 * granule + 5);
  ask("large", large + granule);
  Device pool = 0;
  REQUIRE(CALL(cuMemAllocAsync, &pool, (size_t)bytes, NULL));
  REQUIRE(CALL(cuStreamSynchronize, NULL));
  ask("of a pool", pool + 1);
  REQUIRE(CALL(cuMemFree_v2, pool));
  ask("of a pool, freed", pool);
}

static void ask_of_host_memory(void) {
  static char registered[5000];
  char* memory = malloc(bytes);
  ask("malloc", (uintptr_t)memory);
  ask("no memory", 4096);
  REQUIRE(CALL(cuMemHostRegister_v2, registered + 10, (size_t)bytes, 0));
  ask("registered", (uintptr_t)registered + 20);
  ask("beside registered", (uintptr_t)registered + 4000);
  void* pinned = NULL;
  REQUIRE(CALL(cuMemHostAlloc, &pinned, (size_t)bytes, 0));
  ask("pinned", (uintptr_t)pinned);
  Device managed = 0;
  REQUIRE(CALL(cuMemAllocManaged, &managed, (size_t)bytes, 1));
  ask("managed", managed);
  REQUIRE(CALL(cuMemsetD8_v2, managed, 7, (size_t)bytes));
  REQUIRE(CALL(cuStreamSynchronize, NULL));
  ask("managed, on the device", managed);
  REQUIRE(CALL(cuMemFree_v2, managed));
  ask("managed, freed", managed);
}

// Virtual memory management: two granules, one behind the other.
static void ask_of_mapped_memory(void) {
  struct {
    int type, handles, location, id;
    void* meta;
    unsigned char flags[8];
  } properties = {1, 0, 1, 0, NULL, {0}};
  struct {
    int location, id, flags;
  } access = {1, 0, 3};
  Device range = 0;
  Device handles[2];
  REQUIRE(CALL(cuMemAddressReserve, &range, (size_t)4 * granule, (size_t)0, (Device)0, (Device)0));
  ask("reserved", range);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(CALL(cuMemCreate, &handles[i], (size_t)granule, &properties, (Device)0));
    REQUIRE(CALL(cuMemMap, range + (Device)i * granule, (size_t)granule, (size_t)0, handles[i], (Device)0));
    REQUIRE(CALL(cuMemSetAccess, range + (Device)i * granule, (size_t)granule, &access, (size_t)1));
  }
  ask("mapped", range + 5);
  ask("second mapped", range + granule + 5);
  ask("behind the mapped", range + 2 * granule);
  static char host[2 * granule];
  printf("copy from both: %d\n", CALL(cuMemcpyDtoH_v2, host, range + 100, (size_t)2 * granule - 100));
  printf("copy to both: %d\n", CALL(cuMemcpyHtoD_v2, range + 100, host, (size_t)2 * granule - 100));
  printf("copy behind the mapped: %d\n", CALL(cuMemcpyDtoH_v2, host, range + 100, (size_t)2 * granule));
  REQUIRE(CALL(cuMemUnmap, range + granule, (size_t)granule));
  ask("unmapped", range + granule);
}

static void ask_of_contexts(void) {
  const Device memory = allocate(bytes);
  char host[bytes] = {0};
  void* other = NULL;
  void* popped = NULL;
  printf("push of none: %d\n", CALL(cuCtxPushCurrent_v2, NULL));
  printf("primary of no device: %d\n", CALL(cuDevicePrimaryCtxRetain, &other, 99));
  REQUIRE(CALL(cuDevicePrimaryCtxRetain, &other, 0));
  REQUIRE(CALL(cuCtxPushCurrent_v2, other));
  ask("in another context", memory);
  printf("copy in another context: %d\n", CALL(cuMemcpyDtoH_v2, host, memory, (size_t)bytes));
  printf("copy to in another context: %d\n", CALL(cuMemcpyHtoD_v2, memory, host, (size_t)bytes));
  REQUIRE(CALL(cuCtxPopCurrent_v2, &popped));
  REQUIRE(CALL(cuCtxPopCurrent_v2, &popped));
  ask("without a context", memory);
  printf("copy without a context: %d\n", CALL(cuMemcpyDtoH_v2, host, memory, (size_t)bytes));
  printf("copy to without a context: %d\n", CALL(cuMemcpyHtoD_v2, memory, host, (size_t)bytes));
  printf("synchronize without a context: %d\n", CALL(cuStreamSynchronize, NULL));
  printf("allocate without a context: %d\n", CALL(cuMemAlloc_v2, &(Device){0}, (size_t)bytes));
  printf("free without a context: %d\n", CALL(cuMemFree_v2, memory));
  printf("pop of none: %d\n", CALL(cuCtxPopCurrent_v2, &popped));
}

int main(int argc, char** argv) {
  static const int errors[] = {0, 1, 2, 5, 201, 700, 719, 12345};
  library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (library == NULL) return 5;
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; ++i) {
    const char* name = "untouched";
    const int result = CALL(cuGetErrorName, errors[i], &name);
    printf("error %d: result %d, %s\n", errors[i], result, name != NULL ? name : "none");
  }
  ask("before cuInit", (uintptr_t)&library);
  REQUIRE(CALL(cuInit, 0));
  ask("after cuInit", (uintptr_t)&library);
  REQUIRE(CALL(cuCtxCreate_v2, &context, 0, 0));
  ask_of_device_memory();
  ask_of_host_memory();
  ask_of_mapped_memory();
  ask_of_contexts();
  return 0;
}
