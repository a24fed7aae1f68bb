#include "nic/ideal/nic.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace apenet::ideal {

namespace {

enum class Step : std::uint64_t { sent, delivered, remote_done, get_request };

constexpr std::uint64_t code(Step step) {
  return static_cast<std::uint64_t>(step);
}

}  // namespace

Nic::Nic(Simulation& simulation, const Protocols& protocols, Time doorbell_delay, EventSource source,
         MessageTable& messages, const Placement& placement, const Nics& cards)
    : simulation_(simulation),
      protocols_(protocols),
      doorbell_delay_(doorbell_delay),
      control_latency_(control_latency(protocols)),
      messages_(messages),
      placement_(placement),
      cards_(cards),
      state_{source, std::vector<Time>(protocols.front().paths.size()), {}},
      paths_(protocols.front().paths.size()) {}

Time Nic::control_latency(const Protocols& protocols) {
  Time least = Time::from_ps(std::numeric_limits<std::int64_t>::max());
  for (const Protocol& protocol : protocols) {
    Time slowest;
    for (const Path& path : protocol.paths) slowest = std::max(slowest, path.latency);
    least = std::min(least, slowest);
  }
  return least;
}

Nic::Departure Nic::transmit(const Descriptor& descriptor) {
  const std::int64_t bytes = descriptor.bytes;
  const auto after = [&](Time time, Time span) {
    if (span < end_of_time - time) return time + span;
    throw PastEndOfTime("the message of " + std::to_string(bytes) + " bytes that process " +
                        std::to_string(descriptor.source) + " has posted for process " +
                        std::to_string(descriptor.target) + " would end");
  };
  const auto protocol =
      std::find_if(protocols_.begin(), protocols_.end() - 1,
                   [&](const Protocol& candidate) { return bytes <= candidate.max_message_bytes; });
  Departure departure;
  for (std::size_t i = 0; i < state_.free_at.size(); ++i) {
    const Path& path = protocol->paths[i];
    const Time begin = std::max(simulation_.now(), state_.free_at[i]);
    state_.free_at[i] = after(after(begin, path.gap), path.rate.duration(bytes));
    paths_[i].take(simulation_.now(), begin, state_.free_at[i] - begin);
    const Time transit = path.transit ? path.transit->duration(bytes) : Time::zero();
    departure.gone = std::max(departure.gone, state_.free_at[i]);
    departure.arrived = std::max(departure.arrived, after(after(state_.free_at[i], path.latency), transit));
  }
  return departure;
}

// Delays a message that would overtake an earlier one, because its protocol has less latency.
Time Nic::in_order(NodeId target, Time arrival) {
  Time& last = state_.last_arrival[target];
  last = std::max(last, arrival);
  return last;
}

void Nic::doorbell(MessageId id) {
  const Descriptor& descriptor = messages_.descriptor(id);
  if (descriptor.verb == Verb::get) {
    const Time asked = simulation_.now() + control_latency_ - doorbell_delay_;
    simulation_.schedule(state_.source, asked, *this, code(Step::get_request), id);
    return;
  }
  messages_.enter(id, Stage::card_queue);
  messages_.enter(id, Stage::links, *std::max_element(state_.free_at.begin(), state_.free_at.end()));
  const Departure departure = transmit(descriptor);
  const Time arrived = in_order(placement_.node(descriptor.target), departure.arrived - doorbell_delay_);
  if (wants_sent(descriptor)) {
    simulation_.schedule(state_.source, std::min(departure.gone, arrived), *this, code(Step::sent), id);
  }
  simulation_.schedule(state_.source, arrived, *this, code(Step::delivered), id);
  if (wants_remote_done(descriptor)) {
    simulation_.schedule(state_.source, arrived + control_latency_, *this, code(Step::remote_done), id);
  }
}

void Nic::handle_event(const Event& event) {
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
      const Departure answer = cards_[placement_.node(request.target)]->transmit(request);
      simulation_.schedule(state_.source, answer.arrived, *this, code(Step::delivered), id);
      break;
    }
  }
}

}  // namespace apenet::ideal
