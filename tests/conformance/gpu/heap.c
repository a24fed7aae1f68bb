// The simulated GPU's memory, without messages: what ape_gpu_malloc returns, and what copies cost.
//
//   heap                prints the microseconds of copies of 1 MiB: to the GPU, from it, within it, and of a
//   fill heap none           on a machine without a GPU heap use-after-free ends by a signal
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "../c/check.h"
#include "apenet_gpu.h"

enum { mib = 1 << 20, page = 4096 };

static double us_since(double* start_s) {
  const double now_s = MPI_Wtime();
  const double us = (now_s - *start_s) * 1e6;
  *start_s = now_s;
  return us;
}

static void check_allocations(void) {
  char* const first = ape_gpu_malloc(1);
  char* const second = ape_gpu_malloc(3 * page - 1);
  char* const third = ape_gpu_malloc(page);
  CHECK(first != NULL && (uintptr_t)first % page == 0);
  CHECK(second == first + page && third == second + 3 * page);
  CHECK(ape_gpu_is_device(first) && ape_gpu_is_device(third + page - 1) && !ape_gpu_is_device(&first));
  memset(second, 1, 3 * page - 1);
  void* volatile freed = second;  // volatile: the compiler sees through ape_gpu_free to free()
  void* volatile inside = first + 1;
  CHECK(ape_gpu_free(freed) == 0);
  CHECK(ape_gpu_free(freed) == -1 && errno == EINVAL);
  CHECK(ape_gpu_free(inside) == -1 && errno == EINVAL);
  CHECK(ape_gpu_free(NULL) == 0);
  char* const larger = ape_gpu_malloc(3 * page + 1);
  char* const again = ape_gpu_malloc(3 * page);
  CHECK(larger == third + page && again == second);
  for (int i = 0; i < 3 * page; ++i) CHECK(again[i] == 0);
  CHECK(ape_gpu_malloc((size_t)5 << 40) == NULL && errno == ENOMEM);
  CHECK(ape_gpu_free(first) == 0 && ape_gpu_free(third) == 0);
  CHECK(ape_gpu_free(larger) == 0 && ape_gpu_free(again) == 0);
}

static void time_copies(void) {
  static char host[mib];
  char* const device = ape_gpu_malloc(mib);
  char* const other = ape_gpu_malloc(mib);
  double start_s = MPI_Wtime();
  memset(host, 7, mib);
  us_since(&start_s);
  ape_gpu_memcpy(device, host, mib);
  printf("%.3f", us_since(&start_s));
  ape_gpu_memcpy(host, device, mib);
  printf(" %.3f", us_since(&start_s));
  ape_gpu_memcpy(other, device, mib);
  printf(" %.3f", us_since(&start_s));
  CHECK(other[mib - 1] == 7);
  ape_gpu_memset(other, 8, mib);
  printf(" %.3f", us_since(&start_s));
  CHECK(other[mib - 1] == 8);
  ape_gpu_memcpy(host, host + mib / 2, mib / 2);
  printf(" %.3f\n", us_since(&start_s));
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  if (strcmp(what, "none") == 0) {
    CHECK(ape_gpu_count() == 0);
    CHECK(ape_gpu_malloc(1) == NULL && errno == ENODEV);
    CHECK(!ape_gpu_is_device(&argc));
  } else if (strcmp(what, "use-after-free") == 0) {
    volatile char* const device = ape_gpu_malloc(page);
    ape_gpu_free((void*)device);
    *device = 1;
  } else {
    CHECK(ape_gpu_count() == 1);
    check_allocations();
    time_copies();
  }
  MPI_Finalize();
  return 0;
}
