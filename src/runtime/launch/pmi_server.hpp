// PmiServer: the process manager's side of PMI-1, by which the ranks of an MPI program find each other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace apenet {

// One key-value space, a barrier, abort. The wire protocol is lines of `cmd=NAME key=value ...` (PMI
// version 1.1, as MPICH's simple client speaks it). Spawning is refused: a simulated machine has a fixed
// number of processes.
class PmiServer {
 public:
  explicit PmiServer(std::vector<int> fds);
  ~PmiServer();
  PmiServer(const PmiServer&) = delete;
  PmiServer& operator=(const PmiServer&) = delete;

  // The descriptor of this rank is readable. false when the rank has closed it.
  bool serve(std::uint32_t rank);

  [[nodiscard]] int fd(std::uint32_t rank) const { return fds_[rank]; }

  struct Abort {
    std::uint32_t rank;
    int exit_code;
    std::string message;
  };
  [[nodiscard]] const std::optional<Abort>& abort() const { return abort_; }
  [[nodiscard]] bool spawn_refused() const { return spawn_refused_; }

 private:
  using Fields = std::map<std::string, std::string, std::less<>>;
  void handle(std::uint32_t rank, std::string_view line);
  void answer(std::uint32_t rank, const std::string& line);
  void barrier();
  void get(std::uint32_t rank, const std::string& key);

  std::vector<int> fds_;
  std::vector<std::string> unread_;  // incomplete line of each rank
  std::string space_name_;
  Fields values_;
  Fields published_;
  std::uint32_t in_barrier_ = 0;
  bool in_spawn_ = false;
  bool spawn_refused_ = false;
  std::optional<Abort> abort_;
};

}  // namespace apenet
