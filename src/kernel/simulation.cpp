#include "kernel/simulation.hpp"

#include <utility>

namespace apenet {

Simulation::Simulation(std::uint64_t seed) : seed_(seed) {}

Simulation::~Simulation() = default;

void Simulation::run() {
  while (!queue_.empty()) run_next();
}

void Simulation::restore(const State& state) {
  now_ = state.now;
  ran_before_ = state.ran_before;
  queue_.restore(state.queue);
  other_queue_.reset();
  replayed_ = Time::zero();
}

void Simulation::begin_replay(Time from) {
  if (!other_queue_) other_queue_ = std::make_unique<EventQueue>();
  APENET_CHECK(other_queue_->empty() && from >= replayed_,
               "a replay from %lld ps would go back: the one before reached %lld ps",
               static_cast<long long>(from.ps()), static_cast<long long>(replayed_.ps()));
  std::swap(queue_, *other_queue_);
  now_ = from;
}

void Simulation::end_replay(Time now) {
  replayed_ = now_;
  now_ = std::max(now, now_);
  std::swap(queue_, *other_queue_);
  while (!other_queue_->empty()) {
    const Event& event = other_queue_->pop();
    replayed_ = event.time();
    queue_.push(event.time_ps, event.order, event.handler, event.argument_a, event.argument_b);
  }
}

void Simulation::refuse(const EventSource& source) {
  check_failed(__FILE__, __LINE__, "id < 2^25, counter < 2^36",
               "schedule by source kind %u id %u counter %llu", static_cast<unsigned>(source.kind), source.id,
               static_cast<unsigned long long>(source.counter));
}

void Simulation::refuse(std::uint64_t packed_order, Time when) const {
  if (when >= end_of_time || when < Time::zero()) throw PastEndOfTime("a message would still be under way");
  check_failed(__FILE__, __LINE__, "now <= when",
               "schedule at %lld ps, now %lld ps, by source kind %u id %u counter %llu",
               static_cast<long long>(when.ps()), static_cast<long long>(now_.ps()),
               static_cast<unsigned>(PackedOrder::kind(packed_order)), PackedOrder::source(packed_order),
               static_cast<unsigned long long>(PackedOrder::counter(packed_order)));
}

}  // namespace apenet
