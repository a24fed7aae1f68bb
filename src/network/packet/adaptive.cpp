// PacketEngine: the choice among the steps of an adaptive routing.
#include "network/packet/engine.hpp"

namespace apenet {

// Chooses the step with most room, the first of equals; the escape, which is the last step, if none has room.
void PacketEngine::choose_by_room(std::uint32_t queue_index) {
  Flight& flight = state_.flights[state_.queues[queue_index].head];
  const RouteSteps steps = steps_of(flight, queue_index);
  const std::uint32_t escape = steps.count() - 1;
  std::uint32_t chosen = escape;
  std::int64_t most_bytes = -1;
  for (std::uint32_t i = 0; i < steps.count(); ++i) {
    want(flight, spec_.layout.owner_of(queue_index) * spec_.layout.ports, steps[i]);
    const Output& output = outputs_[flight.wanted_output];
    const std::int64_t needed = needed_bytes(output, queue_index, flight, flight.wanted_vc);
    Queue& buffer = state_.queues[output.spec.first_buffer + flight.wanted_vc];
    credits_.settle(buffer, credit_latency(buffer), simulation_.now());
    if (buffer.room_bytes < needed || buffer.room_bytes <= most_bytes) continue;
    most_bytes = buffer.room_bytes;
    chosen = i;
  }
  want(flight, spec_.layout.owner_of(queue_index) * spec_.layout.ports, steps[chosen]);
  flight.may_reroute = chosen != escape;
}

void PacketEngine::turn_to_escape(std::uint32_t queue_index) {
  Flight& flight = state_.flights[state_.queues[queue_index].head];
  const RouteSteps steps = steps_of(flight, queue_index);
  want(flight, spec_.layout.owner_of(queue_index) * spec_.layout.ports, steps[steps.count() - 1]);
  flight.may_reroute = false;
  ask(queue_index, state_.queues[queue_index].head);
}

// Removes from the waiting set the packets that may be rerouted and whose virtual channel has no room.
std::vector<std::uint32_t> PacketEngine::take_refused(std::uint32_t output_index, std::uint64_t refused) {
  std::vector<std::uint32_t> rerouting;
  waiting_.visit(outputs_[output_index], output_index, [&](std::uint32_t queue_index) {
    const Flight& flight = state_.flights[state_.queues[queue_index].head];
    if (flight.may_reroute && (refused >> flight.wanted_vc & 1U) != 0) rerouting.push_back(queue_index);
    return false;
  });
  for (const std::uint32_t queue_index : rerouting)
    waiting_.stop(outputs_[output_index], output_index, queue_index);
  return rerouting;
}

}  // namespace apenet
