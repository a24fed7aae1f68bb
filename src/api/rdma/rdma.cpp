// The C edge of the library of APENet's cards.
#include <array>
#include <memory>

#include "api/rdma/ape_rdma.h"
#include "api/rdma/port.hpp"

namespace apenet::rdma {
namespace {

// A process has one port. Touched under the process's lock only.
std::unique_ptr<Port>& open_port() {
  static auto& port = *new std::unique_ptr<Port>;
  return port;
}

ape_rdma_port* handle_of(Port* port) {
  return reinterpret_cast<ape_rdma_port*>(port);
}

template <typename Call>
[[gnu::always_inline]] inline ape_rdma_status enter(Call call) noexcept {
  return native::entered("rdma", APE_RDMA_NO_NETWORK, APE_RDMA_NO_MEMORY, call);
}

// `call` may return a status, or nothing if it succeeds when it returns.
template <typename Call>
[[gnu::always_inline]] inline ape_rdma_status with_port(const ape_rdma_port* handle, Call call) noexcept {
  return enter([&](ipc::Client&) {
    Port* port = open_port().get();
    if (port == nullptr || handle != handle_of(port)) return APE_RDMA_NOT_OPEN;
    if (port->card().has_left()) return APE_RDMA_ENDED;
    if constexpr (std::is_void_v<decltype(call(*port))>) {
      call(*port);
      return APE_RDMA_OK;
    } else {
      return call(*port);
    }
  });
}

Segments list_of(const ape_rdma_segment* segments, int count) {
  if (count < 0) throw Failure(APE_RDMA_BAD_SIZE);
  if (segments == nullptr && count > 0) throw Failure(APE_RDMA_BAD_ADDRESS);
  return {segments, static_cast<std::size_t>(count)};
}

}  // namespace
}  // namespace apenet::rdma

using apenet::native::store;
using apenet::rdma::enter;
using apenet::rdma::Failure;
using apenet::rdma::handle_of;
using apenet::rdma::list_of;
using apenet::rdma::open_port;
using apenet::rdma::Port;
using apenet::rdma::with_port;

ape_rdma_status ape_rdma_open(int number, ape_rdma_port** out) {
  return enter([=](apenet::ipc::Client& client) {
    if (out == nullptr) return APE_RDMA_BAD_ADDRESS;
    open_port() = std::make_unique<Port>(client, number);
    *out = handle_of(open_port().get());
    return APE_RDMA_OK;
  });
}

ape_rdma_status ape_rdma_close(ape_rdma_port* port) {
  return enter([=](apenet::ipc::Client&) {
    Port* open = open_port().get();
    if (open == nullptr || port != handle_of(open)) return APE_RDMA_NOT_OPEN;
    const bool has_left = open->card().has_left();
    if (!has_left) open->wait_for_posts();
    open_port().reset();
    return has_left ? APE_RDMA_ENDED : APE_RDMA_OK;
  });
}

ape_rdma_status ape_rdma_own_address(ape_rdma_port* port, ape_rdma_address* address) {
  return with_port(port, [=](Port& open) { store(address, open.address_of(open.card().rank())); });
}

ape_rdma_status ape_rdma_address_of_rank(ape_rdma_port* port, int rank, ape_rdma_address* address) {
  return with_port(port, [=](Port& open) {
    if (rank < 0 || static_cast<std::uint32_t>(rank) >= open.card().rank_count())
      throw Failure(APE_RDMA_BAD_TARGET);
    store(address, open.address_of(static_cast<std::uint32_t>(rank)));
  });
}

ape_rdma_status ape_rdma_rank(ape_rdma_port* port, int* rank, int* size) {
  return with_port(port, [=](Port& open) {
    store(rank, static_cast<int>(open.card().rank()));
    store(size, static_cast<int>(open.card().rank_count()));
  });
}

ape_rdma_status ape_rdma_queues(ape_rdma_port* port, int* queues) {
  return with_port(port, [=](Port& open) { store(queues, static_cast<int>(open.card().rail().channels)); });
}

ape_rdma_status ape_rdma_channels(ape_rdma_port* port, int* channels) {
  return with_port(port, [=](Port& open) { store(channels, static_cast<int>(open.virtual_channels())); });
}

ape_rdma_status ape_rdma_max_send_bytes(ape_rdma_port* port, size_t* bytes) {
  return with_port(port, [=](Port& open) { store(bytes, open.max_send_bytes()); });
}

ape_rdma_status ape_rdma_register(ape_rdma_port* port, void* memory, size_t bytes) {
  return with_port(port, [=](Port& open) { open.enroll(memory, bytes); });
}

ape_rdma_status ape_rdma_unregister(ape_rdma_port* port, void* memory) {
  return with_port(port, [=](Port& open) { open.withdraw(memory); });
}

