// The C edge of libapenet-udp.
#include <array>
#include <new>

#include "api/native/edge.hpp"
#include "api/udp/ape_udp.h"
#include "api/udp/socket.hpp"

struct ape_udp {
  apenet::udp::Socket socket;
};

namespace apenet::udp {
namespace {

using native::Inside;
using native::store;

ape_udp_status open_socket(ape_udp*& udp) {
  const ipc::Header* const machine = ipc::Client::machine();
  const std::optional<std::uint8_t> rail = machine == nullptr ? std::nullopt : Socket::find_rail(*machine);
  ipc::Client* const client = rail ? ipc::Client::instance() : nullptr;
  if (client == nullptr) return APE_UDP_NO_NETWORK;
  const Inside inside(*client);
  if (client->has_consumer(ipc::Interface::udp)) return APE_UDP_IS_OPEN;
  if (!client->join()) return APE_UDP_ENDED;
  udp = new ape_udp{Socket(*client, ipc::Interface::udp, *rail)};
  return APE_UDP_OK;
}

// Runs a call inside the process's lock, and turns what it throws into a status.
template <typename Call>
[[gnu::always_inline]] inline ape_udp_status enter(ape_udp* udp, Call call) noexcept {
  if (udp == nullptr) return APE_UDP_BAD_ADDRESS;
  try {
    Socket& socket = udp->socket;
    const Inside inside(socket.card().client());
    return socket.card().has_left() ? APE_UDP_ENDED : call(socket);
  } catch (const std::bad_alloc&) {
    return APE_UDP_NO_MEMORY;
  }
}

ape_udp_status receive_oldest(Socket& socket, std::span<std::byte> to, std::size_t* bytes, int* rank) {
  const std::size_t sent = socket.oldest().bytes.size();
  store(bytes, sent);
  store(rank, static_cast<int>(socket.oldest().source));
  socket.receive(to);
  return sent > to.size() ? APE_UDP_TRUNCATED : APE_UDP_OK;
}

}  // namespace
}  // namespace apenet::udp

using apenet::udp::enter;
using apenet::udp::receive_oldest;
using apenet::udp::Socket;
using apenet::udp::store;

ape_udp_status ape_udp_open(ape_udp** udp) {
  if (udp == nullptr) return APE_UDP_BAD_ADDRESS;
  try {
    return apenet::udp::open_socket(*udp);
  } catch (const std::bad_alloc&) {
    return APE_UDP_NO_MEMORY;
  }
}

ape_udp_status ape_udp_close(ape_udp* udp) {
  if (udp == nullptr) return APE_UDP_BAD_ADDRESS;
  apenet::ipc::Client& client = udp->socket.card().client();
  const apenet::native::Inside inside(client);
  const bool has_left = udp->socket.card().has_left();
  if (!has_left) udp->socket.card().close();
  delete udp;
  return has_left ? APE_UDP_ENDED : APE_UDP_OK;
}

ape_udp_status ape_udp_rank(ape_udp* udp, int* rank, int* size) {
  return enter(udp, [=](Socket& socket) {
    store(rank, static_cast<int>(socket.card().rank()));
    store(size, static_cast<int>(socket.card().rank_count()));
    return APE_UDP_OK;
  });
}

ape_udp_status ape_udp_send(ape_udp* udp, int rank, const void* data, size_t bytes) {
  return enter(udp, [=](Socket& socket) {
    if (rank < 0 || static_cast<std::uint32_t>(rank) >= socket.card().rank_count()) return APE_UDP_BAD_RANK;
    if (bytes > Socket::most_bytes) return APE_UDP_BAD_SIZE;
    if (data == nullptr && bytes > 0) return APE_UDP_BAD_ADDRESS;
    socket.send(static_cast<std::uint32_t>(rank), {static_cast<const std::byte*>(data), bytes}, false);
    return APE_UDP_OK;
  });
}

ape_udp_status ape_udp_receive(ape_udp* udp, void* buffer, size_t room, size_t* bytes, int* rank) {
  return enter(udp, [=](Socket& socket) {
    if (buffer == nullptr && room > 0) return APE_UDP_BAD_ADDRESS;
    socket.await(
        "ape_udp_receive", [&socket] { return socket.has_datagram(); }, std::nullopt);
    return receive_oldest(socket, {static_cast<std::byte*>(buffer), room}, bytes, rank);
  });
}

ape_udp_status ape_udp_poll(ape_udp* udp, void* buffer, size_t room, size_t* bytes, int* rank) {
  return enter(udp, [=](Socket& socket) {
    if (buffer == nullptr && room > 0) return APE_UDP_BAD_ADDRESS;
    if (!socket.poll()) return APE_UDP_NOT_YET;
    return receive_oldest(socket, {static_cast<std::byte*>(buffer), room}, bytes, rank);
  });
}

const char* ape_udp_strerror(ape_udp_status status) {
  static constexpr std::array<const char*, APE_UDP_NO_MEMORY + 1> texts = {
      "success",
      "no datagram is there",
      "this process does not run under `apenet run`, or the machine has no [software.udp]",
      "this process has left the simulation (MPI_Finalize)",
      "ape_udp_open() was called before",
      "no process has this rank",
      "too long: expected at most APE_UDP_MAX_BYTES",
      "a pointer is NULL",
      "the datagram was longer than the buffer",
      "out of memory"};
  const auto number = static_cast<std::size_t>(status);
  return number < texts.size() ? texts[number] : "no status of this library";
}
