// Transmitter: which packet leaves the card next, and the payload that it takes from memory.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/hca/card.hpp"

namespace apenet::hca {

// Who makes the packets of a connection: its requests, or the responses to reads.
class PacketSource {
 public:
  struct Next {
    Packet packet;
    std::int64_t read_bytes = 0;  // of payload, from this node's memory; 0: nothing
  };
  [[nodiscard]] virtual bool has_packet(ConnectionId connection) const = 0;
  [[nodiscard]] virtual Next next_packet(ConnectionId connection) const = 0;
  // next_packet is on its way. Whether there is another one.
  virtual bool packet_issued(ConnectionId connection) = 0;

 protected:
  ~PacketSource() = default;
};

// Connections that have something to send take turns on each virtual lane, packet by packet, and the lanes
// among each other. For each packet, room in the injection buffer is reserved first (credits hold the sender
// back), then its payload is read by DMA; the packet is handed to the network when the first word arrives.
// Acknowledgements wait for nothing but room.
//
// Invariants: packets of one lane are injected in the order of their turns, acknowledgements aside; reserved
// room is never given twice; at most bus_reads payload reads are under way.
class Transmitter final : private BusClient, private EventHandler {
 public:
  static constexpr std::int64_t max_lanes = 64;  // a bit each

  Transmitter(Card& card, PacketSource& requests, PacketSource& responses);
  Transmitter(const Transmitter&) = delete;
  Transmitter& operator=(const Transmitter&) = delete;

  // The stream has a packet. It keeps its turn until it has none.
  void ready(const Stream& stream);
  void send_control(const Control& control);
  void injection_freed() { pump(); }

 private:
  struct Lane {
    QueuePool<Stream>::Queue streams;
    QueuePool<Control>::Queue controls;
    QueuePool<Pending>::Queue pending;  // in injection order; the first always waits for its data
    std::int64_t reserved_bytes = 0;    // of the injection buffer, for packets that are still being read
  };

  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;

  void pump();
  bool issue(std::uint16_t lane_index);
  void issue_controls(std::uint16_t lane_index);
  [[nodiscard]] Packet make_control(const Control& control);
  [[nodiscard]] bool has_room(std::uint16_t lane_index, std::int64_t wire_bytes);
  void inject(const Packet& packet, Time tail_time);
  void inject_what_needs_no_data(Lane& lane);
  [[nodiscard]] PacketSource& source_of(const Stream& stream) {
    return stream.is_response ? responses_ : requests_;
  }

  Card& card_;
  PacketSource& requests_;
  PacketSource& responses_;
  std::vector<Lane> lanes_;
  QueuePool<std::uint16_t>::Queue reads_;  // lanes, in the order of the requests, which is that of their data
  std::uint32_t read_count_ = 0;
  std::uint64_t busy_lanes_ = 0;  // a bit for each with streams or controls
  unsigned next_lane_ = 0;        // whose turn it is
};

}  // namespace apenet::hca
