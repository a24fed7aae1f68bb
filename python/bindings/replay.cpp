// GOAL traces, read and replayed; ranks whose program is in Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nanobind/trampoline.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "bindings.hpp"
#include "runtime/ipc/protocol.hpp"
#include "runtime/scripted/goal.hpp"
#include "runtime/scripted/goal_replay.hpp"

namespace nb = nanobind;

namespace apenet {

namespace {

// A field of every rank's activity as an array.
template <typename Value>
auto column(Value RankActivity::*field) {
  return [field](const RanksReport& report) {
    std::vector<std::int64_t> values;
    values.reserve(report.ranks.size());
    for (const RankActivity& rank : report.ranks) {
      if constexpr (std::is_same_v<Value, Time>) {
        values.push_back((rank.*field).ps());
      } else {
        values.push_back(static_cast<std::int64_t>(rank.*field));
      }
    }
    return integers(values);
  };
}

// A program in Python. What it raises comes out of ProgramRanks.run().
class PythonProgram final : public RankProgram {
 public:
  NB_TRAMPOLINE(RankProgram, 2);
  bool proceed(ProcessId rank) override { NB_OVERRIDE_PURE(proceed, rank); }
  void ended(ProcessId rank, std::uint32_t operation, Time time, const Envelope& message) override {
    NB_OVERRIDE_PURE(ended, rank, operation, time, message);
  }
};

// Ranks of a program, and their machine.
struct ProgramRanks {
  ProgramRanks(const MachineDescription& description, std::vector<NodeId> node_of_rank, RankProgram& program)
      : machine(description, std::move(node_of_rank)),
        messages(machine.simulation(), machine.machine(), 0,
                 std::vector<std::uint16_t>(machine.machine().process_count(), 1), program) {}

  void run() {
    machine.run(messages, [this] { messages.begin(Time::zero()); });
  }
  RanksReport report() { return machine.report(messages.totals()); }

