#include "runtime/session.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "kernel/refuse.hpp"
#include "machine/message_costs.hpp"
#include "machine/node_name.hpp"
#include "machine/rails.hpp"
#include "machine/validate.hpp"
#include "runtime/launch/open_jobs.hpp"
#include "runtime/launch/run_jobs.hpp"
#include "runtime/scheduler/process_ids.hpp"
#include "runtime/scheduler/process_memory.hpp"
#include "runtime/scheduler/request_validation.hpp"
#include "runtime/scheduler/scheduler.hpp"
#include "runtime/scheduler/shared_memory.hpp"
#include "runtime/scheduler/shared_model.hpp"
#include "runtime/session_nodes.hpp"
#include "runtime/session_path.hpp"

namespace apenet {
namespace {

static_assert(most_node_name < sizeof(ipc::RankNode::host_name), "the mapping has room for every name");
static_assert(MachineDescription::most_rails == ipc::most_rails, "the mapping has room for every rail");

// For a stall timeout of 10 s: ten million empty polls, or an hour of virtual time.
ipc::EmptyPollLimits empty_poll_limits(int stall_timeout_ms) {
  constexpr std::int64_t polls_per_ms = 1000;
  constexpr std::int64_t ps_per_ms = 360'000'000'000'000;
  const std::int64_t stall_ms = stall_timeout_ms;
  return {.polls = static_cast<std::uint32_t>(std::min<std::int64_t>(stall_ms * polls_per_ms, UINT32_MAX)),
          .time_ps = std::min(stall_ms, ipc::end_of_time_ps / ps_per_ms) * ps_per_ms};
}

ObservationOptions with_call_names(ObservationOptions options) {
  for (std::uint32_t call = 0; call < static_cast<std::uint32_t>(ipc::MpiCall::count); ++call)
    options.trace.call_names.emplace_back(name_of(static_cast<ipc::MpiCall>(call)));
  return options;
}

std::optional<IpNetwork::Setup> ip_setup(const SessionOptions& options, const std::vector<NodeId>& nodes) {
  if (!options.has_sockets) return std::nullopt;
  std::vector<IpNetwork::Place> places;
  for (const NodeId node : nodes) places.push_back({node, place_in(options.partition, node)});
  return IpNetwork::Setup{std::move(places), static_cast<ProcessId>(nodes.size()), options.capture};
}

}  // namespace

// One of the jobs.
struct Session::Job {
  Job(SharedModel& model, const SessionJob& given, bool has_others, bool is_traced)
      : options(given.options),
        nodes(given.node_of_rank),
        process_count(static_cast<std::uint32_t>(nodes.size())),
        machine(model.machine()),
        shared(process_count),
        manager(std::in_place, shared.header()),
        process_ids(shared),
        memory(shared, process_ids),
        scheduler(model, shared, memory,
                  {.start_ps = model.is_open() ? 0 : options.start_ps,
                   .one_at_a_time = options.compute == ipc::ComputeMode::record,
                   .wakes_for_each_event = is_traced},
                  ip_setup(options, nodes)) {
    const MachineDescription& description = machine.description();
    ipc::Header& header = shared.header();
    header.rail_count = rail_count(description);
    for (std::uint8_t rail = 0; rail < rail_count(description); ++rail)
      describe_rail(rail, header.rails[rail]);
    header.lookahead_ps = machine.lookahead().ps();
    header.joins_at_barrier = has_others || options.start_ps > 0 ? 1 : 0;
    header.compute_mode = options.compute;
    header.compute_scale_ppm = std::llround(options.compute_scale * 1e6);
    header.flops_per_second = description.host.flops_per_second;
    header.empty_poll_limits = empty_poll_limits(options.stall_timeout_ms);
    header.outside_patience_ns = std::int64_t{options.stall_timeout_ms} * 1'000'000;
    std::strncpy(header.machine, description.name.c_str(), sizeof header.machine - 1);
    for (std::uint32_t rank = 0; rank < process_count; ++rank) {
      const NodeId node = given.node_of_rank[rank];
      ipc::RankNode& place = shared.block(rank).place;
      place.node = place_in(options.partition, node);
      const std::string name = node_name(machine.description(), node);
      std::memcpy(place.host_name, name.c_str(), name.size() + 1);
      ipc::Identity& identity = shared.block(rank).identity;
      options.unfollowed.copy(identity.unfollowed, sizeof identity.unfollowed - 1);
    }
    if (!options.has_sockets) return;
    header.has_sockets = 1;
    header.seed = description.seed;
  }

