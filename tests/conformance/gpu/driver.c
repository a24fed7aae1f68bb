// Messages of device memory, once of the simulated GPU and once of a CUDA driver: both print the same
// contents and virtual times.
//
//   driver simulated WHAT        driver LIBCUDA WHAT
//
// WHAT: messages; or early, short, freed, crossing or CALL=CODE: one message, from device memory of that
// kind, or with a call of the driver that fails.
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "../c/check.h"
#include "apenet_gpu.h"

enum { most_bytes = 4 << 20 };

typedef unsigned long long Device;
static struct {
  int (*init)(unsigned);
  int (*create)(void**, unsigned, int);
  int (*allocate)(Device*, size_t);
  int (*allocate_async)(Device*, size_t, void*);
  int (*allocate_managed)(Device*, size_t, unsigned);
  int (*register_host)(void*, size_t, unsigned);
  int (*release)(Device);
  int (*to)(Device, const void*, size_t);
  int (*from)(void*, Device, size_t);
  int (*push)(void*);
  int (*pop)(void**);
} cuda;
static int is_real;
static void* library;
static void* context;

// Between the program's own calls no context is current, so the library has to make one so.
#define CUDA(call)                        \
  do {                                    \
    CHECK(cuda.push(context) == 0);       \
    CHECK(cuda.call == 0);                \
    CHECK(cuda.pop(&(void*){NULL}) == 0); \
  } while (0)

// After MPI_Init, as programs do that choose their device by rank.
static void load(const char* path) {
  library = dlopen(path, RTLD_NOW);
  if (library == NULL) exit(5);
#define FIND(function, name) CHECK((*(void**)& cuda.function = dlsym(library, name)) != NULL)
  FIND(init, "cuInit");
  FIND(create, "cuCtxCreate_v2");
  FIND(allocate, "cuMemAlloc_v2");
  FIND(allocate_async, "cuMemAllocAsync");
  FIND(allocate_managed, "cuMemAllocManaged");
  FIND(register_host, "cuMemHostRegister_v2");
  FIND(release, "cuMemFree_v2");
  FIND(to, "cuMemcpyHtoD_v2");
  FIND(from, "cuMemcpyDtoH_v2");
  FIND(push, "cuCtxPushCurrent_v2");
  FIND(pop, "cuCtxPopCurrent_v2");
  CHECK(cuda.init(0) == 0 && cuda.create(&context, 0, 0) == 0 && cuda.pop(&(void*){NULL}) == 0);
}

static char* allocate(size_t bytes) {
  if (!is_real) return ape_gpu_malloc(bytes);
  Device address = 0;
  CUDA(allocate(&address, bytes));
  return (char*)(uintptr_t)address;
}

static char* allocate_in_pool(size_t bytes) {
  if (!is_real) return ape_gpu_malloc(bytes);
  Device address = 0;
  CUDA(allocate_async(&address, bytes, NULL));
  return (char*)(uintptr_t)address;
}

static void release(char* memory) {
  if (is_real) {
    CUDA(release((uintptr_t)memory));
  } else {
    CHECK(ape_gpu_free(memory) == 0);
  }
}

// Neither takes virtual time.
static void put(char* to, const char* from, size_t bytes, int on_device) {
  if (on_device && is_real) {
    CUDA(to((uintptr_t)to, from, bytes));
  } else {
    memcpy(to, from, bytes);
  }
}

static void get(char* to, const char* from, size_t bytes, int on_device) {
  if (on_device && is_real) {
    CUDA(from(to, (uintptr_t)from, bytes));
  } else {
    memcpy(to, from, bytes);
  }
}

static char filled[most_bytes];
static char got[most_bytes];

static void fill(char* memory, int bytes, int seed, int on_device) {
  for (int i = 0; i < bytes; ++i) filled[i] = (char)(31 * i + i / 251 + seed);
  put(memory, filled, (size_t)bytes, on_device);
}

static void check(const char* memory, int bytes, int seed, int on_device) {
  get(got, memory, (size_t)bytes, on_device);
  for (int i = 0; i < bytes; ++i) CHECK(got[i] == (char)(31 * i + i / 251 + seed));
}

static void tell(const struct World* world, const char* what, int bytes) {
  if (world->rank == 0) printf("%s %d: %.9f\n", what, bytes, MPI_Wtime());
}

