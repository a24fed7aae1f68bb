// Receiver: the receiving half of a TNW card. Matches packets with credits and moves payload over the CPU
// links.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "nic/tnw/card.hpp"
#include "nic/tnw/cpu_links.hpp"
#include "nic/tnw/forwarder.hpp"

namespace apenet::tnw {

class Transmitter;

// A packet waits in the receive buffer of its link and virtual channel until the CPU links have moved it;
// then its acknowledgement is sent back. The first packet of a message needs credit from the receiving
// process for the sending one, for all bytes of the message. Without credit it waits and blocks the packets
// behind it on its channel, and the sender when the buffer is full. Messages that software forwards need no
// credit for this: they are stored in host memory and wait there for credit if necessary.
class Receiver final : public CpuLinkUser, private EventHandler {
 public:
  Receiver(Card& card, Transmitter& transmitter, Forwarder& forwarder);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  void packet_arrived(const Packet& packet);
  // Call when a credit has crossed the CPU links.
  void credited(const Credit& credit);
  // Call when a stranger's message is in host memory. Delivers it now, or when it has credit.
  void dispatch(MessageId id);

  NextItem take_turn() override;
  void turn_over() override;

  struct Account {
    std::int64_t bytes = 0;
    bool is_awaited = false;                // the sender's flow waits for this credit
    QueuePool<MessageId>::Queue in_memory;  // messages of strangers that wait for credit
  };
  struct Flow {
    QueuePool<Arrival>::Queue arrivals;
    bool waits_for_credit = false;
  };
  static constexpr std::uint32_t none = 0xffffffff;
  struct State {
    std::vector<Flow> flows;   // per link, its virtual channels
    std::uint64_t active = 0;  // one bit per flow that has packets and does not wait for credit
    std::unordered_map<std::uint64_t, Account> accounts;
    Numbering<std::uint64_t> next_number;
    std::uint32_t current = none;
  };

 private:
  void handle_event(const Event& event) override;
  [[nodiscard]] std::uint32_t flow_of(const Packet& packet) const;
  [[nodiscard]] Account& account(ProcessId receiver, ProcessId sender, std::uint16_t channel);
  [[nodiscard]] bool has_credit(std::uint32_t flow);
  void complete(MessageId id);

  Card& card_;
  Transmitter& transmitter_;
  Forwarder& forwarder_;
  State state_;
};

}  // namespace apenet::tnw
