#include "api/qmp/collectives.hpp"

#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "api/apelib/apelib.h"
#include "api/qmp/failure.hpp"
#include "api/qmp/messages.hpp"

namespace apenet::qmp {
namespace {

int tag(const Communicator& comm) {
  return tag_of(comm, collective_channel);
}

void send(const Communicator& comm, std::span<const std::byte> data, int node) {
  check(ape_send(data.data(), data.size(), comm.rank_of(node), tag(comm), APE_AUTO));
}

void receive(const Communicator& comm, std::span<std::byte> into, int node) {
  check(ape_recv(into.data(), into.size(), comm.rank_of(node), tag(comm), APE_AUTO));
}

void exchange(const Communicator& comm, std::span<const std::byte> out, int to, std::span<std::byte> in,
              int from) {
  check(ape_sendrecv(out.data(), out.size(), comm.rank_of(to), in.data(), in.size(), comm.rank_of(from),
                     tag(comm), APE_AUTO));
}

}  // namespace

// Dissemination: after round k a node has heard, directly or not, of the 2^k nodes below it.
void barrier(const Communicator& comm) {
  for (int distance = 1; distance < comm.size(); distance *= 2) {
    const int up = (comm.node() + distance) % comm.size();
    const int down = (comm.node() + comm.size() - distance) % comm.size();
    exchange(comm, {}, up, {}, down);
  }
}

// Along a binomial tree.
void broadcast(const Communicator& comm, std::span<std::byte> data) {
  const int node = comm.node();
  const int whole = static_cast<int>(std::bit_ceil(static_cast<unsigned>(comm.size())));
  const int reach = node == 0 ? whole : node & -node;  // the nodes that this one serves
  if (node != 0) receive(comm, data, node - reach);
  std::vector<ape_request> sends;
  for (int distance = reach / 2; distance > 0; distance /= 2) {
    if (node + distance >= comm.size()) continue;
    sends.push_back(APE_NO_REQUEST);
    check(ape_isend(data.data(), data.size(), comm.rank_of(node + distance), tag(comm), APE_AUTO,
                    &sends.back()));
  }
  check(ape_wait_all(static_cast<int>(sends.size()), sends.data()));
}

void reduce(const Communicator& comm, std::span<std::byte> data, const Combine& combine) {
  const auto mine = std::make_unique<std::byte[]>(data.size());
  const auto theirs = std::make_unique<std::byte[]>(data.size());
  std::byte* low = mine.get();
  std::byte* other = theirs.get();
  const std::size_t bytes = data.size();
  const int node = comm.node();
  const int core = static_cast<int>(std::bit_floor(static_cast<unsigned>(comm.size())));
  if (node >= core) {
    send(comm, data, node - core);
    receive(comm, data, node - core);
    return;
  }
  if (bytes > 0) std::memcpy(low, data.data(), bytes);
  const bool has_partner = node + core < comm.size();
  if (has_partner) {
    receive(comm, {other, bytes}, node + core);
    combine(low, other);
  }
  for (int distance = 1; distance < core; distance *= 2) {
    const int partner = node ^ distance;
    exchange(comm, {low, bytes}, partner, {other, bytes}, partner);
    if (partner < node) std::swap(low, other);
    combine(low, other);
  }
  if (bytes > 0) std::memcpy(data.data(), low, bytes);
  if (has_partner) send(comm, data, node + core);
}

void exchange_all(const Communicator& comm, std::byte* in, const std::byte* out, std::size_t bytes) {
  const int size = comm.size();
  const auto part = [bytes](auto* buffer, int node) {
    return buffer + static_cast<std::size_t>(node) * bytes;
  };
  std::vector<ape_request> requests;
  requests.reserve(2 * static_cast<std::size_t>(size));
  for (int distance = 1; distance < size; ++distance) {
    const int from = (comm.node() + size - distance) % size;
    requests.push_back(APE_NO_REQUEST);
    check(ape_irecv(part(in, from), bytes, comm.rank_of(from), tag(comm), APE_AUTO, &requests.back()));
  }
  for (int distance = 1; distance < size; ++distance) {
    const int to = (comm.node() + distance) % size;
    requests.push_back(APE_NO_REQUEST);
    check(ape_isend(part(out, to), bytes, comm.rank_of(to), tag(comm), APE_AUTO, &requests.back()));
  }
  if (bytes > 0) std::memcpy(part(in, comm.node()), part(out, comm.node()), bytes);
  check(ape_wait_all(static_cast<int>(requests.size()), requests.data()));
}

}  // namespace apenet::qmp
