// MachineDescription: a machine as plain data, before anything is wired or runs.
//
// Every field is in base units (picoseconds, hertz, bytes). The TOML files under machines/ say where each
// number comes from; python/apenet/machine reads and validates them and fills this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/description.hpp"
#include "kernel/rate.hpp"
#include "kernel/time.hpp"
#include "network/description.hpp"
#include "nic/description.hpp"

namespace apenet {

// CPU time of one software layer over the card, per step; the layer's library charges it to the process.
struct SoftwareDescription {
  Time send;                           // post one message: library, descriptor
  Time send_packet;                    // each further packet, where the library cuts a send into packets ...
  Time receive_packet;                 // ... and takes them one by one (NicCapabilities::send_packet_bytes)
  Time receive;                        // take one completed message: match, dispatch
  Time after_receive;                  // off the critical path: give the receive buffer back to the card
  Time completion;                     // take one local completion (sent, remote_done, got)
  Time rendezvous;                     // one control step of a rendezvous, beside its send or receive
  Time publish;                        // publish or register a buffer for remote access
  Time poll;                           // one unsuccessful look for completions
  Time clock_read;                     // gettimeofday and its kin
  std::int64_t eager_limit_bytes = 0;  // above it: rendezvous, zero copy

  // Of a message in so many packets of the library's: what the CPU does for all but the first.
  [[nodiscard]] constexpr Time further_sends(std::uint32_t packets) const {
    return send_packet * (packets > 1 ? packets - 1 : 0);
  }
  [[nodiscard]] constexpr Time further_receives(std::uint32_t packets) const {
    return receive_packet * (packets > 1 ? packets - 1 : 0);
  }
};

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
