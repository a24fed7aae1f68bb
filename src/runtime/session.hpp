// Session: one run of a real program on a simulated machine, from the start of its processes to their end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "machine/machine.hpp"
#include "runtime/launch/session_options.hpp"

namespace apenet {

struct SessionProgress {
  std::int64_t virtual_ps = 0;  // since virtual time began
  std::uint64_t messages = 0;   // the program's, posted until now
};

class Session {
 public:
  // Throws std::invalid_argument for an invalid description, and std::system_error if the host refuses.
  Session(const MachineDescription& description, std::vector<NodeId> node_of_process,
          const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The value of ipc::mapping_variable for the ranks' environment.
  [[nodiscard]] std::string mapping_path() const;

  // Runs until all processes have ended. Calls `interrupted` about fifty times a second; if it returns true,
  // all processes are terminated and their output so far is forwarded.
  SessionReport run(const std::vector<RankProcess>& ranks, const Supervisor& supervisor,
                    const std::function<bool()>& interrupted);
  // How far the run is. Call it from within `interrupted`.
  [[nodiscard]] SessionProgress progress() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace apenet