  void describe_rail(std::uint8_t number, ipc::Rail& rail) const;
  // Makes the loop that runs the job's processes.
  void begin(const StartedJob& started, SharedModel& model);
  void report_on(SessionReport& report);
  void report_on_path(SessionReport& report);
  template <typename Predicate>
  [[nodiscard]] std::string ranks_where(const Predicate& holds) const;
  void report_rank(RankReport& report, std::uint32_t rank);
  [[nodiscard]] std::vector<std::int32_t> first_grid();
  // The rank's clock, clamped because the rank may have written anything.
  std::int64_t virtual_ps(std::uint32_t rank) {
    const std::int64_t clock_ps = shared.block(rank).clock.shown_ps();
    return std::clamp(clock_ps, scheduler.view().ranks.epoch_ps(), ipc::end_of_time_ps) -
           scheduler.view().ranks.epoch_ps();
  }

  SessionOptions options;
  std::vector<NodeId> nodes;
  std::uint32_t process_count;
  Machine& machine;
  SharedMemory shared;
  std::optional<ManagerSocket> manager;
  ProcessIds process_ids;
  ProcessMemory memory;
  Scheduler scheduler;
  bool starts_then = false;  // see Session::add()
  std::optional<RunLoop> loop;
};

struct Session::Parts {
  Parts(const MachineDescription& description, const std::vector<SessionJob>& given,
        const std::vector<GoalJob>& given_traces, const ObservationOptions& options)
      : simulation(description.seed),
        machine(simulation, description, nodes_of_processes(description, given, given_traces)),
        observation(simulation, machine, with_call_names(options)),
        model(simulation, machine) {
    machine.fill_receive_rings();
    for (const SessionJob& job : given)
      jobs.push_back(std::make_unique<Job>(model, job, given.size() + given_traces.size() > 1,
                                           !options.trace_path.empty()));
    if (given_traces.empty()) return;
    const auto first = static_cast<ProcessId>(machine.process_count() - nodes_of(given_traces).size());
    traces.emplace(simulation, machine, first, given_traces);
    model.set_ranks(first, traces->sink(), [this](Time now) { traces->begin(now); });
  }

  Parts(const MachineDescription& description, const OpenMachine& open)
      : simulation(description.seed),
        machine(simulation, description, ProcessesPerNode{open.ranks_per_node}),
        observation(simulation, machine, {}),
        model(simulation, machine) {
    machine.fill_receive_rings();
    model.open();
  }

  void report_on_machine(std::vector<SessionReport>& reports);
  // What it has done since the virtual time of this job began.
  void report_on_machine(const Delivery& delivery, std::vector<SessionReport>& reports);

