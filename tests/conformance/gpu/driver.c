// Messages of device memory, once of the simulated GPU and once of a CUDA driver: both print the same
// contents and virtual times.
//
//   driver simulated WHAT        driver LIBCUDA WHAT
//
// WHAT: messages; mapped: messages of memory that is mapped in parts; bcast, allreduce, vector or self: a
// call in which MPI may touch the memory; early, short, freed, crossing, huge, broken or CALL=CODE: one
// message, from device memory of that kind, after a kernel that fails, or with a call of the driver that
// fails.
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
  int (*allocate_host)(void**, size_t, unsigned);
  int (*register_host)(void*, size_t, unsigned);
  int (*set)(Device, unsigned char, size_t);
  int (*release)(Device);
  int (*reserve)(Device*, size_t, size_t, Device, Device);
  int (*make)(Device*, size_t, const void*, Device);
  int (*map)(Device, size_t, size_t, Device, Device);
  int (*unmap)(Device, size_t);
  int (*give_access)(Device, size_t, const void*, size_t);
  int (*to)(Device, const void*, size_t);
  int (*from)(void*, Device, size_t);
  int (*wait)(void*);
  int (*push)(void*);
  int (*pop)(void**);
} cuda;
static int is_real;
static void* library;
static void* context;
static int waits;

// Between the program's own calls no context is current, so the library has to make one so: that of the
// memory, or of memory that has none any one. There a program has to wait for its copies, or leave its
// context current.
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
  FIND(allocate_host, "cuMemHostAlloc");
  FIND(register_host, "cuMemHostRegister_v2");
  FIND(set, "cuMemsetD8_v2");
  FIND(release, "cuMemFree_v2");
  FIND(reserve, "cuMemAddressReserve");
  FIND(make, "cuMemCreate");
  FIND(map, "cuMemMap");
  FIND(unmap, "cuMemUnmap");
  FIND(give_access, "cuMemSetAccess");
  FIND(to, "cuMemcpyHtoD_v2");
  FIND(from, "cuMemcpyDtoH_v2");
  FIND(wait, "cuStreamSynchronize");
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
    if (waits) CUDA(wait(NULL));
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

// The device has the only copy of these bytes, until the host or another process accesses them.
static void pass_what_the_device_wrote(const struct World* world, char* managed, int bytes) {
  const unsigned char own = (unsigned char)(7 + world->rank);
  if (is_real) {
    CUDA(set((uintptr_t)managed, own, (size_t)bytes));
  } else {
    memset(managed, own, (size_t)bytes);
  }
  if (world->rank == 0) {
    MPI_Send(managed, bytes, MPI_CHAR, 1, 8, MPI_COMM_WORLD);
  } else {
    MPI_Recv(managed, bytes, MPI_CHAR, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < bytes; ++i) CHECK(managed[i] == 7);
}

// Memory that a driver knows and the host can access.
static void pass_host_memory(const struct World* world) {
  enum { most = 50 * 4096 };
  static _Alignas(4096) char memory[3][most];
  static const int sizes[] = {3000, most};
  char* const registered = memory[0];
  char* pinned = memory[1];
  char* managed = memory[2];
  if (is_real) {
    Device address = 0;
    CUDA(register_host(registered, most, 0));
    CUDA(allocate_host((void**)&pinned, most, 0));
    CUDA(allocate_managed(&address, most, 1));
    managed = (char*)(uintptr_t)address;
  }
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    pass(world, registered, sizes[i], 0);
    tell(world, "registered", sizes[i]);
    pass(world, pinned, sizes[i], 0);
    tell(world, "pinned", sizes[i]);
    pass(world, managed, sizes[i], 0);
    pass_what_the_device_wrote(world, managed, sizes[i]);
    tell(world, "managed", sizes[i]);
  }
}

// Allocations that come and go.
static void pass_allocated(const struct World* world) {
  char* pool = allocate_in_pool(20000);
  waits = 1;
  pass(world, pool, 20000, 1);
  waits = 0;
  if (is_real) CHECK(cuda.push(context) == 0);
  pass(world, pool, 19000, 1);
  if (is_real) CHECK(cuda.pop(&(void*){NULL}) == 0);
  release(pool);
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
  pass_host_memory(world);
  pass_allocated(world);
  tell(world, "allocated", 0);
  release(first);
  release(second);
}

enum { part_bytes = 2 << 20 };

// Memory that is mapped in two parts, at the begin of a range that is far larger than the device's memory: so
// do allocators that let an allocation grow.
static char* allocate_mapped(size_t reserved_bytes) {
  if (!is_real) return ape_gpu_malloc(2 * part_bytes);
  struct {
    int type, handles, location, device;
    void* meta;
    unsigned char flags[8];
  } properties = {1, 0, 1, 0, NULL, {0}};
  struct {
    int location, device, flags;
  } access = {1, 0, 3};
  Device range = 0;
  Device handle = 0;
  CUDA(reserve(&range, reserved_bytes, 0, 0, 0));
  for (Device begin = range; begin < range + 2 * part_bytes; begin += part_bytes) {
    CUDA(make(&handle, part_bytes, &properties, 0));
    CUDA(map(begin, part_bytes, 0, handle, 0));
    CUDA(give_access(begin, part_bytes, &access, 1));
  }
  return (char*)(uintptr_t)range;
}