ape_rdma_status ape_rdma_publish(ape_rdma_port* port, void* memory, size_t bytes, ape_rdma_buffer* buffer) {
  return with_port(port, [=](Port& open) { store(buffer, open.publish(memory, bytes)); });
}

ape_rdma_status ape_rdma_unpublish(ape_rdma_port* port, ape_rdma_buffer buffer) {
  return with_port(port, [=](Port& open) { open.unpublish(buffer); });
}

ape_rdma_status ape_rdma_post_send(ape_rdma_port* port, ape_rdma_address target, int queue,
                                   const ape_rdma_segment* segments, int count, unsigned flags,
                                   uint64_t cookie) {
  return with_port(port, [=](Port& open) {
    open.send({target, queue, flags, cookie}, list_of(segments, count));
  });
}

ape_rdma_status ape_rdma_post_put(ape_rdma_port* port, ape_rdma_address target, int queue,
                                  const ape_rdma_segment* segments, int count, ape_rdma_buffer buffer,
                                  size_t offset, unsigned flags, uint64_t cookie) {
  return with_port(port, [=](Port& open) {
    open.put({target, queue, flags, cookie}, list_of(segments, count), {buffer, offset});
  });
}

ape_rdma_status ape_rdma_post_get(ape_rdma_port* port, ape_rdma_address target, int queue,
                                  const ape_rdma_segment* segments, int count, ape_rdma_buffer buffer,
                                  size_t offset, uint64_t cookie) {
  return with_port(port, [=](Port& open) {
    open.get({target, queue, 0, cookie}, list_of(segments, count), {buffer, offset});
  });
}

ape_rdma_status ape_rdma_wait(ape_rdma_port* port, ape_rdma_event* event) {
  return with_port(port, [=](Port& open) { store(event, open.wait()); });
}

ape_rdma_status ape_rdma_wait_for(ape_rdma_port* port, double timeout_us, ape_rdma_event* event) {
  return with_port(port, [=](Port& open) {
    constexpr double most_us = 1e12;
    if (!(timeout_us >= 0 && timeout_us <= most_us)) return APE_RDMA_BAD_SIZE;
    ape_rdma_event report{};
    const auto most = apenet::Time::from_ps(static_cast<std::int64_t>(timeout_us * 1e6));
    if (!open.wait_for(most, report)) return APE_RDMA_NOT_YET;
    store(event, report);
    return APE_RDMA_OK;
  });
}

ape_rdma_status ape_rdma_poll(ape_rdma_port* port, ape_rdma_event* event) {
  return with_port(port, [=](Port& open) {
    ape_rdma_event report{};
    if (!open.poll(report)) return APE_RDMA_NOT_YET;
    store(event, report);
    return APE_RDMA_OK;
  });
}

ape_rdma_status ape_rdma_descriptor(ape_rdma_port* port, int* descriptor) {
  return with_port(port, [=](Port& open) { store(descriptor, open.descriptor()); });
}

ape_rdma_status ape_rdma_read_message(ape_rdma_port* port, void* memory, size_t bytes) {
  return with_port(port, [=](Port& open) {
    if (memory == nullptr && bytes > 0) return APE_RDMA_BAD_ADDRESS;
    return open.read_message({static_cast<std::byte*>(memory), bytes}) > bytes ? APE_RDMA_TRUNCATED
                                                                               : APE_RDMA_OK;
  });
}

ape_rdma_status ape_rdma_time_us(ape_rdma_port* port, double* time_us) {
  return with_port(port, [=](Port& open) {
    apenet::ipc::Client& client = open.card().client();
    store(time_us, static_cast<double>(client.clock_ps()) / 1e6);
    client.charge_clock_read();
  });
}

const char* ape_rdma_strerror(ape_rdma_status status) {
  static constexpr std::array<const char*, APE_RDMA_NO_MEMORY + 1> texts = {
      "success",
      "no event yet",
      "this process does not run under `apenet run`, or the machine's card is neither APELink nor APENet+",
      "this process has left the simulation (MPI_Finalize)",
      "the card has no such port",
      "not the port of this process, or it is open already",
      "the port is not open",
      "no process has that port of that node",
      "no such queue: expected APE_RDMA_ANY_QUEUE or one below ape_rdma_queues()",
      "no such virtual channel: expected one below ape_rdma_channels()",
      "a size that this operation cannot carry, or an empty list",
      "the address is NULL",
      "flags that this call does not know",
      "the memory has not been registered",
      "no such buffer",
      "beyond the published buffer; nothing was moved",
      "the card does not reach a GPU's memory, which a put with REMOTE_GPU needs here: NOTIFY, and one "
      "descriptor",
      "the message is longer than the memory for it",
      "too many buffers are published",
      "out of memory"};
  const auto number = static_cast<std::size_t>(status);
  return number < texts.size() ? texts[number] : "no status of this library";
}
