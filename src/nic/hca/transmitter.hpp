// Transmitter: chooses the next packet that leaves the card, and reads its payload from memory.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/hca/card.hpp"

namespace apenet::hca {

// Makes the packets of a connection: its requests, or its responses to reads.
class PacketSource {
 public:
  struct Next {
    Packet packet;
    std::int64_t read_bytes = 0;  // payload to read from this node's memory
  };
  [[nodiscard]] virtual bool has_packet(ConnectionId connection) const = 0;
  [[nodiscard]] virtual Next next_packet(ConnectionId connection) const = 0;
  // Call when next_packet() has been issued. Returns whether the connection has another packet.
  virtual bool packet_issued(ConnectionId connection) = 0;

 protected:
  ~PacketSource() = default;
};

// For each injection FIFO, the connections that have packets for it take turns packet by packet, and the
// FIFOs take turns with each other. Every virtual lane has a FIFO, or several (InjectionFifos). For each
// packet, space in the FIFO is reserved first (credits hold the sender back), then the payload is read by
// DMA. The packet is passed to the network when its first word arrives. Acknowledgements wait only for space.
//
// Invariants: packets of one FIFO, except acknowledgements, are injected in the order of their turns;
// reserved space is never given twice; at most outstanding_reads payload reads are in progress.
class Transmitter final : private BusClient, private EventHandler {
 public:
  static constexpr std::int64_t max_fifos = 64;  // one bit each in State::busy_fifos

  Transmitter(Card& card, PacketSource& requests, PacketSource& responses);
  Transmitter(const Transmitter&) = delete;
  Transmitter& operator=(const Transmitter&) = delete;

  // The stream has a packet. It stays in the rotation until it has none.
  void ready(const Stream& stream);
  void send_control(const Control& control);
  // For InjectionRule::least_loaded: the FIFO of a lane with the fewest bytes in it and in front of it.
  [[nodiscard]] std::uint16_t least_loaded(std::uint16_t lane) const;
  void add_waiting(std::uint16_t fifo, std::int64_t bytes) { state_.fifos[fifo].waiting_bytes += bytes; }
  void injection_freed() { pump(); }

  struct Fifo {
    QueuePool<Stream>::Queue streams;
    QueuePool<Control>::Queue controls;
    QueuePool<Pending>::Queue pending;  // in injection order; the first always waits for its data
    // Space of the injection buffer reserved for packets whose payload is still being read.
    std::int64_t reserved_bytes = 0;
    // Payload of the requests in front of it. Counted for InjectionRule::least_loaded only.
    std::int64_t waiting_bytes = 0;
  };
  struct State {
    std::vector<Fifo> fifos;
    // The FIFO of each read, in the order of requests, which is the order of data.
    QueuePool<PayloadRead>::Queue reads;
    std::uint32_t read_count = 0;
    std::uint64_t busy_fifos = 0;  // one bit per FIFO with streams or controls
    unsigned next_fifo = 0;        // arbiter state
  };

 private:
  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;

  void pump();
  bool issue(std::uint16_t number);
  void issue_controls(std::uint16_t number);
  [[nodiscard]] Packet make_control(const Control& control);
  [[nodiscard]] bool has_room(std::uint16_t number, std::int64_t wire_bytes);
  void inject(const Packet& packet, Time tail_time);
  void inject_what_needs_no_data(Fifo& fifo);
  [[nodiscard]] PacketSource& source_of(const Stream& stream) {
    return stream.is_response ? responses_ : requests_;
  }

  Card& card_;
  PacketSource& requests_;
  PacketSource& responses_;
  State state_;
};

}  // namespace apenet::hca
