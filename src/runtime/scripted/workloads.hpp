// Workloads: communication of a whole machine, on scripted processes over the card.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/time.hpp"
#include "machine/machine.hpp"

namespace apenet {

enum class Workload : std::uint8_t {
  halo,          // everybody sends to both neighbours in every dimension of the grid, and waits for theirs
  alltoall,      // a message from everybody to everybody, in steps: to rank + k, from rank - k
  allreduce,     // see AllreduceAlgorithm
  randomaccess,  // random pairs, new ones each time, exchange
  bisection,     // one half of the grid, cut across its longest dimension, exchanges with its mirror image
};

// `bytes` are those of the vector that is reduced. The additions themselves take no time.
enum class AllreduceAlgorithm : std::uint8_t {
  // Reduce-scatter and allgather in the ring of all processes: 2 (n - 1) steps of bytes / n.
  ring,
  // log2 n exchanges of everything with rank ^ 2^k. Beyond the largest power of two, processes first give
  // their part to a neighbour, and get the result back (Thakur, Rabenseifner, Gropp,
  // "Optimization of collective communication operations in MPICH", IJHPCA 19, 2005).
  recursive_doubling,
  // Rings along one dimension of the grid after the other, on ever smaller parts, and back: 2 sum (n_d - 1)
  // steps, and as many bytes as the ring of all (the bucket algorithm; Barnett et al., "Global combine on
  // mesh architectures with wormhole routing", IPPS 1993).
  torus,
};

struct WorkloadOptions {
  std::int64_t bytes = 0;  // of a message; allreduce: of the vector
  // halo: of a message along each dimension of the grid, instead of `bytes`
  std::vector<std::int64_t> face_bytes;
  std::uint32_t iterations = 5;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::ring;
  std::vector<std::uint32_t> grid;  // processes per dimension, X first: process p is at position p
  bool periodic = true;             // the halo's grid closes on itself
  std::vector<NodeId> nodes;        // of the processes; empty: process p is on node p
};

struct WorkloadResult {
  Time time;                   // of one iteration: the latest end over the number of iterations
  std::vector<Time> finish;    // of each process
  std::uint64_t messages = 0;  // posted to the cards
  std::uint64_t payload_bytes = 0;
  std::vector<LinkUse> links;
  std::vector<std::string> warnings;  // Machine::warnings()
};

// Runs with description.card_software. Throws std::invalid_argument naming the option that cannot be.
[[nodiscard]] WorkloadResult run_workload(const MachineDescription& description, Workload workload,
                                          const WorkloadOptions& options);

}  // namespace apenet
