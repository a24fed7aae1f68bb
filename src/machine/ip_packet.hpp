// The descriptor of an IP packet from one node's kernel to another's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/machine.hpp"

namespace apenet {

// `number` is that of the message. The kernels are processes of the machine.
[[nodiscard]] inline Descriptor packet_descriptor(const Machine& machine, ProcessId source, ProcessId target,
                                                  std::size_t packet_bytes, std::uint64_t number) {
  Descriptor descriptor;
  descriptor.verb = Verb::send;
  descriptor.source = source;
  descriptor.target = target;
  descriptor.channel = machine.channel_between(source, target);
  descriptor.bytes =
      static_cast<std::int64_t>(packet_bytes) + machine.description().ip_software.costs.header_bytes;
  descriptor.message = number;
  return descriptor;
}

}  // namespace apenet
