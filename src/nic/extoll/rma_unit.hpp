// RmaUnit: what sends for RMA: the requester of puts and get requests, and the responder of gets. Commands
// in, packets out.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/extoll/card.hpp"

namespace apenet::extoll {

// Each port has a queue of commands. The unit decodes one command at a time, of the ports in turn, and a
// port's next one when the packets of its last have been issued; ports whose command is decoded take turns,
// packet by packet. For each packet, room in the injection buffer is reserved first (credits hold the sender
// back), then its payload is read by DMA; the packet is handed to the network when the first word of the last
// burst arrives.
//
// Invariants: packets are injected in the order in which they were issued, whether they needed a read or not;
// reserved room is never given twice; at most outstanding_reads payload reads of the unit are under way.
class RmaUnit final : private BusClient, private EventHandler {
 public:
  static constexpr std::int64_t max_ports = 64;  // a bit each

  RmaUnit(Card& card, Channel channel, std::int64_t command_cycles);
  RmaUnit(const RmaUnit&) = delete;
  RmaUnit& operator=(const RmaUnit&) = delete;

  // The doorbell of a process rings: its command crosses the bus.
  void post(MessageId id, Role role);
  // The unit has the command now.
  void command(MessageId id, Role role);
  void injection_freed() { pump(); }

 private:
  struct Port {
    QueuePool<Command>::Queue commands;
    std::uint32_t next_packet = 0;  // of the first command, once it is decoded
  };

  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;

  [[nodiscard]] unsigned port_of(MessageId id, Role role) const;
  void decode_next();
  void finish_command(unsigned port);
  void pump();
  bool issue_packet(unsigned port);
  [[nodiscard]] bool has_room(std::int64_t wire_bytes);
  [[nodiscard]] Packet packet_of(const Command& command, std::uint32_t sequence) const;
  void payload_granted(const BusGrant& grant);
  void inject(const Packet& packet, Time tail_time);
  void inject_what_needs_no_data();
  void report_sent(MessageId id);

  Card& card_;
  Channel channel_;
  std::int64_t command_cycles_;
  std::vector<Port> ports_;
  std::uint64_t waiting_ = 0;  // a bit for each port whose first command waits for the decoder
  std::uint64_t decoded_ = 0;  // and for each whose first command is decoded
  bool decoding_ = false;
  unsigned next_decode_ = 0;  // whose turn it is
  unsigned next_issue_ = 0;
  std::int64_t reserved_bytes_ = 0;    // of the injection buffer, for packets that are still being read
  QueuePool<Pending>::Queue pending_;  // in the order of their issue; the first always waits for its data
  QueuePool<Read>::Queue reads_;       // in the order of their requests, which is that of their data
  std::uint32_t read_count_ = 0;
};

}  // namespace apenet::extoll
