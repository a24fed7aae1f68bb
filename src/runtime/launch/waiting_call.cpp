#include "runtime/launch/waiting_call.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "runtime/launch/code_places.hpp"
#include "runtime/launch/host_waits.hpp"

namespace apenet {
namespace {

// The shim stands for the C library.
bool is_shim(const std::string& file) {
  return std::string_view(file).substr(file.rfind('/') + 1) == "libapenet-shim.so";
}

// The other libraries of the simulator are no code of the program. What is left of their calls may lie in
// memory that the program has not written yet.
bool is_simulators(const std::string& file) {
  return std::string_view(file).substr(file.rfind('/') + 1).starts_with("libapenet-") && !is_shim(file);
}

// Whether threads wait for each other in the function.
bool is_meeting(std::string_view function) {
  static constexpr std::string_view parts[] = {"_lock",     "lockfile", "rdlock", "wrlock", "join", "_wait",
                                               "timedwait", "once",     "poll",   "select", "read", "recv"};
  const bool gives = function.find("unlock") != std::string_view::npos;
  return !gives && std::any_of(std::begin(parts), std::end(parts), [function](std::string_view part) {
    return function.find(part) != std::string_view::npos;
  });
}

}  // namespace

Caller caller_of(int process_id, const SystemCall& call, SourceLines& lines) {
  constexpr std::size_t examined_bytes = 4096;
  Caller caller;
  if (call.stack == 0) return caller;
  CodePlaces places(process_id);
  bool in_c_library = true;
  std::string leaves;  // the function that calls, while only addresses in it follow
  std::string likely;  // the first line that may be what remains of an earlier call
  for (const std::uint64_t address : places.calls_on_stack(call.stack, examined_bytes)) {
    const std::string file = places.file_of(address);
    if (is_simulators(file)) continue;
    const bool is_of_c_library = is_c_library(file) || is_shim(file);
    if (!in_c_library && is_of_c_library && caller.deeper_meeting.empty()) {
      std::string name = places.function_of(address);
      if (!name.starts_with('_') && is_meeting(name)) caller.deeper_meeting = std::move(name);
    }
    in_c_library = in_c_library && is_of_c_library;
    if (in_c_library) {
      std::string name = places.function_of(address);
      // A frame of the shim may hold an old address of its own, in a function whose name is not exported.
      if (name.empty() || name.starts_with('_') || name == "syscall") continue;
      if (is_meeting(name)) caller.meeting = std::move(name);
    } else if (caller.line.empty() && !is_of_c_library) {
      std::string line = places.line_of_call(address, lines);
      if (likely.empty()) likely = line;
      if (!places.may_leave_file(address)) continue;
      caller.line = std::move(line);
      leaves = places.function_of(address);
    } else if (!is_of_c_library && !leaves.empty()) {
      // A copy of an earlier call of the function lies deeper than the address of this one. A call of itself
      // does not leave the file.
      if (places.function_of(address) != leaves) leaves.clear();
      if (!leaves.empty() && places.may_leave_file(address))
        caller.line = places.line_of_call(address, lines);
    }
  }
  if (caller.line.empty()) caller.line = std::move(likely);
  return caller;
}

}  // namespace apenet
