// A run of real processes.
#include "runtime/session.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <filesystem>

#include "bindings.hpp"
#include "ip/sockets.hpp"
#include "runtime/ipc/descriptor_path.hpp"
#include "runtime/launch/source_lines.hpp"
#include "runtime/recording/goal_writer.hpp"

namespace nb = nanobind;

namespace apenet {

namespace {

// ranks: numbers, none for all. to_ps: 0 for no end.
void set_trace_filter(ObservationOptions& options, const std::vector<std::uint32_t>& ranks,
                      std::int64_t from_ps, std::int64_t to_ps, std::uint64_t least_bytes) {
  TraceFilter& filter = options.trace.filter;
  for (const std::uint32_t rank : ranks) {
    if (filter.ranks.size() <= rank) filter.ranks.resize(rank + 1);
    filter.ranks[rank] = true;
  }
  filter.from = Time::from_ps(from_ps);
  if (to_ps > 0) filter.to = Time::from_ps(to_ps);
  filter.least_bytes = least_bytes;
}

void bind_reports(nb::module_& module) {
  nb::class_<PortUse>(module, "PortUse")
      .def_ro("name", &PortUse::name)
      .def_ro("packets", &PortUse::packets)
      .def_prop_ro(
          "busy_ps", [](const PortUse& self) { return picoseconds(self.busy); }, nb::rv_policy::automatic)
      .def_prop_ro("waited_ps", [](const PortUse& self) -> std::optional<std::int64_t> {
        if (self.waited == Time::never()) return std::nullopt;
        return self.waited.ps();
      });
  nb::class_<LinkUse>(module, "LinkUse")
      .def_ro("name", &LinkUse::name)
      .def_ro("packets", &LinkUse::packets)
      .def_ro("wire_bytes", &LinkUse::wire_bytes)
      .def_ro("corrupted_packets", &LinkUse::corrupted_packets)
      .def_ro("retransmitted_bytes", &LinkUse::retransmitted_bytes)
      .def_prop_ro("busy_ps", [](const LinkUse& self) { return self.busy.ps(); });
  nb::class_<FaultUse>(module, "FaultUse")
      .def_ro("events", &FaultUse::events)
      .def_ro("reconfigurations", &FaultUse::reconfigurations)
      .def_ro("packets_taken_back", &FaultUse::packets_taken_back)
      .def_ro("corrupted_packets", &FaultUse::corrupted_packets)
      .def_ro("retransmitted_bytes", &FaultUse::retransmitted_bytes);

  nb::class_<LinkHistory>(module, "LinkHistory")
      .def_ro("name", &LinkHistory::name)
      .def_ro("busy_ps", &LinkHistory::busy_ps)
      .def_ro("peak_queue_bytes", &LinkHistory::peak_queue_bytes)
      .def_ro("queue_byte_picoseconds", &LinkHistory::queue_byte_picoseconds);
  nb::class_<HopLatency>(module, "HopLatency")
      .def_ro("hops", &HopLatency::hops)
      .def_ro("packets", &HopLatency::packets)
      .def_ro("least_ps", &HopLatency::least_ps)
      .def_ro("most_ps", &HopLatency::most_ps)
      .def_ro("sum_ns", &HopLatency::sum_ns)
      .def_ro("counts", &HopLatency::counts)
      .def_static("lower_bound_ps", &HopLatency::lower_bound_ps, nb::arg("bin"));
  nb::class_<NetworkHistory>(module, "NetworkHistory")
      .def_ro("bin_ps", &NetworkHistory::bin_ps)
      .def_ro("links", &NetworkHistory::links)
      .def_ro("by_hops", &NetworkHistory::by_hops);

  nb::class_<RouteChange>(module, "RouteChange")
      .def_ro("at_ps", &RouteChange::at_ps)
      .def_ro("rank", &RouteChange::rank)
      .def_ro("rail", &RouteChange::rail)
      .def_ro("routes", &RouteChange::routes);
  nb::class_<RankReport>(module, "RankReport")
      .def_ro("status", &RankReport::status)
      .def_ro("used_network", &RankReport::used_network)
      .def_ro("finalised", &RankReport::finalised)
      .def_ro("virtual_us", &RankReport::virtual_us)
      .def_ro("waited_us", &RankReport::waited_us)
      .def_ro("computed_us", &RankReport::computed_us)
      .def_ro("uncharged_us", &RankReport::uncharged_us)
      .def_ro("library", &RankReport::library);

  nb::enum_<SessionReport::Outcome>(module, "Outcome")
      .value("completed", SessionReport::Outcome::completed)
      .value("failed", SessionReport::Outcome::failed)
      .value("aborted", SessionReport::Outcome::aborted)
      .value("deadlock", SessionReport::Outcome::deadlock)
      .value("interrupted", SessionReport::Outcome::interrupted)
      .value("output_closed", SessionReport::Outcome::output_closed)
      .value("limit", SessionReport::Outcome::limit);
  nb::class_<SessionReport>(module, "SessionReport")
      .def_ro("outcome", &SessionReport::outcome)
      .def_ro("exit_status", &SessionReport::exit_status)
      .def_ro("message", &SessionReport::message)
      .def_ro("ranks", &SessionReport::ranks)
      .def_ro("virtual_ps", &SessionReport::virtual_ps)
      .def_ro("messages", &SessionReport::messages)
      .def_ro("bytes", &SessionReport::bytes)
      .def_prop_ro("traffic",
                   [](const SessionReport& report) {
                     std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>> rows;
                     for (const RankTraffic& one : report.traffic)
                       rows.emplace_back(one.sender, one.receiver, one.bytes);
                     return rows;
                   })
      .def_ro("rail_messages", &SessionReport::rail_messages)
      .def_ro("trace_hash", &SessionReport::trace_hash)
      .def_ro("links", &SessionReport::links)
      .def_ro("ports", &SessionReport::ports)
      .def_ro("faults", &SessionReport::faults)
      .def_ro("route_changes", &SessionReport::route_changes)
      .def_ro("grid", &SessionReport::grid)
      .def_ro("network", &SessionReport::network)
      .def_ro("warnings", &SessionReport::warnings);
}

}  // namespace

void bind_session(nb::module_& module) {
  bind_reports(module);
  nb::class_<ObservationOptions>(module, "ObservationOptions")
      .def(nb::init<>())
      .def_rw("network_history", &ObservationOptions::network_history)
      .def_rw("trace_path", &ObservationOptions::trace_path)
      .def("set_trace_filter", &set_trace_filter, nb::arg("ranks"), nb::arg("from_ps"), nb::arg("to_ps"),
           nb::arg("least_bytes"));

  nb::enum_<CoreUse>(module, "CoreUse")
      .value("adaptive", CoreUse::adaptive)
      .value("one", CoreUse::one)
      .value("all", CoreUse::all);

  nb::enum_<ipc::ComputeMode>(module, "ComputeMode")
      .value("none", ipc::ComputeMode::none)
      .value("measured", ipc::ComputeMode::measured)
      .value("record", ipc::ComputeMode::record)
      .value("profile", ipc::ComputeMode::profile);
  nb::class_<LateLauncher>(module, "LateLauncher")
      .def(
          "__init__",
          [](LateLauncher* self, int process_id, std::string refused, std::vector<std::string> pipes) {
            new (self) LateLauncher{process_id, std::move(refused), std::move(pipes)};
          },
          nb::arg("process_id") = 0, nb::arg("refused") = "", nb::arg("pipes") = std::vector<std::string>{})
      .def_ro("process_id", &LateLauncher::process_id)
      .def_ro("refused", &LateLauncher::refused)
      .def_ro("pipes", &LateLauncher::pipes);
  nb::class_<SessionOptions>(module, "SessionOptions")
      .def(nb::init<>())
      .def(
          "set_partition",
          [](SessionOptions& self, std::vector<NodeId> nodes, std::vector<std::uint32_t> extents,
             std::uint32_t spanned) {
            self.partition = {std::move(nodes), std::move(extents), spanned};
          },
          nb::arg("nodes"), nb::arg("extents"), nb::arg("spanned"))
      .def_rw("compute", &SessionOptions::compute)
      .def_rw("compute_scale", &SessionOptions::compute_scale)
      .def_rw("deadlock_wait_ms", &SessionOptions::deadlock_wait_ms)
      .def_rw("stall_timeout_ms", &SessionOptions::stall_timeout_ms)
      .def_rw("limit_virtual_ps", &SessionOptions::limit_virtual_ps)
      .def_rw("start_ps", &SessionOptions::start_ps)
      .def_rw("cores", &SessionOptions::cores)
      .def_rw("output_fd", &SessionOptions::output_fd)
      .def_rw("error_fd", &SessionOptions::error_fd)
      .def_rw("start_launcher", &SessionOptions::start_launcher)
      .def_rw("tag_output", &SessionOptions::tag_output)
      .def_rw("has_sockets", &SessionOptions::has_sockets)
      .def(
          "capture_packets",
          [](SessionOptions& self, std::string path, std::int64_t node) {
            self.capture = {std::move(path), node};
          },
          nb::arg("path"), nb::arg("node"))
      .def(
          "set_program",
          [](SessionOptions& self, const std::filesystem::path& path) {
            self.program = path.native();
            self.unfollowed = {};
            const char* why = ipc::why_unfollowed(path.c_str());
            if (why == nullptr) return;
            char text[ipc::unfollowed_bytes] = {};
            ipc::describe_unfollowed(text, path.c_str(), why);
            // A name of the host's may have any bytes, and a message is UTF-8.
            const auto length = static_cast<Py_ssize_t>(std::strlen(text));
            self.unfollowed = nb::cast<std::string>(
                nb::steal<nb::str>(PyUnicode_DecodeUTF8(text, length, "backslashreplace")));
          },
          nb::arg("path"));

  nb::class_<RankProcess>(module, "RankProcess")
      .def(
          "__init__",
          [](RankProcess* self, int process_id, int pmi_fd, int output_fd, int error_fd) {
            new (self) RankProcess{process_id, pmi_fd, output_fd, error_fd};
          },
          nb::arg("process_id") = 0, nb::arg("pmi_fd") = -1, nb::arg("output_fd") = -1,
          nb::arg("error_fd") = -1);

  nb::class_<GoalSummary>(module, "GoalSummary")
      .def_ro("puts", &GoalSummary::puts)
      .def_ro("gets", &GoalSummary::gets)
      .def_ro("unreceived", &GoalSummary::unreceived)
      .def_ro("unclosed", &GoalSummary::unclosed)
      .def_ro("unrecorded", &GoalSummary::unrecorded);
  module.def(
      "write_goal",
      [](int fd, std::uint32_t rank_count, const std::string& heading, const std::string& path) {
        SourceLines lines;
        return write_goal(Recording(fd, rank_count), heading, path,
                          [&lines](const std::string& file, const std::vector<std::uint64_t>& behind) {
                            return lines.lines_of_calls(file, behind);
                          });
      },
      nb::arg("fd"), nb::arg("rank_count"), nb::arg("heading"), nb::arg("path"));

  module.def("has_ip_stack", &ip::has_stack, "Whether this build has the TCP/IP stack of `apenet run --ip`.");
  module.def(
      "descriptor_path", &ipc::descriptor_path, nb::arg("fd"),
      "The path by which other processes of this user open a descriptor of this one: always of one length.");

  nb::class_<SessionProgress>(module, "SessionProgress")
      .def_ro("virtual_ps", &SessionProgress::virtual_ps)
      .def_ro("messages", &SessionProgress::messages)
      .def_ro("grid", &SessionProgress::grid);
  nb::class_<SessionJob>(module, "SessionJob")
      .def(
          "__init__",
          [](SessionJob* self, std::vector<NodeId> node_of_rank, const SessionOptions& options) {
            new (self) SessionJob{std::move(node_of_rank), options};
          },
          nb::arg("node_of_rank"), nb::arg("options"));
  nb::class_<StartedJob>(module, "StartedJob")
      .def(
          "__init__",
          [](StartedJob* self, std::vector<RankProcess> ranks, int supervisor_id, int supervisor_fd) {
            new (self) StartedJob{std::move(ranks), {.process_id = supervisor_id, .channel = supervisor_fd}};
          },
          nb::arg("ranks"), nb::arg("supervisor_id"), nb::arg("supervisor_fd"));
  nb::class_<TracesReport>(module, "TracesReport")
      .def_ro("traces", &TracesReport::traces)
      .def_prop_ro("messages", [](const TracesReport& self) { return self.totals.messages; })
      .def_prop_ro("bytes", [](const TracesReport& self) { return self.totals.bytes; })
      .def_prop_ro("trace_hash", [](const TracesReport& self) { return self.totals.trace_hash; });
  nb::class_<Session>(module, "Session")
      .def(nb::init<const MachineDescription&, const std::vector<SessionJob>&, const std::vector<GoalJob>&,
                    const ObservationOptions&>(),
           nb::arg("description"), nb::arg("jobs"), nb::arg("traces"), nb::arg("observation"))
      .def(
          "__init__",
          [](Session* self, const MachineDescription& description, std::uint32_t ranks_per_node) {
            new (self) Session(description, OpenMachine{ranks_per_node});
          },
          nb::arg("description"), nb::arg("ranks_per_node"))
      .def("add", &Session::add, nb::arg("job"), nb::arg("starts_then"))
      .def("start", &Session::start, nb::arg("job"), nb::arg("started"))
      .def("serve", &Session::serve, nb::arg("interrupted"), nb::arg("is_to_return"),
           nb::call_guard<nb::gil_scoped_release>())
      .def("cancel", &Session::cancel, nb::arg("job"))
      .def("report", &Session::report, nb::arg("job"))
      .def("forget", &Session::forget, nb::arg("job"))
      .def("began_ps", &Session::began_ps, nb::arg("job"))
      .def("limit_ps", &Session::limit_ps, nb::arg("job"))
      .def("mapping_path", &Session::mapping_path, nb::arg("job"))
      .def_prop_ro("progress", &Session::progress)
      // The interpreter is free while the run lasts; nanobind takes it for each call of `interrupted`.
      .def("run", &Session::run, nb::arg("jobs"), nb::arg("interrupted"),
           nb::call_guard<nb::gil_scoped_release>())
      .def("report_on_traces", &Session::report_on_traces);
}

}  // namespace apenet
