// The call of the C library in which a thread of a rank waits, from the addresses on its stack.
#pragma once

#include <string>

#include "runtime/launch/host_thread.hpp"
#include "runtime/launch/source_lines.hpp"

namespace apenet {

// The C library's function in which a thread waits, and the line that calls it.
struct Caller {
  std::string meeting;         // one of those in which threads meet: others may be left from earlier calls
  std::string deeper_meeting;  // the first below a word that looks like a call of the program
  std::string line;
};

[[nodiscard]] Caller caller_of(int process_id, const SystemCall& call, SourceLines& lines);

}  // namespace apenet
