// GOAL traces, read and replayed.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "runtime/scripted/goal.hpp"
#include "runtime/scripted/goal_replay.hpp"

namespace nb = nanobind;

namespace apenet {

namespace {

// A field of every rank's activity as an array.
template <typename Value>
auto column(Value RankActivity::*field) {
  return [field](const ReplayReport& report) {
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

}  // namespace

void bind_replay(nb::module_& module) {
  nb::class_<GoalSchedule>(module, "GoalSchedule")
      .def_prop_ro("rank_count", [](const GoalSchedule& self) { return self.ranks.size(); })
      .def_prop_ro("operation_count", &GoalSchedule::operation_count);
  module.def("read_goal", &read_goal, nb::arg("path"), nb::call_guard<nb::gil_scoped_release>());
  module.def(
      "parse_goal", [](const std::string& text, const std::string& file) { return parse_goal(text, file); },
      nb::arg("text"), nb::arg("file"));

  nb::exception<ReplayDeadlock>(module, "ReplayDeadlock");
  nb::class_<ReplayReport>(module, "ReplayReport")
      .def_prop_ro(
          "finish_ps", [](const ReplayReport& self) { return picoseconds(self.finish); },
          nb::rv_policy::automatic)
      .def_prop_ro("waited_ps", column(&RankActivity::waited), nb::rv_policy::automatic)
      .def_prop_ro("computed_ps", column(&RankActivity::computed), nb::rv_policy::automatic)
      .def_prop_ro("sends", column(&RankActivity::sends), nb::rv_policy::automatic)
      .def_prop_ro("receives", column(&RankActivity::receives), nb::rv_policy::automatic)
      .def_prop_ro("sent_bytes", column(&RankActivity::sent_bytes), nb::rv_policy::automatic)
      .def_ro("operations", &ReplayReport::operations)
      .def_ro("messages", &ReplayReport::messages)
      .def_ro("bytes", &ReplayReport::bytes)
      .def_ro("trace_hash", &ReplayReport::trace_hash)
      .def_ro("links", &ReplayReport::links)
      .def_ro("network", &ReplayReport::network)
      .def_ro("warnings", &ReplayReport::warnings);
  module.def("replay_goal", &replay_goal, nb::arg("description"), nb::arg("node_of_rank"),
             nb::arg("schedule"), nb::arg("observed"), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace apenet
