// The C edge of VELO.
#include "api/extoll/velo2.h"

#include <cstddef>

#include "api/extoll/device.hpp"

namespace {

using apenet::extoll_api::Address;
using apenet::extoll_api::Device;
using apenet::extoll_api::Velo;
using apenet::native::Inside;

// Calls body(device) inside the library if the port is open.
template <typename Body>
[[gnu::always_inline]] inline velo2_ret_t with_port(std::uint64_t id, const Body& body) {
  Device* const device = Device::made();
  if (device == nullptr) return VELO2_RET_INVALID_MBOX;
  const Inside inside(device->card().client());
  if (!device->velo().is_open(id)) return VELO2_RET_INVALID_MBOX;
  return body(*device);
}

struct Received {
  std::span<std::byte> buffer;
  std::uint32_t* length;
  std::uint32_t* source;
  std::uint8_t* tag;
};

velo2_ret_t take_oldest(Velo& velo, const Received& to) {
  const std::uint64_t status = velo.oldest().status;
  if (VELO2_STATUS_LENGTH(status) > to.buffer.size()) return VELO2_RET_INV_MSG;
  velo.take(to.buffer);
  *to.length = static_cast<std::uint32_t>(VELO2_STATUS_LENGTH(status));
  *to.source = static_cast<std::uint32_t>(VELO2_STATUS_SOURCEID(status));
  *to.tag = static_cast<std::uint8_t>(VELO2_STATUS_TAG(status));
  return VELO2_RET_SUCCESS;
}

bool is_complete(const Received& to) {
  return (to.buffer.data() != nullptr || to.buffer.empty()) && to.length != nullptr && to.source != nullptr &&
         to.tag != nullptr;
}

Received received(void* buffer, std::uint32_t max_length, std::uint32_t* length, std::uint32_t* source,
                  std::uint8_t* tag) {
  return {{static_cast<std::byte*>(buffer), max_length}, length, source, tag};
}

Address own_address(const velo2_port_t* port) {
  constexpr Address none{0xffff, 0xff};
  Device* const device = Device::made();
  if (device == nullptr || port == nullptr) return none;
  const Inside inside(device->card().client());
  return device->velo().is_open(port->id) ? device->peers().of(device->card().rank()) : none;
}

}  // namespace

velo2_ret_t velo2_open(velo2_port_t* port) {
  if (port == nullptr) return VELO2_RET_ERROR;
  port->id = 0;
  Device* const device = Device::make();
  if (device == nullptr) {
    return Device::missing() == Device::Missing::card ? VELO2_RET_ERR_FDOPEN : VELO2_RET_ERR_MMAP;
  }
  const Inside inside(device->card().client());
  if (device->velo().is_open() || !device->peers().has_address(device->card().rank()))
    return VELO2_RET_INVALID_MBOX;
  if (!device->card().open()) return VELO2_RET_ERROR;
  port->id = device->next_id();
  device->velo().open(port->id);
  return VELO2_RET_SUCCESS;
}

velo2_ret_t velo2_close(velo2_port_t* port) {
  if (port == nullptr) return VELO2_RET_ERROR;
  return with_port(port->id, [](Device& device) {
    device.velo().close();
    device.card().close();
    return VELO2_RET_SUCCESS;
  });
}

velo2_ret_t velo2_connect(velo2_port_t* port, velo2_connection_t* connection, velo2_nodeid_t nodeid,
                          velo2_vpid_t vpid) {
  if (port == nullptr || connection == nullptr) return VELO2_RET_ERROR;
  *connection = {};
  return with_port(port->id, [&](Device& device) {
    const std::optional<std::uint32_t> target = device.peers().rank_of(nodeid, vpid);
    if (!target) return device.peers().has_node(nodeid) ? VELO2_RET_INVALID_MBOX : VELO2_RET_INVALID_NODE;
    *connection = {port->id, *target};
    return VELO2_RET_SUCCESS;
  });
}

velo2_ret_t velo2_disconnect(velo2_connection_t* connection) {
  if (connection == nullptr) return VELO2_RET_ERROR;
  return with_port(connection->port_id, [&](Device& /*device*/) {
    *connection = {};
    return VELO2_RET_SUCCESS;
  });
}

velo2_nodeid_t velo2_get_nodeid(const velo2_port_t* port) {
  return own_address(port).nodeid;
}

velo2_vpid_t velo2_get_vpid(const velo2_port_t* port) {
  return own_address(port).vpid;
}

velo2_ret_t velo2_send(velo2_connection_t* connection, const void* buffer, uint32_t length, uint8_t tag,
                       uint8_t mtt) {
  if (connection == nullptr || (buffer == nullptr && length > 0)) return VELO2_RET_ERROR;
  return with_port(connection->port_id, [&](Device& device) {
    if (connection->target >= device.card().rank_count()) return VELO2_RET_INVALID_MBOX;
    return device.velo().send(connection->target, {static_cast<const std::byte*>(buffer), length}, tag, mtt);
  });
}

velo2_ret_t velo2_recv(velo2_port_t* port, void* buffer, uint32_t max_length, uint32_t* length,
                       uint32_t* srcid, uint8_t* tag, uint8_t mtt) {
  const Received to = received(buffer, max_length, length, srcid, tag);
  if (port == nullptr || !is_complete(to)) return VELO2_RET_ERROR;
  return with_port(port->id, [&](Device& device) {
    if (mtt > Velo::last_type) return VELO2_RET_INV_MTT;
    Velo& velo = device.velo();
    velo.await_message();
    if (VELO2_STATUS_MTT(velo.oldest().status) != mtt) return VELO2_RET_NO_MATCH;
    return take_oldest(velo, to);
  });
}

velo2_ret_t velo2_probe_recv(velo2_port_t* port, void* buffer, uint32_t max_length, uint32_t* length,
                             uint32_t* srcid, uint8_t* tag, uint8_t* mtt) {
  const Received to = received(buffer, max_length, length, srcid, tag);
  if (port == nullptr || !is_complete(to) || mtt == nullptr) return VELO2_RET_ERROR;
  return with_port(port->id, [&](Device& device) {
    Velo& velo = device.velo();
    if (!velo.poll()) return VELO2_RET_NO_MSG;
    const auto type = static_cast<std::uint8_t>(VELO2_STATUS_MTT(velo.oldest().status));
    const velo2_ret_t result = take_oldest(velo, to);
    if (result == VELO2_RET_SUCCESS) *mtt = type;
    return result;
  });
}

const char* velo2_strerror(velo2_ret_t error) {
  switch (error) {
    case VELO2_RET_SUCCESS:
      return "success";
    case VELO2_RET_ERROR:
      return "an argument is NULL, or the process has left the simulation";
    case VELO2_RET_NO_MSG:
      return "the mailbox is empty";
    case VELO2_RET_NO_MATCH:
      return "the oldest message in the mailbox has another message type (mtt)";
    case VELO2_RET_ERR_FDOPEN:
      return "the machine has no EXTOLL card";
    case VELO2_RET_ERR_MMAP:
      return "there is no simulation: start the program by `apenet run`";
    case VELO2_RET_INVALID_MBOX:
      return "the port or connection is not open, no process has this vpid, or the process has a port "
             "already";
    case VELO2_RET_INVALID_NODE:
      return "no process of the program is on this node";
    case VELO2_RET_TRY_AGAIN:
      return "no room to send, and the own mailbox is full: receive, and try again";
    case VELO2_RET_INV_MSG:
      return "the message is longer than a packet, or than the buffer";
    case VELO2_RET_INV_MTT:
      return "the message type (mtt) is above 3";
  }
  return "unknown error";
}
