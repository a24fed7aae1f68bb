// MachineDescription: a machine as plain data, before anything is wired or runs.
//
// Every field is in base units (picoseconds, hertz, bytes). The TOML files under machines/ say where each
// number comes from; machine/describe.hpp makes this of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/description.hpp"
#include "kernel/rate.hpp"
#include "kernel/time.hpp"
#include "network/description.hpp"
#include "nic/description.hpp"
#include "schema/fields.hpp"

namespace apenet {

// CPU time of one software layer over the card, per step; the layer's library charges it to the process.
struct SoftwareDescription {
  Time send;
  Time send_packet;
  Time receive_packet;
  Time receive;
  Time after_receive;
  Time completion;
  Time rendezvous;
  Time publish;
  Time poll;
  Time clock_read;
  std::int64_t eager_limit_bytes = 0;

  // Of a message in so many packets of the library's: what the CPU does for all but the first.
  [[nodiscard]] constexpr Time further_sends(std::uint32_t packets) const {
    return send_packet * (packets > 1 ? packets - 1 : 0);
  }
  [[nodiscard]] constexpr Time further_receives(std::uint32_t packets) const {
    return receive_packet * (packets > 1 ? packets - 1 : 0);
  }
};

inline void list_fields(schema::Fields& fields, SoftwareDescription& layer) {
  using namespace schema::ranges;
  fields("send_us", layer.send, not_negative, "post one message: library, descriptor");
  fields("receive_us", layer.receive, not_negative, "take one completed message: match, dispatch");
  fields("after_receive_us", layer.after_receive, not_negative,
         "off the critical path: give the receive buffer back to the card");
  fields("completion_us", layer.completion, not_negative, "take one local completion");
  fields("rendezvous_us", layer.rendezvous, not_negative,
         "one control step of a rendezvous, beside its send or receive");
  fields("publish_us", layer.publish, not_negative, "publish or register a buffer for remote access");
  fields("poll_us", layer.poll, not_negative, "one unsuccessful look for completions");
  fields("clock_read_us", layer.clock_read, not_negative, "gettimeofday and its kin");
  fields("eager_limit_bytes", layer.eager_limit_bytes, size_or_zero, "above it: rendezvous, zero copy");
  fields("send_packet_us", layer.send_packet, not_negative.optional(),
         "each further packet of a message, where the library cuts it into packets (VELO)");
  fields("receive_packet_us", layer.receive_packet, not_negative.optional(),
         "each further packet of a message, where the library takes them one by one");
}

struct MachineDescription {
  std::string name;
  NetworkDescription network;
  HostDescription host;
  NicDescription nic;
  SoftwareDescription card_software;  // the card's own library (apelib), for the layer `card`
  SoftwareDescription mpi_software;   // MPI over the libfabric provider
  std::uint64_t seed = 1;
};

}  // namespace apenet