  Simulation simulation;
  Machine machine;
  Observation observation;
  SharedModel model;
  std::vector<std::unique_ptr<Job>> jobs;
  std::optional<GoalRanks> traces;
  OpenJobs open_jobs{model};
};

void Session::Job::describe_rail(std::uint8_t number, ipc::Rail& rail) const {
  const MachineDescription& description = machine.description();
  const NicCapabilities& capabilities = machine.capabilities(number);
  const auto require_control = [&] { require_sends_of(message::control_bytes, capabilities); };
  if (number == 0) require_control();
  if (number > 0) refuse_within(rail_key(description, number), require_control);
  if (number > 0) {
    const RailDescription& further = description.rails[number - 1U];
    std::strncpy(rail.name, further.name.c_str(), sizeof rail.name - 1);
    rail.is_at_first = further.shares_slot ? 1 : 0;
  }
  rail.put_supported = capabilities.put ? 1 : 0;
  rail.get_supported = capabilities.get ? 1 : 0;
  rail.remote_access_supported = capabilities.remote_access ? 1 : 0;
  rail.translates_addresses = capabilities.translates_addresses ? 1 : 0;
  const MachineDescription alone = rail_alone(description, number);
  const CardKind& kind = kind_of(alone.nic);
  kind.name.copy(rail.kind, sizeof rail.kind - 1);
  static_assert(std::size(decltype(rail.layers){}) == std::tuple_size_v<decltype(kind.layers)>);
  for (std::size_t i = 0; i < kind.layers.size(); ++i)
    kind.layers[i].copy(rail.layers[i], sizeof rail.layers[i] - 1);
  kind.conduit.copy(rail.conduit, sizeof rail.conduit - 1);
  rail.channels = capabilities.channels;
  rail.lanes = capabilities.channels > 1 ? machine.lanes(number) : 1;
  const std::int64_t ports = card_traits(alone.nic, alone.host).max_processes;
  rail.ports = ports > std::numeric_limits<std::uint32_t>::max() ? 0 : static_cast<std::uint32_t>(ports);
  rail.grid = grid_of(alone.network.topology, description.network.topology, options.partition);
  const auto layer = [&](SoftwareLayer which) -> ipc::Layer {
    return {message_costs(alone, which), message_limits(machine, number, which)};
  };
  rail.mpi = layer(SoftwareLayer::mpi);
  rail.native = layer(SoftwareLayer::card);
  rail.udp = alone.udp_software;
  // The kernel has taken the card's interrupt before the simulator tells it of a packet.
  rail.ip = alone.ip_software.costs;
  if (alone.interrupts.is_on()) rail.udp.interrupt = rail.ip.interrupt = Time::zero();
}

void Session::Job::begin(const StartedJob& started, SharedModel& model) {
  std::vector<int> leaders;
  for (const RankProcess& rank : started.ranks) leaders.push_back(rank.process_id);
  const int root = started.supervisor.process_id != 0 ? started.supervisor.process_id : getpid();
  process_ids.set_tree(ProcessTree(root, std::move(leaders)));
  loop.emplace(shared, model, scheduler, process_ids, memory, options, started.ranks,
               started.supervisor.channel, *manager);
}

Session::Session(const MachineDescription& description, const std::vector<SessionJob>& jobs,
                 const std::vector<GoalJob>& traces, const ObservationOptions& observation)
    : parts_(std::make_unique<Parts>(description, jobs, traces, observation)) {}

Session::Session(const MachineDescription& description, const OpenMachine& open)
    : parts_(std::make_unique<Parts>(description, open)) {}

Session::~Session() = default;

std::string Session::mapping_path(std::size_t job) const {
  return parts_->jobs[job]->shared.path();
}

std::vector<SessionReport> Session::run(const std::vector<StartedJob>& jobs,
                                        const std::function<bool()>& interrupted) {
  std::vector<RunLoop*> loops;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    parts_->jobs[i]->begin(jobs[i], parts_->model);
    loops.push_back(&*parts_->jobs[i]->loop);
  }
  run_jobs(loops, parts_->model, interrupted);
  parts_->model.run_to_end(interrupted);
  std::vector<SessionReport> reports(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) parts_->jobs[i]->loop->report_on(reports[i]);
  parts_->machine.settle();
  for (std::size_t i = 0; i < jobs.size(); ++i) parts_->jobs[i]->report_on(reports[i]);
  parts_->report_on_machine(reports);
  for (std::size_t i = 0; i < jobs.size(); ++i) parts_->jobs[i]->report_on_path(reports[i]);
  return reports;
}

std::size_t Session::add(const SessionJob& job, bool starts_then) {
  if (job.options.has_sockets) refuse_value("ip", "true", "one job alone on the machine");
  parts_->jobs.push_back(std::make_unique<Job>(parts_->model, job, true, false));
  parts_->jobs.back()->starts_then = starts_then;
  return parts_->jobs.size() - 1;
}

void Session::start(std::size_t number, const StartedJob& started) {
  Job& job = *parts_->jobs[number];
  job.begin(started, parts_->model);
  std::optional<std::int64_t> start_ps;
  if (job.starts_then) start_ps = job.options.start_ps;
  parts_->open_jobs.add(number, *job.loop, job.scheduler, job.nodes, start_ps);
}

std::vector<std::size_t> Session::serve(const std::function<bool()>& interrupted,
                                        const std::function<bool()>& is_to_return) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point next_question{};
  while (!parts_->open_jobs.is_empty()) {
    std::vector<std::size_t> ended = parts_->open_jobs.turn(interrupted);
    if (!ended.empty()) return ended;
    const auto now = Clock::now();
    if (now < next_question) continue;
    next_question = now + std::chrono::milliseconds(20);
    if (is_to_return()) break;
  }
  return {};
}

void Session::cancel(std::size_t job) {
  if (parts_->jobs[job]->loop) parts_->jobs[job]->loop->cancel();
}

