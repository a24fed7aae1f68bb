#include "nic/ideal/ideal_nic.hpp"

#include <algorithm>

namespace apenet {

namespace {

enum class Step : std::uint64_t { sent, delivered, remote_done, get_request };

constexpr std::uint64_t code(Step step) {
  return static_cast<std::uint64_t>(step);
}

}  // namespace

IdealNic::IdealNic(Simulation& simulation, const IdealDescription& description, Time doorbell_delay,
                   NodeId node, MessageTable& messages, const Placement& placement, const IdealNics& cards)
    : simulation_(simulation),
      description_(description),
      flight_(description.latency - doorbell_delay),
      source_{EventKind::nic, node, 0},
      messages_(messages),
      placement_(placement),
      cards_(cards) {}

NicCapabilities IdealNic::capabilities_of(const IdealDescription&) {
  constexpr std::int64_t any_size = std::int64_t{1} << 40;
  constexpr std::uint16_t channels = 16;  // they share the one wire; any number would do
  return {.put = true,
          .get = true,
          .max_message_bytes = any_size,
          .max_send_bytes = any_size,
          .max_pio_bytes = any_size,
          .channels = channels};
}

Time IdealNic::transmit(std::int64_t bytes) {
  free_at_ = std::max(simulation_.now(), free_at_) + description_.rate.duration(bytes);
  return free_at_;
}

void IdealNic::doorbell(const Descriptor& descriptor) {
  const MessageId id = messages_.add(descriptor);
  if (descriptor.verb == Verb::get) {
    simulation_.schedule(source_, simulation_.now() + flight_, *this, code(Step::get_request), id);
    return;
  }
  const Time gone = transmit(descriptor.bytes);
  if (wants_sent(descriptor)) simulation_.schedule(source_, gone, *this, code(Step::sent), id);
  simulation_.schedule(source_, gone + flight_, *this, code(Step::delivered), id);
  if (wants_remote_done(descriptor)) {
    simulation_.schedule(source_, gone + flight_ + description_.latency, *this, code(Step::remote_done), id);
  }
}

void IdealNic::handle_event(const Event& event) {
  const auto id = static_cast<MessageId>(event.argument_b);
  switch (static_cast<Step>(event.argument_a)) {
    case Step::sent:
      messages_.sent(id);
      break;
    case Step::delivered:
      messages_.delivered(id);
      break;
    case Step::remote_done:
      messages_.remote_done(id);
      break;
    case Step::get_request: {
      const Descriptor& request = messages_.descriptor(id);
      const Time gone = cards_[placement_.node(request.target)]->transmit(request.bytes);
      simulation_.schedule(source_, gone + description_.latency, *this, code(Step::delivered), id);
      break;
    }
  }
}

}  // namespace apenet