// There and back.
static void pass(const struct World* world, char* memory, int bytes, int on_device) {
  const int other = 1 - world->rank;
  if (world->rank == 0) {
    fill(memory, bytes, bytes, on_device);
    MPI_Send(memory, bytes, MPI_CHAR, other, 1, MPI_COMM_WORLD);
    fill(memory, bytes, 0, on_device);
    MPI_Recv(memory, bytes, MPI_CHAR, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(memory, bytes, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ssend(memory, bytes, MPI_CHAR, other, 2, MPI_COMM_WORLD);
  }
  check(memory, bytes, bytes, on_device);
}

// Both at once, three times with the same requests, into the middle of the buffer.
static void repeat(const struct World* world, char* sent, char* received, int bytes) {
  MPI_Request requests[2];
  MPI_Recv_init(received + 100, bytes, MPI_CHAR, 1 - world->rank, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(sent, bytes, MPI_CHAR, 1 - world->rank, 3, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < 3; ++i) {
    fill(sent, bytes, i + world->rank, 1);
    fill(received, bytes + 200, 77, 1);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(received + 100, bytes, i + 1 - world->rank, 1);
    check(received, 100, 77, 1);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

// A message that is there before its receive, one shorter than the buffer, and one that is cancelled.
static void claim(const struct World* world, char* memory, int bytes) {
  if (world->rank == 0) {
    fill(memory, bytes, 5, 1);
    MPI_Send(memory, bytes, MPI_CHAR, 1, 4, MPI_COMM_WORLD);
    MPI_Send(memory, bytes / 2, MPI_CHAR, 1, 5, MPI_COMM_WORLD);
    return;
  }
  MPI_Message message;
  MPI_Request request;
  MPI_Status status;
  int count = 0;
  fill(memory, bytes, 9, 1);
  MPI_Mprobe(0, 4, MPI_COMM_WORLD, &message, &status);
  MPI_Mrecv(memory, bytes, MPI_CHAR, &message, &status);
  check(memory, bytes, 5, 1);
  fill(memory, bytes, 9, 1);
  MPI_Recv(memory, bytes, MPI_CHAR, 0, 5, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_CHAR, &count);
  CHECK(count == bytes / 2);
  check(memory, bytes / 2, 5, 1);
  get(got, memory, (size_t)bytes, 1);
  for (int i = bytes / 2; i < bytes; ++i) CHECK(got[i] == (char)(31 * i + i / 251 + 9));
  MPI_Irecv(memory, bytes, MPI_CHAR, 0, 6, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// Memory that a driver knows and the host can access; and allocations that come and go.
static void pass_others(const struct World* world) {
  static char registered[3000];
  char* pool = allocate_in_pool(20000);
  pass(world, pool, 20000, 1);
  release(pool);
  if (is_real) CUDA(register_host(registered, sizeof registered, 0));
  pass(world, registered, sizeof registered, 0);
  char* managed = registered;
  Device address = 0;
  if (is_real) CUDA(allocate_managed(&address, sizeof registered, 1));
  if (is_real) managed = (char*)(uintptr_t)address;
  pass(world, managed, sizeof registered, 0);
  for (int bytes = 100; bytes < 100000; bytes *= 7) {
    char* memory = allocate((size_t)bytes);
    pass(world, memory, bytes, 1);
    release(memory);
  }
}

static void pass_all(const struct World* world) {
  static const int sizes[] = {1, 100, 1024, 1025, 4096, 5000, 32768, 32769, 65537, 1 << 20, most_bytes};
  static char host[most_bytes];
  char* first = allocate(most_bytes);
  char* second = allocate(most_bytes);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    pass(world, first, sizes[i], 1);
    tell(world, "both", sizes[i]);
    pass(world, world->rank == 0 ? first : host, sizes[i], world->rank == 0);
    tell(world, "first", sizes[i]);
    pass(world, world->rank == 1 ? second : host, sizes[i], world->rank == 1);
    tell(world, "second", sizes[i]);
  }
  for (int bytes = 10; bytes < most_bytes / 2; bytes *= 60) {
    repeat(world, first, second, bytes);
    tell(world, "persistent", bytes);
    claim(world, first, bytes);
    tell(world, "claimed", bytes);
  }
  pass_others(world);
  tell(world, "others", 0);
  release(first);
  release(second);
}

// What the driver's memory cannot be used for: the library has to say why, and MPI to return an error.
static void pass_wrong(const struct World* world, const char* what) {
  enum { bytes = 50000 };
  char* memory = allocate(bytes);
  int count = bytes;
  if (strcmp(what, "freed") == 0) release(memory);
  if (strcmp(what, "crossing") == 0) memory += 10;
  if (strcmp(what, "short") == 0) count = 100;
  if (strchr(what, '=') != NULL) setenv("FAKE_CUDA_FAIL", what, 1);
  const int is_received = strncmp(what, "cuMemcpyHtoD", 12) == 0 || strncmp(what, "cuStream", 8) == 0;
  if (world->rank == 0) {
    MPI_Send(memory, count, MPI_CHAR, 1, 7, MPI_COMM_WORLD);
  } else {
    static char host[bytes];
    MPI_Recv(is_received ? memory : host, bytes, MPI_CHAR, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char** argv) {
  is_real = argc == 3 && strcmp(argv[1], "simulated") != 0;
  if (is_real && strcmp(argv[2], "early") == 0) load(argv[1]);
  const struct World world = begin_program(&argc, &argv);
  CHECK(argc == 3);
  if (is_real && library == NULL) load(argv[1]);
  if (strcmp(argv[2], "messages") == 0) {
    pass_all(&world);
  } else {
    pass_wrong(&world, argv[2]);
  }
  return end_program(world);
}
