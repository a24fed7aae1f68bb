// Plan: the processes that a supervisor starts.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace apenet::supervisor {

struct PlannedProcess {
  std::vector<std::string> environment;  // in addition to the common variables
  std::vector<int> descriptors;          // standard input, output and error, and further ones
  std::vector<int> numbers;              // that they get in the process, in this order: 0, 1, 2
};

struct Plan {
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // common to all processes
  // Names of variables that are set to a folder for temporary files, which the supervisor creates and
  // removes. If there are none, no folder is created.
  std::vector<std::string> folder_variables;
  std::vector<PlannedProcess> processes;
};

// Reads a plan written by python/apenet/host/supervisor.py: texts that each end in a zero byte; a list is its
// length followed by its texts. Returns nothing if the plan is incomplete.
std::optional<Plan> read_plan(int fd);

}  // namespace apenet::supervisor
