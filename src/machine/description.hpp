// MachineDescription: a machine as plain data, before it is wired.
//
// Every field is in base units (picoseconds, hertz, bytes). machine/describe.hpp reads it from a machine
// file, which states the source of each number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "host/description.hpp"
#include "message/requests.hpp"
#include "network/description.hpp"
#include "nic/description.hpp"
#include "nic/interrupts.hpp"
#include "nic/same_node.hpp"
#include "schema/fields.hpp"

namespace apenet::message {

// The keys of [software.*]. In the namespace of the struct, where the schema finds it.
inline void list_fields(schema::Fields& fields, SoftwareCosts& layer) {
  using namespace schema::ranges;
  fields("send_us", layer.send, not_negative, "to post a message: library and descriptor");
  fields("receive_us", layer.receive, not_negative, "to take a complete message: matching and dispatch");
  fields("after_receive_us", layer.after_receive, not_negative,
         "to give the receive buffer back to the card, after the message has been delivered");
  fields("completion_us", layer.completion, not_negative, "to take a local completion");
  fields("rendezvous_us", layer.rendezvous, not_negative,
         "each control step of a rendezvous, beside its send or receive");
  fields("publish_us", layer.publish, not_negative, "to publish or register a buffer for remote access");
  fields("poll_us", layer.poll, not_negative, "a poll that finds no completion");
  fields("clock_read_us", layer.clock_read, not_negative, "gettimeofday and similar calls");
  fields("eager_limit_bytes", layer.eager_limit_bytes, size_or_zero,
         "largest eager message; larger ones use a rendezvous without a copy");
  fields("send_packet_us", layer.send_packet, not_negative.optional(),
         "each further packet of a message that the library splits into packets (VELO)");
  fields("doorbell_us", layer.doorbell, not_negative.optional(),
         "further time to post a message that the processor does not write to the card");
  fields("eager_completion_us", layer.eager_completion, not_negative.optional(),
         "to take the completion of a copied message; 0: the library asks for none");
  fields("receive_packet_us", layer.receive_packet, not_negative.optional(),
         "each further packet of a message whose packets the library takes one by one");
}

// The keys of [software.udp], and with others those of [software.ip].
inline void list_fields(schema::Fields& fields, DatagramCosts& udp) {
  using namespace schema::ranges;
  fields("mtu_bytes", udp.mtu_bytes, schema::Range{576, 65535},
         "largest IP packet of the interface, its IP header included");
  fields("header_bytes", udp.header_bytes, size_or_zero,
         "encapsulation of an IP packet on this network, beside the card's own headers");
  fields("system_call_us", udp.system_call, not_negative, "to enter and leave the kernel");
  fields("send_us", udp.send, not_negative,
         "a call that sends, from the entry into the kernel to the descriptor, without the copy");
  fields("send_packet_us", udp.send_packet, not_negative, "each further packet of a datagram or of a stream");
  fields("interrupt_us", udp.interrupt, not_negative,
         "from a packet in memory to the kernel's work on it: interrupt moderation, and the core's wake-up");
  fields("receive_packet_us", udp.receive_packet, not_negative,
         "driver, IP, UDP or TCP, and socket for an arriving packet");
  fields("receive_us", udp.receive, not_negative,
         "a call that takes data out of its socket, without the copy");
}

}  // namespace apenet::message

namespace apenet {

// The kernel's TCP/IP over the card, for the sockets of `apenet run --ip`.
struct IpDescription {
  message::DatagramCosts costs{};  // unless the file describes them, there is none
  double loss_probability = 0;
};

inline void list_fields(schema::Fields& fields, IpDescription& ip) {
  list_fields(fields, ip.costs);
  fields("loss_probability", ip.loss_probability, schema::ranges::probability.optional(),
         "probability that the interface loses a packet that it sends");
}

// A further card of every node, or a further port of its card, with a network of its own.
struct RailDescription {
  std::string name;
  bool shares_slot = false;  // it is at the bus of the first rail, and `bus` is unused
  NetworkDescription network;
  BusDescription bus;
  NicDescription nic;
  InterruptDescription interrupts{};
  SameNodeDescription same_node{};
  message::SoftwareCosts card_software;
  message::SoftwareCosts mpi_software;
  message::DatagramCosts udp_software{};
  IpDescription ip_software{};
};

inline void list_fields(schema::Fields& fields, RailDescription& rail) {
  fields("slot", rail.shares_slot, schema::Choice{"own", "shared"},
         "own: the card has a bus of its own; shared: it is at the bus of the first rail");
}

struct MachineDescription {
  static constexpr std::size_t most_rails = 4;  // the first included
  std::string name;
  NetworkDescription network;
  HostDescription host;
  NicDescription nic;
  InterruptDescription interrupts{};
  SameNodeDescription same_node{};
  message::SoftwareCosts card_software;  // the card's own library (apelib), for the layer `card`
  message::SoftwareCosts mpi_software;   // MPI over the libfabric provider
  message::DatagramCosts udp_software;   // the kernel's UDP/IP; unless the file describes it, there is none
  IpDescription ip_software;
  std::vector<RailDescription> rails;  // beside the first, which the fields above describe
  std::uint64_t seed = 1;
};

}  // namespace apenet
