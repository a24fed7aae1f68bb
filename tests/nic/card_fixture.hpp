// A machine with one kind of card, for tests of a card's mechanisms.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "machine/machine.hpp"
#include "support/recorder.hpp"

namespace apenet::test {

class CardFixture : public testing::Test {
 protected:
  // Places one process on each of these nodes.
  void wire(const MachineDescription& description, std::vector<NodeId> nodes = {0, 1}) {
    machine = std::make_unique<Machine>(simulation, description, std::move(nodes));
    machine->set_sink(recorder);
  }
  [[nodiscard]] std::uint64_t counter(const std::string& name) const {
    for (const Counter& counter : machine->counters()) {
      if (counter.name == name) return counter.value;
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }
  // The time of the completion number `which` of its kind.
  [[nodiscard]] std::int64_t completed_ns(CompletionKind kind, std::size_t which = 0) const {
    return recorder.of(kind).at(which).time.ps() / 1000;
  }
  // The arrival time of a message from process 0 to process 1, posted at zero.
  [[nodiscard]] Time arrival(std::int64_t bytes) {
    machine->post(Time::zero(), {.source = 0, .target = 1, .bytes = bytes});
    simulation.run();
    return recorder.of(CompletionKind::arrived).at(0).time;
  }

  Simulation simulation;
  Recorder recorder{simulation};
  std::unique_ptr<Machine> machine;
};

}  // namespace apenet::test