SessionReport Session::report(std::size_t number) {
  Job& job = *parts_->jobs[number];
  std::vector<SessionReport> reports(1);
  job.loop->report_on(reports[0]);
  parts_->machine.settle();
  job.report_on(reports[0]);
  parts_->report_on_machine(job.scheduler.view().delivery, reports);
  job.report_on_path(reports[0]);
  return std::move(reports[0]);
}

void Session::forget(std::size_t number) {
  Job& job = *parts_->jobs[number];
  job.loop.reset();
  job.manager.reset();
  job.process_ids.discard();
  job.shared.discard();
}

std::optional<std::int64_t> Session::began_ps(std::size_t number) const {
  const SchedulerView view = parts_->jobs[number]->scheduler.view();
  if (!view.ranks.started()) return std::nullopt;
  return view.ranks.epoch_ps() - SharedModel::open_epoch_ps;
}

std::int64_t Session::limit_ps(std::size_t job) const {
  return parts_->jobs[job]->loop ? parts_->jobs[job]->loop->limit_ps() : 0;
}

TracesReport Session::report_on_traces() {
  TracesReport report;
  if (!parts_->traces) return report;
  report.traces = parts_->traces->reports();
  report.totals = parts_->traces->totals();
  return report;
}

SessionProgress Session::progress() const {
  SessionProgress progress;
  std::int64_t epoch_ps = never_ps;
  for (const std::unique_ptr<Job>& job : parts_->jobs) {
    const SchedulerView view = job->scheduler.view();
    if (!view.ranks.started()) continue;
    epoch_ps = std::min(epoch_ps, view.ranks.epoch_ps());
    progress.messages += view.delivery.totals().messages;
  }
  if (epoch_ps != never_ps)
    progress.virtual_ps = std::max<std::int64_t>(0, parts_->simulation.now().ps() - epoch_ps);
  progress.grid = parts_->jobs.front()->first_grid();
  return progress;
}

// The ranks may have written anything.
std::vector<std::int32_t> Session::Job::first_grid() {
  for (std::uint32_t rank = 0; rank < process_count; ++rank) {
    const ipc::GridNote& grid = shared.notes(rank).grid;
    const std::uint32_t dimensions = grid.dimensions.get();
    if (dimensions == 0 || dimensions > ipc::most_grid_dimensions) continue;
    std::vector<std::int32_t> extents;
    for (std::uint32_t i = 0; i < dimensions; ++i) extents.push_back(grid.extents[i].get());
    return extents;
  }
  return {};
}

// Reports what the machine has done since virtual time began.
void Session::Parts::report_on_machine(std::vector<SessionReport>& reports) {
  const auto has_begun = [](const auto& job) { return job->scheduler.view().ranks.started(); };
  const auto found = std::find_if(jobs.begin(), jobs.end(), has_begun);
  report_on_machine((found == jobs.end() ? jobs.front() : *found)->scheduler.view().delivery, reports);
}

void Session::Parts::report_on_machine(const Delivery& delivery, std::vector<SessionReport>& reports) {
  const std::vector<std::string> machine_warnings = machine.warnings();
  const std::vector<std::string> trace_warnings = observation.finish();
  for (SessionReport& report : reports) {
    report.links = delivery.link_use();
    report.ports = delivery.port_use();
    report.faults = machine.fault_use();
    report.network = observation.network_history();
    report.warnings.insert(report.warnings.end(), machine_warnings.begin(), machine_warnings.end());
    report.warnings.insert(report.warnings.end(), trace_warnings.begin(), trace_warnings.end());
  }
}

void Session::Job::report_on(SessionReport& report) {
  scheduler.finish_ip();
  for (std::uint32_t rank = 0; rank < process_count; ++rank) {
    report_rank(report.ranks[rank], rank);
    if (scheduler.view().ranks.started()) {
      report.virtual_ps = std::max(report.virtual_ps, virtual_ps(rank));
    }
  }
  report.grid = first_grid();
  const Delivery& delivery = scheduler.view().delivery;
  const RunTotals& totals = delivery.totals();
  report.messages = totals.messages;
  report.bytes = totals.bytes;
  for (std::uint32_t sender = 0; sender < process_count; ++sender) {
    for (const auto& [receiver, bytes] : delivery.sent_bytes()[sender])
      report.traffic.push_back({sender, receiver, bytes});
  }
  report.rail_messages.assign(totals.rail_messages.begin(),
                              totals.rail_messages.begin() + rail_count(machine.description()));
  report.trace_hash = delivery.trace_hash();
  report.route_changes = delivery.route_changes();
  for (RouteChange& change : report.route_changes) change.at_ps -= scheduler.view().ranks.epoch_ps();
}

