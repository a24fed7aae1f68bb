// A program as it is written for CUDA: memory of the device in MPI calls, no kernels.
#include <cuda_runtime.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUDA(call)                                                                   \
  do {                                                                               \
    const cudaError_t error = call;                                                  \
    if (error != cudaSuccess) {                                                      \
      fprintf(stderr, "%s: %d: %s\n", #call, (int)error, cudaGetErrorString(error)); \
      exit(4);                                                                       \
    }                                                                                \
  } while (0)

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void check_errors(char* device, char* host) {
  struct cudaPointerAttributes attributes;
  CUDA(cudaPointerGetAttributes(&attributes, device + 5));
  require(attributes.type == cudaMemoryTypeDevice && attributes.device == 0, "attributes of the device");
  CUDA(cudaPointerGetAttributes(&attributes, host));
  require(attributes.type == cudaMemoryTypeUnregistered, "attributes of the host");
  require(cudaSetDevice(1) == cudaErrorInvalidDevice, "a second device");
  require(cudaMemcpy(device, host, 1, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue, "a wrong direction");
  require(cudaFree(host) == cudaErrorInvalidValue, "a free of the host's memory");
  require(cudaMemset(host, 0, 1) == cudaErrorInvalidValue, "a fill of the host's memory");
  require(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess, "last error");
}

int main(int argc, char** argv) {
  enum { bytes = 10000 };
  int count = 0;
  int device = -1;
  CUDA(cudaGetDeviceCount(&count));
  CUDA(cudaSetDevice(0));
  CUDA(cudaGetDevice(&device));
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  require(count == 1 && device == 0, "one device, number 0");

  char* host = NULL;
  char* sent = NULL;
  char* got = NULL;
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaMallocHost((void**)&host, bytes));
  CUDA(cudaMalloc((void**)&sent, bytes));
  CUDA(cudaMalloc((void**)&got, bytes));
  memset(host, 'a' + rank, bytes);
  CUDA(cudaMemcpy(sent, host, bytes, cudaMemcpyHostToDevice));
  CUDA(cudaMemset(got, 0, bytes));
  CUDA(cudaDeviceSynchronize());
  MPI_Sendrecv(sent, bytes, MPI_CHAR, 1 - rank, 0, got, bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CUDA(cudaMemcpyAsync(host, got, bytes, cudaMemcpyDefault, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < bytes; ++i) require(host[i] == 'a' + 1 - rank, "contents");
  check_errors(got, (char*)&count);
  CUDA(cudaFree(sent));
  CUDA(cudaFree(got));
  CUDA(cudaFreeHost(host));
  CUDA(cudaStreamDestroy(stream));
  if (rank == 0) printf("passed\n");
  MPI_Finalize();
  return 0;
}
