// PacketEngine: the choice among the steps of an adaptive routing.
#include "network/packet/engine.hpp"

namespace apenet {

// The step with most room for the head of the queue, the first of equals; the escape, the last, if none has.
void PacketEngine::choose_by_room(std::uint32_t queue_index) {
  Flight& flight = flights_[queues_[queue_index].head];
  const RouteSteps steps = steps_of(flight, queue_index);
  const std::uint32_t escape = steps.count() - 1;
  std::uint32_t chosen = escape;
  std::int64_t most_bytes = static_cast<std::int64_t>(flight.wire_bytes) - 1;
  for (std::uint32_t i = 0; i < steps.count(); ++i) {
    want(flight, owner_of(queue_index) * ports_, steps[i]);
    Queue& buffer = queues_[outputs_[flight.wanted_output].first_buffer + flight.wanted_vc];
    settle_returns(buffer, credit_latency_);
    if (buffer.room_bytes <= most_bytes) continue;
    most_bytes = buffer.room_bytes;
    chosen = i;
  }
  want(flight, owner_of(queue_index) * ports_, steps[chosen]);
  flight.may_turn = chosen != escape;
}

void PacketEngine::turn_to_escape(std::uint32_t queue_index) {
  Flight& flight = flights_[queues_[queue_index].head];
  const RouteSteps steps = steps_of(flight, queue_index);
  want(flight, owner_of(queue_index) * ports_, steps[steps.count() - 1]);
  flight.may_turn = false;
  ask(queue_index, queues_[queue_index].head);
}

// Those who may turn leave the output if the virtual channel that they want has no room.
std::vector<std::uint32_t> PacketEngine::take_refused(std::uint32_t output_index, std::uint64_t refused) {
  std::vector<std::uint32_t> turning;
  visit_waiting(output_index, [&](std::uint32_t queue_index) {
    const Flight& flight = flights_[queues_[queue_index].head];
    if (flight.may_turn && (refused >> flight.wanted_vc & 1U) != 0) turning.push_back(queue_index);
    return false;
  });
  const std::uint32_t first = outputs_[output_index].first_queue;
  for (const std::uint32_t queue_index : turning) stop_waiting(output_index, queue_index - first);
  return turning;
}

}  // namespace apenet