// The rest of the warnings, behind those of the machine.
void Session::Job::report_on_path(SessionReport& report) {
  const RunTotals& totals = scheduler.view().delivery.totals();
  if (const std::string ranks = ranks_where([](const ipc::Block& block) { return block.lock.had_several(); });
      !ranks.empty()) {
    report.warnings.push_back(
        "several threads called MPI, slept or read the clock in " + ranks +
        ", or processes that a rank started did beside it: the host determines their order, so this run may "
        "not repeat exactly");
  }
  if (const std::string ranks = ranks_where([](const ipc::Block& block) { return block.lock.had_futex(); });
      !ranks.empty()) {
    report.warnings.push_back("threads wait for each other in " + ranks +
                              " by futexes of their own, as the locks of Rust and TBB and the atomic waits "
                              "of C++20 do: which of them "
                              "wait, the host determines, so this run may not repeat exactly");
  }
  if (const std::string ranks =
          ranks_where([](const ipc::Block& block) { return block.identity.lent_device_memory != 0; });
      !ranks.empty()) {
    report.warnings.push_back(
        "device memory was passed to collectives, one-sided, buffered or partitioned calls, "
        "MPI_Sendrecv_replace or datatypes with gaps in " +
        ranks + ": what MPI itself copies and computes there takes no time");
  }
  if (totals.late_posts > 0) {
    report.warnings.push_back(std::to_string(totals.late_posts) +
                              " requests were posted by a thread while another one of its process waited: "
                              "their times are not exact");
  }
  if (totals.early_buffers > 0) {
    report.warnings.push_back(
        std::to_string(totals.early_buffers) +
        " messages had buffers that Python ranks had allocated before MPI_Init: with other "
        "variables or folders they lie elsewhere in their pages, and this run may not "
        "repeat exactly");
  }
  if (totals.failed_accesses > 0) {
    report.warnings.push_back(
        std::to_string(totals.failed_accesses) +
        " puts or gets failed: the target process has not mapped that memory, or has not "
        "opened it to them; the first was " +
        totals.first_failed_access);
  }
  prove_path(report, totals.startup_messages, options.has_sockets);
}

// "rank 2", "ranks 0, 1"; empty if there is none.
template <typename Predicate>
std::string Session::Job::ranks_where(const Predicate& holds) const {
  constexpr std::uint32_t most_named = 4;
  std::string ranks;
  std::uint32_t count = 0;
  for (std::uint32_t rank = 0; scheduler.view().ranks.started() && rank < process_count; ++rank) {
    if (!holds(const_cast<SharedMemory&>(shared).block(rank)) || ++count > most_named) continue;
    ranks += (count > 1 ? ", " : "") + std::to_string(rank);
  }
  if (count == 0) return {};
  if (count > most_named) ranks += " and " + std::to_string(count - most_named) + " more";
  return (count > 1 ? "ranks " : "rank ") + ranks;
}

void Session::Job::report_rank(RankReport& report, std::uint32_t rank) {
  const ipc::Block& block = shared.block(rank);
  const ipc::Identity& identity = block.identity;
  report.initialised = identity.initialised != 0;
  report.used_network = identity.used_network != 0;
  report.finalised = identity.finalised != 0 || identity.closed != 0;
  report.library = validation::library(identity);
  report.without_shim = identity.without_shim != 0;
  report.unfollowed = validation::unfollowed(identity);
  if (!scheduler.view().ranks.started()) return;
  const std::int64_t lived_ps = virtual_ps(rank);
  const auto part_us = [lived_ps](const ipc::Sum& sum) {
    return static_cast<double>(std::clamp<std::int64_t>(sum.get(), 0, lived_ps)) * 1e-6;
  };
  report.virtual_us = static_cast<double>(lived_ps) * 1e-6;
  report.waited_us = part_us(block.clock.waited_ps);
  report.computed_us = part_us(block.clock.computed_ps);
  report.uncharged_us = static_cast<double>(std::max<std::int64_t>(block.clock.uncharged_ps.get(), 0)) * 1e-6;
}

}  // namespace apenet
