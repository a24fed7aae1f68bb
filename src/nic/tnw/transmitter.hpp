// TnwTransmitter: the sending half of a TNW card: puts, credits and acknowledgements out.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/tnw/card.hpp"
#include "nic/tnw/cpu_links.hpp"

namespace apenet {

class TnwReceiver;

// A put crosses the CPU links packet by packet and goes on to its link at once. Puts and credits do so in the
// order of their doorbells, but a put whose virtual channel has no room lets those of other channels pass:
// the receiver holds receive_buffer_packets of each link and channel, and a packet's place there is free
// again when its acknowledgement is back. Nothing is dropped.
//
// Invariant: the packets of a flow (link, channel) that are sent and not acknowledged are at most
// receive_buffer_packets.
class TnwTransmitter final : public CpuLinkUser, private EventHandler {
 public:
  TnwTransmitter(TnwCard& card, TnwReceiver& receiver);
  TnwTransmitter(const TnwTransmitter&) = delete;
  TnwTransmitter& operator=(const TnwTransmitter&) = delete;

  void post(const TnwEntry& entry, std::uint32_t link, std::uint16_t lane);
  void post(const TnwCredit& credit);
  // The packet has left the receive buffer of this card; `role`: acknowledged or completed.
  void acknowledge(const Packet& packet, TnwRole role);
  // The other side has said so of ours.
  void acknowledged(const Packet& acknowledgement);
  void injection_freed(std::uint16_t channel);

  Time take_turn() override;
  void turn_over() override;

 private:
  struct Flow {
    QueuePool<TnwEntry>::Queue entries;
    QueuePool<Packet>::Queue acknowledgements;
    std::uint32_t next_packet = 0;  // of the first entry's message
    std::uint32_t window = 0;       // places free in the receive buffer
  };
  static constexpr std::uint32_t none = 0xffffffff;

  void handle_event(const Event& event) override;
  [[nodiscard]] bool may_send(std::uint32_t flow);
  [[nodiscard]] Packet next_packet_of(std::uint32_t flow) const;
  void packet_crossed(std::uint32_t flow);
  void send_acknowledgements(std::uint32_t flow);
  // Of the network. Acknowledgements have channels of their own: on a link they take turns with packets.
  [[nodiscard]] std::uint16_t data_channel(std::uint32_t flow) const;

  TnwCard& card_;
  TnwReceiver& receiver_;
  std::vector<Flow> flows_;   // link by link, its virtual channels
  std::uint64_t active_ = 0;  // a bit for each flow that has something
  QueuePool<TnwCredit>::Queue credits_;
  std::uint64_t next_number_ = 0;
  std::uint32_t current_ = none;  // the flow whose turn it is; flows_.size(): a credit's
};

}  // namespace apenet