  RankMachine machine;
  MessagePassing messages;
};

void bind_ranks(nb::module_& module) {
  module.attr("any_rank") = any_rank;
  module.attr("any_tag") = any_tag;
  static_assert(end_of_time.ps() == ipc::end_of_time_ps);
  module.attr("end_of_time_ps") = end_of_time.ps();
  nb::class_<Time>(module, "Time").def_prop_ro("ps", &Time::ps);
  nb::class_<Envelope>(module, "Envelope")
      .def_ro("source", &Envelope::source)
      .def_ro("tag", &Envelope::tag)
      .def_ro("bytes", &Envelope::bytes);
  nb::class_<RankProgram, PythonProgram>(module, "RankProgram").def(nb::init<>());
  nb::class_<RanksReport>(module, "RanksReport")
      .def_prop_ro("waited_ps", column(&RankActivity::waited), nb::rv_policy::automatic)
      .def_prop_ro("computed_ps", column(&RankActivity::computed), nb::rv_policy::automatic)
      .def_prop_ro("sends", column(&RankActivity::sends), nb::rv_policy::automatic)
      .def_prop_ro("sent_bytes", column(&RankActivity::sent_bytes), nb::rv_policy::automatic)
      .def_ro("messages", &RanksReport::messages)
      .def_ro("bytes", &RanksReport::bytes)
      .def_ro("trace_hash", &RanksReport::trace_hash)
      .def_ro("links", &RanksReport::links)
      .def_ro("ports", &RanksReport::ports)
      .def_ro("faults", &RanksReport::faults)
      .def_ro("network", &RanksReport::network)
      .def_ro("warnings", &RanksReport::warnings);
  // Its program is kept by whoever calls run(): the program knows it, and a cycle would never be freed.
  nb::class_<ProgramRanks>(module, "ProgramRanks")
      .def(nb::init<const MachineDescription&, std::vector<NodeId>, RankProgram&>(), nb::arg("description"),
           nb::arg("node_of_rank"), nb::arg("program"))
      .def(
          "send",
          [](ProgramRanks& self, ProcessId rank, std::uint32_t operation, ProcessId target,
             std::int64_t bytes, std::uint32_t tag, std::uint64_t address) {
            self.messages.send(rank, 0, Time::zero(), operation, {rank, tag, bytes}, target, address);
          },
          nb::arg("rank"), nb::arg("operation"), nb::arg("target"), nb::arg("bytes"), nb::arg("tag"),
          nb::arg("address"))
      .def(
          "receive",
          [](ProgramRanks& self, ProcessId rank, std::uint32_t operation, ProcessId source, std::uint32_t tag,
             std::uint64_t address) {
            self.messages.receive(rank, 0, Time::zero(), operation, source, tag, address);
          },
          nb::arg("rank"), nb::arg("operation"), nb::arg("source"), nb::arg("tag"), nb::arg("address"))
      .def(
          "compute",
          [](ProgramRanks& self, ProcessId rank, std::uint32_t operation, std::int64_t ps) {
            self.messages.compute(rank, 0, Time::zero(), operation, Time::from_ps(ps));
          },
          nb::arg("rank"), nb::arg("operation"), nb::arg("span_ps"))
      .def("run", &ProgramRanks::run)
      .def(
          "clock_ps", [](const ProgramRanks& self, ProcessId rank) { return self.messages.clock(rank).ps(); },
          nb::arg("rank"))
      .def(
          "unreceived",
          [](ProgramRanks& self, ProcessId rank) -> std::optional<Envelope> {
            Envelope message;
            if (!self.messages.unreceived(rank, message)) return std::nullopt;
            return message;
          },
          nb::arg("rank"))
      .def("report", &ProgramRanks::report);
}

nb::tuple traffic_of(const GoalSchedule& schedule) {
  struct Sum {
    std::int64_t messages = 0;
    std::int64_t bytes = 0;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Sum> sums;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (const GoalOperation& operation : schedule.ranks[rank].operations) {
      if (operation.kind != GoalOperationKind::send) continue;
      Sum& sum = sums[{static_cast<std::int64_t>(rank), operation.peer}];
      ++sum.messages;
      sum.bytes += operation.amount;
    }
  }
  std::array<std::vector<std::int64_t>, 4> columns;
  for (const auto& [ranks, sum] : sums) {
    columns[0].push_back(ranks.first);
    columns[1].push_back(ranks.second);
    columns[2].push_back(sum.messages);
    columns[3].push_back(sum.bytes);
  }
  return nb::make_tuple(integers(columns[0]), integers(columns[1]), integers(columns[2]),
                        integers(columns[3]));
}

// A field as numpy stores it.
template <typename Value>
auto stored(const Value& value) {
  if constexpr (std::is_same_v<Value, Time>) {
    return value.ps();
  } else if constexpr (std::is_enum_v<Value> || std::is_same_v<Value, bool>) {
    return static_cast<std::uint8_t>(value);
  } else {
    return value;
  }
}

// A field of every record as an array of the field's own size: traces have millions of operations.
template <typename Record, typename Value>
auto column(const std::vector<Record>& records, Value Record::*field) {
  std::vector<decltype(stored(records.front().*field))> values;
  values.reserve(records.size());
  for (const Record& record : records) values.push_back(stored(record.*field));
  return taken(std::move(values));
}

template <typename Value>
auto operations(Value GoalOperation::*field) {
  return [field](const GoalRank& rank) { return column(rank.operations, field); };
}

void change(GoalSchedule& schedule, std::size_t number, const std::vector<std::int64_t>& amounts,
            std::vector<std::uint32_t> first_successor, std::vector<std::uint32_t> successors) {
  GoalRank& rank = schedule.ranks.at(number);
  const std::size_t count = rank.operations.size();
  const auto is_of_rank = [count](std::uint32_t one) { return (one & ~GoalRank::on_start) < count; };
  if (amounts.size() != count || first_successor.size() != count + 1 || first_successor.front() != 0 ||
      first_successor.back() != successors.size() ||
      !std::is_sorted(first_successor.begin(), first_successor.end()) ||
      !std::all_of(successors.begin(), successors.end(), is_of_rank)) {
    throw std::invalid_argument("dependencies = those of other operations: expected one entry for each");
  }
  for (std::size_t i = 0; i < count; ++i) rank.operations[i].amount = amounts[i];
  rank.first_successor = std::move(first_successor);
  rank.successors = std::move(successors);
}

template <typename Value>
auto waits(Value WaitRecord::*field) {
  return [field](const ReplayLog& log) { return column(log.waits, field); };
}

// Times of the operations of all ranks, rank after rank, which leave the log.
IntegerArray take_times(std::vector<std::vector<Time>>& times) {
  std::size_t count = 0;
  for (const std::vector<Time>& of_rank : times) count += of_rank.size();
  std::vector<std::int64_t> values;
  values.reserve(count);
  for (std::vector<Time>& of_rank : times) {
    for (const Time time : of_rank) values.push_back(time.ps());
    of_rank = {};
  }
  return taken(std::move(values));
}

// Wait, stage, ps of the whole message and ps of the wait, which leave the log.
nb::tuple take_stages(ReplayLog& log) {
  std::vector<std::uint8_t> stages;
  stages.reserve(log.stages.stage.size());
  for (const Stage stage : log.stages.stage) stages.push_back(static_cast<std::uint8_t>(stage));
  return nb::make_tuple(taken(std::move(log.stages.wait)), taken(std::move(stages)),
                        taken(std::move(log.stages.whole_ps)), taken(std::move(log.stages.awaited_ps)));
}

void bind_log(nb::module_& module) {
  nb::class_<ReplayLog>(module, "ReplayLog")
      .def(nb::init<>())
      .def_prop_ro("wait_rank", waits(&WaitRecord::rank), nb::rv_policy::automatic)
      .def_prop_ro("wait_source", waits(&WaitRecord::source), nb::rv_policy::automatic)
      .def_prop_ro("wait_operation", waits(&WaitRecord::operation), nb::rv_policy::automatic)
      .def_prop_ro("wait_from_ps", waits(&WaitRecord::from), nb::rv_policy::automatic)
      .def_prop_ro("wait_until_ps", waits(&WaitRecord::until), nb::rv_policy::automatic)
      .def_prop_ro("wait_posted_ps", waits(&WaitRecord::posted), nb::rv_policy::automatic)
      .def_prop_ro("wait_bytes", waits(&WaitRecord::bytes), nb::rv_policy::automatic)
      .def_prop_ro("wait_role", waits(&WaitRecord::role), nb::rv_policy::automatic)
      .def_prop_ro("wait_is_arrival", waits(&WaitRecord::is_arrival), nb::rv_policy::automatic)
      .def(
          "free_waits", [](ReplayLog& self) { self.waits = {}; },
          "Call it when their columns have been read.")
      .def("take_stages", &take_stages, nb::rv_policy::automatic,
           "Wait, stage, picoseconds of the whole message and of the wait, once.")
      .def(
          "take_began_ps", [](ReplayLog& self) { return take_times(self.began); }, nb::rv_policy::automatic,
          "When each operation began, rank after rank, once.")
      .def(
          "take_ended_ps", [](ReplayLog& self) { return take_times(self.ended); }, nb::rv_policy::automatic,
          "When each operation ended, rank after rank, once.");
}

}  // namespace

void bind_replay(nb::module_& module) {
  bind_ranks(module);
  bind_log(module);
  module.def(
      "stage_names", [] { return std::vector<std::string>(stage_names.begin(), stage_names.end()); },
      "What a message can be doing on its way: names of ReplayLog.take_stages.");
  nb::class_<GoalRank>(module, "GoalRank",
                       "The operations of one rank, as arrays; dependencies as in goal.hpp.")
      .def_prop_ro("kinds", operations(&GoalOperation::kind), nb::rv_policy::automatic)
      .def_prop_ro("amounts", operations(&GoalOperation::amount), nb::rv_policy::automatic)
      .def_prop_ro("peers", operations(&GoalOperation::peer), nb::rv_policy::automatic)
      .def_prop_ro("tags", operations(&GoalOperation::tag), nb::rv_policy::automatic)
      .def_prop_ro("cpus", operations(&GoalOperation::cpu), nb::rv_policy::automatic)
      .def_prop_ro("begun_in", operations(&GoalOperation::begun_in), nb::rv_policy::automatic)
      .def_prop_ro("ended_in", operations(&GoalOperation::ended_in), nb::rv_policy::automatic)
      .def_prop_ro("begun_number", operations(&GoalOperation::begun_number), nb::rv_policy::automatic)
      .def_prop_ro("ended_number", operations(&GoalOperation::ended_number), nb::rv_policy::automatic)
      .def_prop_ro("operation_count", [](const GoalRank& self) { return self.operations.size(); })
      .def_prop_ro("successor_count", [](const GoalRank& self) { return self.successors.size(); })
      .def_prop_ro(
          "first_successor", [](const GoalRank& self) { return taken(std::vector(self.first_successor)); },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "successors", [](const GoalRank& self) { return taken(std::vector(self.successors)); },
          nb::rv_policy::automatic);
  nb::class_<GoalSchedule>(module, "GoalSchedule")
      .def_prop_ro("rank_count", [](const GoalSchedule& self) { return self.ranks.size(); })
      .def_ro("calls", &GoalSchedule::calls)
      .def(
          "rank",
          [](const GoalSchedule& self, std::size_t rank) -> const GoalRank& { return self.ranks.at(rank); },
          nb::arg("rank"), nb::rv_policy::reference_internal)
      .def("copy", [](const GoalSchedule& self) { return self; })
      .def("change", &change, nb::arg("rank"), nb::arg("amounts"), nb::arg("first_successor"),
           nb::arg("successors"),
           "Sets the amounts and dependencies of one rank, which must contain no cycle.")
      .def("traffic", &traffic_of,
           "Arrays: sender, receiver, messages and bytes of each pair of ranks that sends.");
  module.def("read_goal", &read_goal, nb::arg("path"), nb::arg("name"),
             nb::call_guard<nb::gil_scoped_release>());

  nb::exception<ReplayDeadlock>(module, "ReplayDeadlock");
  nb::class_<ReplayReport, RanksReport>(module, "ReplayReport")
      .def_prop_ro(
          "finish_ps", [](const ReplayReport& self) { return picoseconds(self.finish); },
          nb::rv_policy::automatic)
      .def_ro("operations", &ReplayReport::operations);
  nb::class_<JobReport>(module, "JobReport")
      .def_prop_ro(
          "finish_ps", [](const JobReport& self) { return picoseconds(self.finish); },
          nb::rv_policy::automatic)
      .def_ro("operations", &JobReport::operations)
      .def_ro("deadlock", &JobReport::deadlock)
      .def_ro("warnings", &JobReport::warnings);
  nb::class_<JobsReport, RanksReport>(module, "JobsReport").def_ro("jobs", &JobsReport::jobs);
  nb::class_<GoalJob>(module, "GoalJob")
      .def(
          "__init__",
          [](GoalJob* self, const GoalSchedule& schedule, std::vector<NodeId> node_of_rank,
             std::int64_t start_ps) {
            new (self) GoalJob{&schedule, std::move(node_of_rank), Time::from_ps(start_ps)};
          },
          nb::arg("schedule"), nb::arg("node_of_rank"), nb::arg("start_ps"), nb::keep_alive<1, 2>());
  module.def(
      "replay_jobs",
      [](const MachineDescription& description, const std::vector<GoalJob>& jobs) {
        return replay_jobs(description, jobs);
      },
      nb::arg("description"), nb::arg("jobs"), nb::call_guard<nb::gil_scoped_release>());
  module.def("count_goal_packet_hops",
             nb::overload_cast<const MachineDescription&, const std::vector<NodeId>&, const GoalSchedule&>(
                 &count_packet_hops),
             nb::arg("description"), nb::arg("node_of_rank"), nb::arg("schedule"),
             nb::call_guard<nb::gil_scoped_release>());
  module.def("replay_goal", &replay_goal, nb::arg("description"), nb::arg("node_of_rank"),
             nb::arg("schedule"), nb::arg("observed"), nb::arg("log") = nb::none(),
             nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace apenet
