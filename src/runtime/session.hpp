// Session: one run of a real program on a simulated machine, from its processes' start to their end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "machine/machine.hpp"
#include "runtime/launch/session_facts.hpp"

namespace apenet {

class Session {
 public:
  // Throws std::invalid_argument for a description that cannot be wired, std::system_error when the host
  // refuses.
  Session(const MachineDescription& description, std::vector<NodeId> node_of_process,
          const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // For the ranks' environment: ipc::mapping_variable.
  [[nodiscard]] std::string mapping_path() const;

  // Runs to the end of all processes. `interrupted` is asked some fifty times a second; true ends the run:
  // all processes are terminated, and what they had printed is passed on. launcher_id: a process that started
  // the ranks and ends when they do (mpirun), or 0. warden_fd: the channel of the warden that started all of
  // them (docs/internals/warden.md), or -1 where the caller did.
  SessionReport run(const std::vector<RankProcess>& ranks, int launcher_id, int warden_fd,
                    const std::function<bool()>& interrupted);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace apenet
