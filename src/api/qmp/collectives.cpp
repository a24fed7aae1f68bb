#include "api/qmp/collectives.hpp"

#include <cstring>
#include <memory>
#include <vector>

#include "api/apelib/apelib.h"
#include "api/native/schedules.hpp"
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

std::uint32_t place(const Communicator& comm) {
  return static_cast<std::uint32_t>(comm.node());
}
std::uint32_t places(const Communicator& comm) {
  return static_cast<std::uint32_t>(comm.size());
}

struct Reduction {
  const Communicator& comm;
  const Combine& combine;
  std::size_t bytes;
  std::byte* low;    // the values so far
  std::byte* other;  // those of another node

  void send(std::uint32_t node) { qmp::send(comm, {low, bytes}, static_cast<int>(node)); }
  void receive_result(std::uint32_t node) { receive(comm, {low, bytes}, static_cast<int>(node)); }
  void take(std::uint32_t node) {
    receive(comm, {other, bytes}, static_cast<int>(node));
    combine(low, other);
  }
  void trade(std::uint32_t node) {
    const int partner = static_cast<int>(node);
    exchange(comm, {low, bytes}, partner, {other, bytes}, partner);
    if (partner < comm.node()) std::swap(low, other);
    combine(low, other);
  }
};

}  // namespace

void barrier(const Communicator& comm) {
  native::disseminate(place(comm), places(comm), [&](std::uint32_t up, std::uint32_t down) {
    exchange(comm, {}, static_cast<int>(up), {}, static_cast<int>(down));
  });
}

void broadcast(const Communicator& comm, std::span<std::byte> data) {
  const native::TreePlace tree = native::binomial_tree(place(comm), places(comm));
  if (comm.node() != 0) receive(comm, data, static_cast<int>(tree.parent));
  std::vector<ape_request> sends;
  for (const std::uint32_t child : tree.children) {
    sends.push_back(APE_NO_REQUEST);
    check(ape_isend(data.data(), data.size(), comm.rank_of(static_cast<int>(child)), tag(comm), APE_AUTO,
                    &sends.back()));
  }
  check(ape_wait_all(static_cast<int>(sends.size()), sends.data()));
}

void reduce(const Communicator& comm, std::span<std::byte> data, const Combine& combine) {
  const std::size_t bytes = data.size();
  const auto mine = std::make_unique<std::byte[]>(bytes);
  const auto theirs = std::make_unique<std::byte[]>(bytes);
  if (bytes > 0) std::memcpy(mine.get(), data.data(), bytes);
  Reduction values{comm, combine, bytes, mine.get(), theirs.get()};
  native::double_recursively(place(comm), places(comm), values);
  if (bytes > 0) std::memcpy(data.data(), values.low, bytes);
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
