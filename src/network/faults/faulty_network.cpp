#include "network/faults/faulty_network.hpp"

#include <string>
#include <utility>

namespace apenet {

FaultyNetwork::FaultyNetwork(Simulation& simulation, Topology topology,
                             std::unique_ptr<HaltingNetwork> engine, const std::vector<std::string>& faults,
                             Time reconfiguration, std::uint8_t rail)
    : simulation_(simulation),
      topology_(std::move(topology)),
      engine_(std::move(engine)),
      schedule_(topology_, faults),
      reconfiguration_(reconfiguration),
      state_{.source = {EventKind::credit, rail, 0}, .zero = {}, .done = 0, .scheduled = 0, .restart_at = {}},
      liveness_(topology_),
      islands_(schedule_.changes().size() + 1) {
  engine_->allow_halts();
}

void FaultyNetwork::begin(Time zero) {
  state_.zero = zero;
  engine_->begin(zero);
  schedule_next();
}

void FaultyNetwork::schedule_next() {
  if (state_.done == schedule_.changes().size()) return;
  schedule(state_.zero + schedule_.changes()[state_.done].time, Step::change);
}

void FaultyNetwork::schedule(Time when, Step step) {
  simulation_.schedule(state_.source, when, *this, static_cast<std::uint64_t>(step));
  ++state_.scheduled;
}

void FaultyNetwork::handle_event(const Event& event) {
  --state_.scheduled;
  switch (static_cast<Step>(event.argument_a)) {
    case Step::change:
      change();
      return;
    case Step::restart:
      if (simulation_.now() == state_.restart_at) restart();
      return;
  }
}

void FaultyNetwork::change() {
  const Time time = schedule_.changes()[state_.done].time;
  for (; state_.done < schedule_.changes().size() && schedule_.changes()[state_.done].time == time;
       ++state_.done) {
    schedule_.apply(schedule_.changes()[state_.done], liveness_);
    ++counters_.events;
  }
  counters_.packets_taken_back += engine_->halt();
  state_.restart_at = simulation_.now() + reconfiguration_;
  schedule(state_.restart_at, Step::restart);
  schedule_next();
}

void FaultyNetwork::restart() {
  state_.restart_at = Time::never();
  ++counters_.reconfigurations;
  routing_.reset();  // Its cache is large; free it before the next one. The halted engine asks for no route.
  if (liveness_.is_all_alive()) {
    engine_->restart(nullptr, nullptr);
    return;
  }
  routing_ = make_up_down(topology_, suggested_roots(topology_),
                          [this](PortRef port) { return liveness_.is_alive(port); });
  engine_->restart(routing_.get(), this);
}

bool FaultyNetwork::admits(const Packet& packet) {
  if (reaches(state_.done, packet)) return true;
  for (std::size_t changes = state_.done + 1; changes < islands_.size(); ++changes) {
    if (reaches(changes, packet)) return false;
  }
  report(packet);
}

bool FaultyNetwork::reaches(std::size_t changes, const Packet& packet) {
  const Islands& islands = islands_after(changes);
  const std::uint32_t island = islands[packet.source];
  return island != Liveness::no_island && island == islands[packet.destination];
}

// Only the last one of several changes at one time counts: the states in between never existed.
const FaultyNetwork::Islands& FaultyNetwork::islands_after(std::size_t changes) {
  const std::vector<FaultSchedule::Change>& all = schedule_.changes();
  while (changes > 0 && changes < all.size() && all[changes].time == all[changes - 1].time) ++changes;
  Islands& islands = islands_[changes];
  if (islands.empty()) {
    Liveness liveness(topology_);
    for (std::size_t i = 0; i < changes; ++i) schedule_.apply(all[i], liveness);
    islands = liveness.find_islands(topology_);
  }
  return islands;
}

void FaultyNetwork::report(const Packet& packet) {
  std::size_t cause = state_.done;  // the change since which there has been no path
  while (cause > 1 && !reaches(cause - 1, packet)) --cause;
  const FaultSchedule::Change& change = schedule_.changes()[cause - 1];
  const Fault& fault = schedule_.fault(change.fault);
  const auto name = [this](NodeId node) {
    const std::string& router = topology_.router_name(topology_.attachment(node).router);
    return "node " + std::to_string(node) + " at " + router;
  };
  throw NetworkPartitioned(
      "at " + time_text(simulation_.now() - state_.zero) + " " + name(packet.source) + " cannot reach " +
      name(packet.destination) + ": there has been no path since " + time_text(change.time) + ", fault \"" +
      fault.text + "\", and no later fault event restores one; messages in progress in the network: " +
      std::to_string(engine_->messages_under_way()));
}

FaultUse FaultyNetwork::fault_use() const {
  FaultUse use = engine_->fault_use();
  use.events = counters_.events;
  use.reconfigurations = counters_.reconfigurations;
  use.packets_taken_back = counters_.packets_taken_back;
  return use;
}

std::vector<std::string> FaultyNetwork::warnings() const {
  std::vector<std::string> said = engine_->warnings();
  const std::size_t all = schedule_.changes().size();
  if (state_.done < all) {
    said.push_back(std::to_string(all - state_.done) + " of " + std::to_string(all) +
                   " fault events are scheduled after the end of the run and were ignored");
  }
  return said;
}

}  // namespace apenet
