#include "runtime/scripted/workloads.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernel/random.hpp"
#include "kernel/refuse.hpp"
#include "machine/forwarding.hpp"
#include "runtime/scripted/scripted_run.hpp"
#include "runtime/scripted/workload_scripts.hpp"

namespace apenet {

namespace {

std::uint32_t count_processes(const WorkloadOptions& options) {
  constexpr std::uint64_t most = std::uint64_t{1} << 22;
  std::uint64_t count = options.grid.empty() ? 0 : 1;
  for (const std::uint32_t extent : options.grid) {
    count *= extent;
    if (count > most) break;
  }
  if (count < 2 || count > most) {
    refuse_value("grid", "a product of " + std::to_string(count) + " processes", "2 to 4194304 of them");
  }
  return static_cast<std::uint32_t>(count);
}

void validate(const WorkloadOptions& options, std::uint32_t count) {
  if (options.bytes < 0) refuse_value("sizes", std::to_string(options.bytes), "zero or more bytes");
  if (!options.face_bytes.empty() && options.face_bytes.size() != options.grid.size()) {
    refuse_value("face_bytes", std::to_string(options.face_bytes.size()) + " of them",
                 "one for each of the " + std::to_string(options.grid.size()) + " dimensions of the grid");
  }
  for (const std::int64_t bytes : options.face_bytes) {
    if (bytes < 0) refuse_value("face_bytes", std::to_string(bytes), "zero or more bytes");
  }
  if (options.iterations == 0) refuse_value("iterations", "0", "at least 1");
  if (!options.nodes.empty() && options.nodes.size() != count) {
    refuse_value("nodes", std::to_string(options.nodes.size()) + " of them",
                 "one for each of the " + std::to_string(count) + " processes of the grid");
  }
}

// A random perfect matching per iteration: pairs of neighbours in a shuffled order (Fisher-Yates).
std::vector<std::vector<ProcessId>> draw_partners(std::uint64_t seed, std::uint32_t iterations,
                                                  std::uint32_t count) {
  constexpr std::uint64_t stream = 0x7061697273;  // "pairs"
  RandomStream random(seed, stream);
  std::vector<std::vector<ProcessId>> partners;
  std::vector<ProcessId> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (std::uint32_t i = 0; i < iterations; ++i) {
    for (std::uint32_t left = count; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
    std::vector<ProcessId> partner(count);
    if (count % 2 == 1) partner[order[count - 1]] = order[count - 1];
    for (std::uint32_t p = 0; p + 1 < count; p += 2) {
      partner[order[p]] = order[p + 1];
      partner[order[p + 1]] = order[p];
    }
    partners.push_back(std::move(partner));
  }
  return partners;
}

using WorkloadScript = Script (*)(ScriptedProcess&, const WorkloadPlan&);

WorkloadScript script_of(const WorkloadPlan& plan) {
  switch (plan.workload) {
    case Workload::halo:
      return halo;
    case Workload::alltoall:
      return alltoall;
    case Workload::randompairs:
      return random_pairs;
    case Workload::bisection:
      return bisection;
    case Workload::fft:
      return fft;
    case Workload::allreduce:
      break;
  }
  switch (plan.algorithm) {
    case AllreduceAlgorithm::recursive_doubling:
      return recursive_doubling_allreduce;
    case AllreduceAlgorithm::torus:
      return torus_allreduce;
    case AllreduceAlgorithm::ring:
      break;
  }
  return ring_allreduce;
}

std::uint64_t counter(const Machine& machine, const std::string& name) {
  const std::vector<Counter> counters = machine.counters();
  return std::find_if(counters.begin(), counters.end(),
                      [&](const Counter& counter) { return counter.name == name; })
      ->value;
}

WorkloadPlan make_plan(std::uint64_t seed, Workload workload, const WorkloadOptions& options) {
  WorkloadPlan plan;
  plan.workload = workload;
  plan.algorithm = options.algorithm;
  plan.count = count_processes(options);
  validate(options, plan.count);
  plan.bytes = options.bytes;
  plan.face_bytes = options.face_bytes;
  plan.iterations = options.iterations;
  plan.grid = options.grid;
  plan.periodic = options.periodic;
  if (workload == Workload::randompairs) plan.partners = draw_partners(seed, plan.iterations, plan.count);
  return plan;
}

std::vector<NodeId> nodes_of(const WorkloadOptions& options, std::uint32_t count) {
  std::vector<NodeId> nodes = options.nodes;
  if (nodes.empty()) {
    nodes.resize(count);
    std::iota(nodes.begin(), nodes.end(), 0);
  }
  return nodes;
}

}  // namespace

std::uint64_t count_forwarded_packet_hops(const MachineDescription& description, Workload workload,
                                          const WorkloadOptions& options, std::uint64_t enough) {
  const Forwarding forwarding(description);
  if (!forwarding.is_by_software()) return 0;
  const WorkloadPlan plan = make_plan(description.seed, workload, options);
  const std::vector<NodeId> nodes = nodes_of(options, plan.count);
  const std::uint64_t enough_an_iteration = enough / plan.iterations;
  std::uint64_t packet_hops = 0;  // of an iteration
  for (ProcessId process = 0; process < plan.count && packet_hops <= enough_an_iteration; ++process) {
    for (const Sending& sending : first_sendings(plan, process)) {
      packet_hops += forwarding.packet_hops(nodes[process], nodes[sending.target], sending.bytes);
    }
  }
  return std::min(packet_hops, enough_an_iteration + 1) * plan.iterations;
}

WorkloadResult run_workload(const MachineDescription& description, Workload workload,
                            const WorkloadOptions& options) {
  WorkloadPlan plan = make_plan(description.seed, workload, options);
  ScriptedRun run(description, description.card_software, nodes_of(options, plan.count));
  plan.piece_bytes = run.machine().capabilities().max_message_bytes;
  const WorkloadScript script = script_of(plan);
  for (ProcessId id = 0; id < plan.count; ++id) run.spawn(id, script(run.process(id), plan));
  run.run();

  WorkloadResult result;
  Time whole;
  result.finish.reserve(plan.count);
  for (ProcessId id = 0; id < plan.count; ++id) {
    result.finish.push_back(run.process(id).clock());
    whole = std::max(whole, result.finish.back());
  }
  result.time = Time::from_ps(whole.ps() / plan.iterations);
  result.messages = counter(run.machine(), "messages");
  result.payload_bytes = counter(run.machine(), "payload_bytes");
  result.links = run.machine().link_use();
  result.warnings = run.machine().warnings();
  return result;
}

}  // namespace apenet
