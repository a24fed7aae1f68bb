// Calls of all nodes of a communicator, as messages between them. apelib's own are for all ranks and for its
// types.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "api/qmp/communicator.hpp"

namespace apenet::qmp {

// low = low combined with high. The memory of both is aligned for any type.
using Combine = std::function<void(std::byte* low, std::byte* high)>;

void barrier(const Communicator& comm);
// Sends from node 0 to all.
void broadcast(const Communicator& comm, std::span<std::byte> data);
// In place, with the same bits on every node. Order: node p + i is combined with node i, p the largest power
// of two that is not above the number of nodes; then neighbours 1, 2, 4, ... p/2 apart are combined, the
// lower first.
void reduce(const Communicator& comm, std::span<std::byte> data, const Combine& combine);
// bytes from each node to each; both buffers in the order of nodes.
void exchange_all(const Communicator& comm, std::byte* in, const std::byte* out, std::size_t bytes);

}  // namespace apenet::qmp
