// RmaUnit: a sending unit of RMA: the requester of puts and gets, or the responder of gets. Turns commands
// into packets.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/extoll/card.hpp"

namespace apenet::extoll {

// Each port has a queue of commands. The unit decodes one command at a time, from the ports in turn; a port's
// next command is decoded when all packets of its current one have been issued. Ports with a decoded command
// take turns packet by packet. For each packet, space in the injection buffer is reserved first (credits hold
// the sender back), then the payload is read by DMA. The packet is passed to the network when the first word
// of its last burst arrives.
//
// Invariants: packets are injected in the order in which they were issued, whether they needed a read or not;
// reserved space is never given twice; at most outstanding_reads payload reads of the unit are in progress.
class RmaUnit final : private BusClient, private EventHandler {
 public:
  static constexpr std::int64_t max_ports = 64;  // one bit each

  RmaUnit(Card& card, Channel channel, std::int64_t command_cycles);
  RmaUnit(const RmaUnit&) = delete;
  RmaUnit& operator=(const RmaUnit&) = delete;

  // Call when the doorbell of a process rings: the command then crosses the bus.
  void post(MessageId id, Role role);
  // Call when the unit has received the command.
  void command(MessageId id, Role role);
  void injection_freed() { pump(); }
  [[nodiscard]] const EngineUse& decoder() const { return decoder_; }

  struct Port {
    QueuePool<Command>::Queue commands;
    std::uint32_t next_packet = 0;  // next packet of the first command, once decoded
  };
  struct State {
    std::vector<Port> ports;
    std::uint64_t waiting = 0;  // one bit per port whose first command waits for the decoder
    std::uint64_t decoded = 0;  // one bit per port whose first command is decoded
    bool decoding = false;
    unsigned next_decode = 0;  // arbiter state: the next port
    unsigned next_issue = 0;
    // Space of the injection buffer reserved for packets whose payload is still being read.
    std::int64_t reserved_bytes = 0;
    QueuePool<Pending>::Queue pending;  // in the order of issue; the first always waits for its data
    QueuePool<Read>::Queue reads;       // in the order of requests, which is the order of data
    std::uint32_t read_count = 0;
  };

 private:
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
  void payload_gone(MessageId id);

  Card& card_;
  const Channel channel_;
  const std::int64_t command_cycles_;
  State state_;
  EngineUse decoder_;
};

}  // namespace apenet::extoll