// While a receive into the second part waits, the first one goes and another allocation comes.
static void pass_a_part_that_stays(const struct World* world, char* memory) {
  enum { bytes = 70000 };
  char* second = memory + part_bytes;
  char* other = allocate(bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  fill(second, bytes, 40 + world->rank, 1);
  if (world->rank == 1) MPI_Irecv(second, bytes, MPI_CHAR, 0, 9, MPI_COMM_WORLD, &request);
  if (is_real) CUDA(unmap((uintptr_t)memory, part_bytes));
  pass(world, other, bytes, 1);
  if (world->rank == 0) MPI_Isend(second, bytes, MPI_CHAR, 1, 9, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(second, bytes, 40, 1);
}

static void pass_mapped(const struct World* world) {
  char* memory = allocate_mapped((size_t)96 << 30);
  if (is_real) CHECK(cuda.push(context) == 0);
  pass(world, memory, 70000, 1);
  tell(world, "first part", 70000);
  pass(world, memory + part_bytes, 70000, 1);
  tell(world, "second part", 70000);
  pass(world, memory + part_bytes - 35000, 70000, 1);
  tell(world, "middle", 70000);
  pass(world, memory + part_bytes - 3, 6, 1);
  tell(world, "middle", 6);
  pass(world, memory, 2 * part_bytes, 1);
  tell(world, "both", 2 * part_bytes);
  pass_a_part_that_stays(world, memory);
  tell(world, "second part alone", 70000);
}

// A kernel that ends the context's work: every later call of the driver fails.
static void write_to_nowhere(void) {
  static const char kernel[] =
      ".version 6.3\n.target sm_75\n.address_size 64\n"
      ".visible .entry nowhere() {\n .reg .b64 %a;\n mov.u64 %a, 64;\n st.global.u32 [%a], 1;\n ret;\n}\n";
  void* module = NULL;
  void* function = NULL;
  int (*load)(void**, const void*) = NULL;
  int (*get)(void**, void*, const char*) = NULL;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                void**) = NULL;
  int (*synchronize)(void) = NULL;
  CHECK((*(void**)& load = dlsym(library, "cuModuleLoadData")) != NULL);
  CHECK((*(void**)& get = dlsym(library, "cuModuleGetFunction")) != NULL);
  CHECK((*(void**)& launch = dlsym(library, "cuLaunchKernel")) != NULL);
  CHECK((*(void**)& synchronize = dlsym(library, "cuCtxSynchronize")) != NULL);
  CHECK(cuda.push(context) == 0);
  const int loaded = load(&module, kernel);
  if (loaded != 0) fprintf(stderr, "cuModuleLoadData: %d\n", loaded);
  CHECK(loaded == 0 && get(&function, module, "nowhere") == 0);
  CHECK(launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) == 0);
  fprintf(stderr, "the kernel's end: %d\n", synchronize());
  cuda.pop(&(void*){NULL});
}

// Where an MPI library that is not built for CUDA may touch the memory itself.
static int pass_touched(const struct World* world, const char* what, char* memory) {
  enum { count = 1000 };
  MPI_Datatype vector;
  MPI_Type_vector(10, 10, 20, MPI_CHAR, &vector);
  MPI_Type_commit(&vector);
  if (strcmp(what, "bcast") == 0) {
    MPI_Bcast(memory, count, MPI_CHAR, 0, MPI_COMM_WORLD);
  } else if (strcmp(what, "allreduce") == 0) {
    MPI_Allreduce(MPI_IN_PLACE, memory, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  } else if (strcmp(what, "vector") == 0) {
    if (world->rank == 0) MPI_Send(memory, 1, vector, 1, 0, MPI_COMM_WORLD);
    if (world->rank == 1) MPI_Recv(memory, 1, vector, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (strcmp(what, "self") == 0) {
    MPI_Sendrecv(memory, count, MPI_CHAR, world->rank, 0, memory + count, count, MPI_CHAR, world->rank, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    return 0;
  }
  MPI_Type_free(&vector);
  return 1;
}

// What the driver's memory cannot be used for: the library has to say why, and MPI to return an error.
static void pass_wrong(const struct World* world, const char* what) {
  enum { bytes = 50000 };
  char* memory = strcmp(what, "huge") == 0 ? allocate_mapped((size_t)5 << 40) : allocate(bytes);
  int count = bytes;
  if (strcmp(what, "freed") == 0) release(memory);
  if (strcmp(what, "crossing") == 0) memory += 10;
  if (strcmp(what, "short") == 0) count = 100;
  if (strcmp(what, "broken") == 0) write_to_nowhere();
  if (pass_touched(world, what, memory)) return;
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
  } else if (strcmp(argv[2], "mapped") == 0) {
    pass_mapped(&world);
  } else {
    pass_wrong(&world, argv[2]);
  }
  return end_program(world);
}
