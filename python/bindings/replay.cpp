// GOAL traces, read and replayed; ranks whose program is in Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nanobind/trampoline.h>

#include <array>
#include <map>
#include <optional>
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

// A program in Python. What it raises comes out of MessagePassing.run().
class PythonProgram final : public RankProgram {
 public:
  NB_TRAMPOLINE(RankProgram, 2);
  bool proceed(ProcessId rank) override { NB_OVERRIDE_PURE(proceed, rank); }
  void ended(ProcessId rank, std::uint32_t operation, Time time, const Envelope& message) override {
    NB_OVERRIDE_PURE(ended, rank, operation, time, message);
  }
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
      .def_ro("faults", &RanksReport::faults)
      .def_ro("network", &RanksReport::network)
      .def_ro("warnings", &RanksReport::warnings);
  // Its program is kept by whoever calls run(): the program knows it, and a circle would never be freed.
  nb::class_<MessagePassing>(module, "MessagePassing")
      .def(
          "__init__",
          [](MessagePassing* self, const MachineDescription& description, std::vector<NodeId> node_of_rank,
             RankProgram& program) {
            const std::vector<std::uint16_t> cpus(node_of_rank.size(), 1);
            new (self) MessagePassing(description, std::move(node_of_rank), cpus, program);
          },
          nb::arg("description"), nb::arg("node_of_rank"), nb::arg("program"))
      .def(
          "send",
          [](MessagePassing& self, ProcessId rank, std::uint32_t operation, ProcessId target,
             std::int64_t bytes, std::uint32_t tag, std::uint64_t address) {
            self.send(rank, 0, Time::zero(), operation, {rank, tag, bytes}, target, address);
          },
          nb::arg("rank"), nb::arg("operation"), nb::arg("target"), nb::arg("bytes"), nb::arg("tag"),
          nb::arg("address"))
      .def(
          "receive",
          [](MessagePassing& self, ProcessId rank, std::uint32_t operation, ProcessId source,
             std::uint32_t tag,
             std::uint64_t address) { self.receive(rank, 0, Time::zero(), operation, source, tag, address); },
          nb::arg("rank"), nb::arg("operation"), nb::arg("source"), nb::arg("tag"), nb::arg("address"))
      .def(
          "compute",
          [](MessagePassing& self, ProcessId rank, std::uint32_t operation, std::int64_t ps) {
            self.compute(rank, 0, Time::zero(), operation, Time::from_ps(ps));
          },
          nb::arg("rank"), nb::arg("operation"), nb::arg("span_ps"))
      .def("run", &MessagePassing::run)
      .def(
          "clock_ps", [](const MessagePassing& self, ProcessId rank) { return self.clock(rank).ps(); },
          nb::arg("rank"))
      .def(
          "unreceived",
          [](MessagePassing& self, ProcessId rank) -> std::optional<Envelope> {
            Envelope message;
            if (!self.unreceived(rank, message)) return std::nullopt;
            return message;
          },
          nb::arg("rank"))
      .def("report", &MessagePassing::report);
}

nb::tuple traffic_of(const GoalSchedule& schedule) {
  struct Sum {
    std::int64_t messages = 0;
    std::int64_t bytes = 0;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Sum> sums;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (const GoalOperation& operation : schedule.ranks[rank].operations) {
      if (operation.kind != GoalOperation::Kind::send) continue;
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

}  // namespace

void bind_replay(nb::module_& module) {
  bind_ranks(module);
  nb::class_<GoalSchedule>(module, "GoalSchedule")
      .def_prop_ro("rank_count", [](const GoalSchedule& self) { return self.ranks.size(); })
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
  module.def("count_goal_packet_hops",
             nb::overload_cast<const MachineDescription&, const std::vector<NodeId>&, const GoalSchedule&>(
                 &count_packet_hops),
             nb::arg("description"), nb::arg("node_of_rank"), nb::arg("schedule"),
             nb::call_guard<nb::gil_scoped_release>());
  module.def("replay_goal", &replay_goal, nb::arg("description"), nb::arg("node_of_rank"),
             nb::arg("schedule"), nb::arg("observed"), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace apenet
