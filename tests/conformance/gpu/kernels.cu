// A stencil as it is written for GPUs: kernels on a stream of the program's own, halos passed to MPI as
// device pointers. Rank 0 compares the result with the same steps on the CPU, which are exact in integers.
#include <cuda_runtime.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA(call)                                                                        \
  do {                                                                                    \
    const cudaError_t error = call;                                                       \
    if (error != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s: %d: %s\n", #call, int(error), cudaGetErrorString(error)); \
      MPI_Abort(MPI_COMM_WORLD, 4);                                                       \
    }                                                                                     \
  } while (0)

namespace {

constexpr int cells = 1 << 18;  // in a rank, beside the halos
constexpr int steps = 6;
constexpr int tag_up = 1;
constexpr int tag_down = 2;
constexpr int tag_result = 3;

__host__ __device__ unsigned next_cell(const unsigned* cell, int reach) {
  return 3 * cell[0] + 5 * cell[-reach] + 7 * cell[reach] + 11 * cell[-1] + 13 * cell[1];
}

// `from` and `to` point to the first cell behind the lower halo.
__global__ void step(const unsigned* from, unsigned* to, int reach) {
  const int cell = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (cell < cells) to[cell] = next_cell(from + cell, reach);
}

unsigned start_value(int cell) {
  return 2654435761U * unsigned(cell);
}

// The halo of `reach` cells is a message of 4 * reach bytes each way.
void on_gpu(int rank, int size, int reach, std::vector<unsigned>& result) {
  const size_t all = size_t(cells + 2 * reach);
  std::vector<unsigned> host(all);
  for (int i = 0; i < cells; ++i) host[size_t(reach + i)] = start_value(rank * cells + i);
  unsigned* field[2];
  cudaStream_t stream;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (unsigned*& one : field) CUDA(cudaMalloc(&one, all * sizeof(unsigned)));
  CUDA(cudaMemcpyAsync(field[0], host.data(), all * sizeof(unsigned), cudaMemcpyHostToDevice, stream));
  const int above = (rank + 1) % size;
  const int below = (rank + size - 1) % size;
  for (int i = 0; i < steps; ++i) {
    unsigned* from = field[i % 2] + reach;
    CUDA(cudaStreamSynchronize(stream));
    MPI_Request requests[4];
    MPI_Irecv(from - reach, reach, MPI_UNSIGNED, below, tag_up, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(from + cells, reach, MPI_UNSIGNED, above, tag_down, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(from + cells - reach, reach, MPI_UNSIGNED, above, tag_up, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(from, reach, MPI_UNSIGNED, below, tag_down, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    step<<<(cells + 255) / 256, 256, 0, stream>>>(from, field[(i + 1) % 2] + reach, reach);
    CUDA(cudaGetLastError());
  }
  CUDA(
      cudaMemcpyAsync(host.data(), field[steps % 2], all * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (unsigned* one : field) CUDA(cudaFree(one));
  CUDA(cudaStreamDestroy(stream));
  result.assign(host.begin() + reach, host.begin() + reach + cells);
}

std::vector<unsigned> on_cpu(int size, int reach) {
  const int total = size * cells;
  std::vector<unsigned> field(size_t(total + 2 * reach));
  std::vector<unsigned> next(field.size());
  for (int i = 0; i < total; ++i) field[size_t(reach + i)] = start_value(i);
  for (int i = 0; i < steps; ++i) {
    for (int j = 0; j < reach; ++j) {
      field[size_t(j)] = field[size_t(total + j)];
      field[size_t(reach + total + j)] = field[size_t(reach + j)];
    }
    for (int j = 0; j < total; ++j) next[size_t(reach + j)] = next_cell(&field[size_t(reach + j)], reach);
    field.swap(next);
  }
  return {field.begin() + reach, field.begin() + reach + total};
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // Before CUDA, whose compiler allocates in the same heap: a card's times depend on where a buffer lies.
  std::vector<unsigned> own(cells);
  std::vector<unsigned> all(size_t(size) * cells);
  CUDA(cudaSetDevice(0));
  for (int reach = 1; reach <= cells; reach *= 64) {
    const double begin_s = MPI_Wtime();
    on_gpu(rank, size, reach, own);
    const double passed_s = MPI_Wtime() - begin_s;
    // Without a collective's temporary buffers.
    MPI_Request request;
    MPI_Isend(own.data(), cells, MPI_UNSIGNED, 0, tag_result, MPI_COMM_WORLD, &request);
    for (int i = 0; rank == 0 && i < size; ++i)
      MPI_Recv(&all[size_t(i) * cells], cells, MPI_UNSIGNED, i, tag_result, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 0)
      std::printf("%d: %s, %.9f s\n", reach, all == on_cpu(size, reach) ? "equal" : "WRONG", passed_s);
  }
  MPI_Finalize();
  return 0;
}
