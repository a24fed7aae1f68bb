// TnwReceiver: the receiving half of a TNW card: packets in, credits matched, payload over the CPU links.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "nic/tnw/card.hpp"
#include "nic/tnw/cpu_links.hpp"
#include "nic/tnw/forwarder.hpp"

namespace apenet {

class TnwTransmitter;

// A packet waits in the receive buffer of its link and virtual channel until the CPU links have moved it; its
// acknowledgement then goes back. The first packet of a message needs credit that the receiving process has
// given to the sending one, for as many bytes as the message has; without it that packet waits, those of its
// channel behind it, and when the buffer is full the sender. Messages that software forwards need none: they
// end in host memory, and there wait for credit, if at all.
class TnwReceiver final : public CpuLinkUser, private EventHandler {
 public:
  TnwReceiver(TnwCard& card, TnwTransmitter& transmitter, TnwForwarder& forwarder);
  TnwReceiver(const TnwReceiver&) = delete;
  TnwReceiver& operator=(const TnwReceiver&) = delete;

  void packet_arrived(const Packet& packet);
  // A credit has crossed the CPU links.
  void credited(const TnwCredit& credit);
  // A stranger's message is in host memory: delivers it now, or when there is credit for it.
  void hand_over(MessageId id);

  Time take_turn() override;
  void turn_over() override;

 private:
  struct Account {
    std::int64_t bytes = 0;
    bool is_awaited = false;                // by the flow of its sender
    QueuePool<MessageId>::Queue in_memory;  // strangers' messages that wait
  };
  struct Flow {
    QueuePool<TnwArrival>::Queue arrivals;
    bool waits_for_credit = false;
  };
  static constexpr std::uint32_t none = 0xffffffff;

  void handle_event(const Event& event) override;
  [[nodiscard]] std::uint32_t flow_of(const Packet& packet) const;
  [[nodiscard]] Account& account(ProcessId receiver, ProcessId sender, std::uint16_t channel);
  [[nodiscard]] bool has_credit(std::uint32_t flow);
  void complete(MessageId id);

  TnwCard& card_;
  TnwTransmitter& transmitter_;
  TnwForwarder& forwarder_;
  std::vector<Flow> flows_;   // link by link, its virtual channels
  std::uint64_t active_ = 0;  // a bit for each flow with packets that does not wait for credit
  std::unordered_map<std::uint64_t, Account> accounts_;  // looked up, never walked through
  std::uint64_t next_number_ = 0;
  std::uint32_t current_ = none;
};

}  // namespace apenet
