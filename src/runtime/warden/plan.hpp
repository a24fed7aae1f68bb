// Plan: what a warden starts.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace apenet::warden {

struct PlannedProcess {
  std::vector<std::string> environment;  // beside what is common
  std::vector<int> descriptors;          // standard input, output, error; further ones keep their numbers
};

struct Plan {
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // common to all processes
  // Variables that name a folder for temporary files, which the warden makes and removes. No folder is made
  // for none.
  std::vector<std::string> folder_variables;
  std::vector<PlannedProcess> processes;
};

// Reads a plan as python/apenet/warden.py writes it: texts that each end in a zero byte; a list is its length
// and its texts. Nothing if it is not whole.
std::optional<Plan> read_plan(int fd);

}  // namespace apenet::warden
