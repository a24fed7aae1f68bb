/* apenet_gpu.h: the memory of the simulated node's GPU.
 *
 * Under `apenet run`, on a machine whose description has a GPU, ape_gpu_malloc() returns device memory: a
 * reserved range of the process's addresses. MPI and libfabric take its pointers, and the model charges what
 * the machine's GPU costs. In reality the memory lies in the host, so the CPU can access it. Such accesses
 * cost nothing; on a machine with a real GPU they would fail. Copies take the machine's
 * `host.gpu_copy_latency_us` and `host.gpu_copy_bandwidth_mib_s`.
 *
 * Outside the simulator ape_gpu_count() is 0, and the memory is that of calloc(). Only this header is
 * needed, in C11 or C++; nothing needs to be linked. */
#ifndef APENET_GPU_H
#define APENET_GPU_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The GPUs that this process can use: 0 or 1. */
__attribute__((weak)) int ape_gpu_count(void);

/* Returns zeroed device memory at the beginning of a page. NULL with errno ENODEV: the machine has no GPU;
 * with errno ENOMEM: no memory is left. */
__attribute__((weak)) void* ape_gpu_malloc(size_t bytes);

/* 0, or -1 with errno EINVAL: the pointer is not NULL and not one that ape_gpu_malloc() returned. */
__attribute__((weak)) int ape_gpu_free(void* memory);

/* Copies as memcpy(). A copy between host and GPU is charged to the process, which waits for it; one within
 * the GPU costs the latency alone; one within the host nothing. */
__attribute__((weak)) void ape_gpu_memcpy(void* to, const void* from, size_t bytes);

/* Fills as memset(); on device memory it costs the latency of a copy. */
__attribute__((weak)) void ape_gpu_memset(void* to, int value, size_t bytes);

/* Whether the address lies in the range of device memory. */
__attribute__((weak)) int ape_gpu_is_device(const void* address);

/* The library that `apenet run` preloads defines these functions. (A macro does not expand inside itself.) */
#define ape_gpu_count() (ape_gpu_count ? ape_gpu_count() : 0)
#define ape_gpu_malloc(bytes) (ape_gpu_malloc ? ape_gpu_malloc(bytes) : calloc(1, bytes))
#define ape_gpu_free(memory) (ape_gpu_free ? ape_gpu_free(memory) : (free(memory), 0))
#define ape_gpu_memcpy(to, from, bytes) \
  (ape_gpu_memcpy ? ape_gpu_memcpy(to, from, bytes) : (void)memcpy(to, from, bytes))
#define ape_gpu_memset(to, value, bytes) \
  (ape_gpu_memset ? ape_gpu_memset(to, value, bytes) : (void)memset(to, value, bytes))
#define ape_gpu_is_device(address) (ape_gpu_is_device ? ape_gpu_is_device(address) : ((void)(address), 0))

#ifdef __cplusplus
}
#endif

#endif
