#include "kernel/simulation.hpp"

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
