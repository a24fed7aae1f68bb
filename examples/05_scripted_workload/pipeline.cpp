// The same wavefront directly on the card: one coroutine per process, without MPI's protocols.
#include <cstdio>
#include <numeric>
#include <vector>

#include "runtime/scripted/card_run.hpp"
#include "support/machines.hpp"

using namespace apenet;

Script program(CardProcess& process, ProcessId count) {
  for (int block = 0; block < 8; ++block) {
    if (process.id() > 0) co_await process.arrival_from(process.id() - 1);
    process.compute(Time::from_ns(20'000));
    if (process.id() + 1 < count) process.send(process.id() + 1, 16384);
  }
}

int main() {
  for (const MachineDescription& machine :
       {test::round_ideal(), test::machine("ape16"), test::machine("ape128")}) {
    std::vector<NodeId> nodes(16);
    std::iota(nodes.begin(), nodes.end(), 0);
    CardRun run(machine, machine.card_software, nodes);
    for (ProcessId id = 0; id < nodes.size(); ++id) run.spawn(id, program(run.process(id), 16));
    run.run();
    std::printf("%-8s %9.2f us\n", machine.name.c_str(), run.process(15).clock().to_us());
  }
}
