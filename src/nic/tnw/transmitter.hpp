// Transmitter: the sending half of a TNW card. Sends puts, credits and acknowledgements.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/tnw/card.hpp"
#include "nic/tnw/cpu_links.hpp"

namespace apenet::tnw {

class Receiver;

// A put crosses the CPU links packet by packet, and each packet goes on to its link at once. Puts and credits
// move in the order of their doorbells, but a put whose virtual channel has no room lets those of other
// channels pass. The receiver buffers receive_buffer_packets per link and channel, and a packet's place is
// free again when its acknowledgement has returned. Nothing is dropped.
//
// Invariant: at most receive_buffer_packets of a flow (link, channel) are sent and not acknowledged.
class Transmitter final : public CpuLinkUser, private EventHandler {
 public:
  Transmitter(Card& card, Receiver& receiver);
  Transmitter(const Transmitter&) = delete;
  Transmitter& operator=(const Transmitter&) = delete;

  void post(const QueuedMessage& entry, std::uint32_t link, std::uint16_t lane);
  void post(const Credit& credit);
  // Call when the packet has left the receive buffer of this card. `role`: acknowledged or completed.
  void acknowledge(const Packet& packet, Role role);
  // Call when the other card's acknowledgement of our packet arrives.
  void acknowledged(const Packet& acknowledgement);
  void injection_freed(std::uint16_t channel);

  NextItem take_turn() override;
  void turn_over() override;

  struct Flow {
    QueuePool<QueuedMessage>::Queue entries;
    QueuePool<Packet>::Queue acknowledgements;
    std::uint32_t next_packet = 0;  // next packet of the first entry's message
    std::uint32_t window = 0;       // free places in the receive buffer
  };
  static constexpr std::uint32_t none = 0xffffffff;
  struct State {
    std::vector<Flow> flows;   // per link, its virtual channels
    std::uint64_t active = 0;  // one bit per flow that has entries
    QueuePool<Credit>::Queue credits;
    Numbering<std::uint64_t> next_number;
    std::uint32_t current = none;  // the flow that is served; flows.size() for a credit
  };

 private:
  void handle_event(const Event& event) override;
  [[nodiscard]] bool may_send(std::uint32_t flow);
  [[nodiscard]] Packet next_packet_of(std::uint32_t flow) const;
  void packet_crossed(std::uint32_t flow);
  void send_acknowledgements(std::uint32_t flow);
  // The channel of the network. Acknowledgements have their own channels, so that on a link they take turns
  // with packets.
  [[nodiscard]] std::uint16_t data_channel(std::uint32_t flow) const;

  Card& card_;
  Receiver& receiver_;
  State state_;
};

}  // namespace apenet::tnw
