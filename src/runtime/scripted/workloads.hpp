// Workloads: communication patterns of a whole machine, on scripted processes over the card.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/time.hpp"
#include "machine/machine.hpp"

namespace apenet {

enum class Workload : std::uint8_t {
  halo,         // each process exchanges messages with both neighbours in every dimension of the grid
  alltoall,     // a message between all pairs, in steps: to rank + k, from rank - k
  allreduce,    // see AllreduceAlgorithm
  randompairs,  // random pairs exchange messages, new pairs in each iteration
  bisection,    // the grid is cut across its longest dimension, and each process exchanges with its mirror
                // image
  fft,          // alltoall along each dimension of the grid in turn, as the transposes of a Fourier transform
};

// `bytes`: of the vector to be reduced. The additions take no time.
enum class AllreduceAlgorithm : std::uint8_t {
  // Reduce-scatter and allgather in a ring of all processes: 2 (n - 1) steps of bytes / n.
  ring,
  // log2 n exchanges of the whole vector with rank ^ 2^k. Processes beyond the largest power of two first
  // give
  // their part to a neighbour, and get the result back (Thakur, Rabenseifner, Gropp,
  // "Optimization of collective communication operations in MPICH", IJHPCA 19, 2005).
  recursive_doubling,
  // Rings along one dimension of the grid after another, on smaller and smaller parts, and back: 2 sum (n_d -
  // 1)
  // steps, and as many bytes as one ring of all (the bucket algorithm; Barnett et al., "Global combine on
  // mesh architectures with wormhole routing", IPPS 1993).
  torus,
};

struct WorkloadOptions {
  std::int64_t bytes = 0;  // of a message, or of the vector (allreduce)
  // halo: bytes of a message per dimension of the grid, instead of `bytes`
  std::vector<std::int64_t> face_bytes;
  std::uint32_t iterations = 5;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::ring;
  std::vector<std::uint32_t> grid;  // processes per dimension, X first
  bool periodic = true;             // halo: the grid is a torus
  std::vector<NodeId> nodes;        // of the processes; empty: process p runs on node p
};

struct WorkloadResult {
  Time time;                   // per iteration: the latest end / iterations
  std::vector<Time> finish;    // per process
  std::uint64_t messages = 0;  // posted to the cards
  std::uint64_t payload_bytes = 0;
  std::vector<LinkUse> links;
  std::vector<std::string> warnings;  // Machine::warnings()
};

// Packets times hops of all messages that software forwards from node to node in one run
// (CardFacts::forwards_by_software): the run's host time follows them. Zero if the network reaches every
// node. All iterations count like the first one. A result above `enough` says only that it is above. Throws
// like run_workload.
[[nodiscard]] std::uint64_t count_forwarded_packet_hops(const MachineDescription& description,
                                                        Workload workload, const WorkloadOptions& options,
                                                        std::uint64_t enough);

// Runs with description.card_software. Throws std::invalid_argument, which names the invalid option.
[[nodiscard]] WorkloadResult run_workload(const MachineDescription& description, Workload workload,
                                          const WorkloadOptions& options);

}  // namespace apenet
