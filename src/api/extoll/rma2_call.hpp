// What the functions of rma2.h share: names of ports, connections and regions, and the way into the library.
#pragma once

#include <cstdint>

#include "api/extoll/device.hpp"
#include "api/extoll/rma2.h"

namespace apenet::extoll_api {

// Ports, connections and regions are numbers in the form of pointers, never read: one that is not open is
// recognised.
template <typename Pointer>
Pointer as_name(std::uint64_t number) {
  return reinterpret_cast<Pointer>(number);  // NOLINT(performance-no-int-to-ptr)
}
inline std::uint64_t number_of(const void* name) {
  return reinterpret_cast<std::uint64_t>(name);
}

// Calls body(device) inside the library if a port is open.
template <typename Body>
[[gnu::always_inline]] inline RMA2_ERROR with_library(const Body& body) {
  Device* const device = Device::made();
  if (device == nullptr) return RMA2_ERR_INV_PORT;
  const native::Inside inside(device->card().client());
  if (!device->rma().is_open()) return RMA2_ERR_INV_PORT;
  return body(*device);
}

// The same if it is this port.
template <typename Body>
[[gnu::always_inline]] inline RMA2_ERROR with_port(RMA2_Port port, const Body& body) {
  return with_library([&](Device& device) {
    return device.rma().is_open(number_of(port)) ? body(device) : RMA2_ERR_INV_PORT;
  });
}

}  // namespace apenet::extoll_api
