// The functions of rma2.h that open, connect and register, and the texts of the errors.
#include "api/extoll/rma2.h"

#include <cstddef>
#include <cstdio>
#include <optional>

#include "api/extoll/device.hpp"
#include "api/extoll/rma2_call.hpp"

namespace {

using apenet::extoll_api::Address;
using apenet::extoll_api::as_name;
using apenet::extoll_api::Device;
using apenet::extoll_api::number_of;
using apenet::extoll_api::with_library;
using apenet::extoll_api::with_port;
using apenet::native::Inside;

Address own_address(RMA2_Port port, bool& is_open) {
  Address address;
  is_open = with_port(port, [&](Device& device) {
              address = device.peers().of(device.card().rank());
              return RMA2_SUCCESS;
            }) == RMA2_SUCCESS;
  return address;
}

}  // namespace

RMA2_ERROR rma2_open(RMA2_Port* port) {
  if (port == nullptr) return RMA2_ERR_ERROR;
  *port = nullptr;
  Device* const device = Device::make();
  if (device == nullptr) return Device::missing() == Device::Missing::card ? RMA2_ERR_NO_DEVICE : RMA2_ERR_FD;
  const Inside inside(device->card().client());
  if (device->rma().is_open() || !device->peers().has_address(device->card().rank()))
    return RMA2_ERR_PORTS_USED;
  if (!device->card().open()) return RMA2_ERR_ERROR;
  const std::uint64_t id = device->next_id();
  if (!device->rma().open(id)) {
    device->card().close();
    return RMA2_ERR_NO_MEM;
  }
  *port = as_name<RMA2_Port>(id);
  return RMA2_SUCCESS;
}

RMA2_ERROR rma2_close(RMA2_Port port) {
  return with_port(port, [](Device& device) {
    device.rma().close();
    device.card().close();
    return RMA2_SUCCESS;
  });
}

RMA2_ERROR rma2_connect(RMA2_Port port, RMA2_Nodeid nodeid, RMA2_VPID vpid, RMA2_Connection_Options options,
                        RMA2_Handle* handle) {
  if (handle == nullptr) return RMA2_ERR_ERROR;
  *handle = nullptr;
  if (options != RMA2_CONN_DEFAULT) return RMA2_ERR_NOT_YET;
  return with_port(port, [&](Device& device) {
    const std::optional<std::uint32_t> target = device.peers().rank_of(nodeid, vpid);
    if (!target) return RMA2_ERR_NO_ROUTE;
    *handle = as_name<RMA2_Handle>(device.rma().connect(*target));
    return RMA2_SUCCESS;
  });
}

RMA2_ERROR rma2_disconnect(RMA2_Port port, RMA2_Handle handle) {
  return with_port(port, [&](Device& device) {
    return device.rma().disconnect(number_of(handle)) ? RMA2_SUCCESS : RMA2_ERR_INV_HANDLE;
  });
}

RMA2_Nodeid rma2_get_nodeid(RMA2_Port port) {
  bool is_open = false;
  const Address address = own_address(port, is_open);
  return is_open ? address.nodeid : RMA2_NODEID_ANY;
}

RMA2_VPID rma2_get_vpid(RMA2_Port port) {
  bool is_open = false;
  const Address address = own_address(port, is_open);
  return is_open ? address.vpid : RMA2_VPID_ANY;
}

RMA2_ERROR rma2_register(RMA2_Port port, void* address, size_t size, RMA2_Region** region) {
  if (address == nullptr || region == nullptr) return RMA2_ERR_ERROR;
  *region = nullptr;
  return with_port(port, [&](Device& device) {
    const std::uint64_t number = device.rma().register_memory(address, size);
    *region = as_name<RMA2_Region*>(number);
    return number == 0 ? RMA2_ERR_NO_MEM : RMA2_SUCCESS;
  });
}

RMA2_ERROR rma2_unregister(RMA2_Port port, RMA2_Region* region) {
  return with_port(port, [&](Device& device) {
    return device.rma().unregister(number_of(region)) ? RMA2_SUCCESS : RMA2_ERR_NO_TABLE;
  });
}

RMA2_ERROR rma2_get_nla(RMA2_Region* region, size_t offset, RMA2_NLA* nla) {
  if (nla == nullptr) return RMA2_ERR_ERROR;
  return with_library([&](Device& device) { return device.rma().nla_of(number_of(region), offset, *nla); });
}

const char* rma2_strerror(RMA2_ERROR error) {
  switch (error) {
    case RMA2_SUCCESS:
      return "success";
    case RMA2_ERR_ERROR:
      return "an argument is NULL, or the process has left the simulation";
    case RMA2_ERR_INV_HANDLE:
      return "the connection is not open";
    case RMA2_ERR_INV_PORT:
      return "the port is not open";
    case RMA2_ERR_INV_VALUE:
      return "a size, offset, number or set of bits is out of range, or the notification is not the oldest "
             "one";
    case RMA2_ERR_NO_ROUTE:
      return "no process of the program has this node and vpid";
    case RMA2_ERR_PORTS_USED:
      return "the process has its port already";
    case RMA2_ERR_NO_MEM:
      return "the memory cannot be registered";
    case RMA2_NO_NOTI:
      return "there is no notification";
    case RMA2_ERR_WRONG_ARG:
      return "quad words: an address or the size is no multiple of 8";
    case RMA2_ERR_NOT_YET:
      return "a command modifier or connection option that is not supported";
    case RMA2_ERR_NO_MATCH:
      return "the oldest notification does not match";
    case RMA2_ERR_WRONG_CMD:
      return "not a command that a process can post";
    case RMA2_ERR_NO_DEVICE:
      return "the machine has no EXTOLL card";
    case RMA2_ERR_FD:
      return "there is no simulation: start the program by `apenet run`";
    case RMA2_ERR_NO_TABLE:
      return "the memory region is not registered";
    case RMA2_ERR_PART:
      return "the local memory lies only partly in its region";
    default:
      return "an error that this library does not report";
  }
}

void rma2_serror(RMA2_ERROR error, char* buf, int buflen) {
  if (buf != nullptr && buflen > 0)
    std::snprintf(buf, static_cast<std::size_t>(buflen), "%s", rma2_strerror(error));
}

void rma2_perror(RMA2_ERROR error, const char* header) {
  std::fprintf(stderr, "%s: %s\n", header == nullptr ? "rma2" : header, rma2_strerror(error));
}
