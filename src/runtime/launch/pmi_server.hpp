// PmiServer: the process manager's side of PMI-1, by which the ranks of an MPI program find each other.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace apenet {

// One key-value space, a barrier, abort. The wire protocol is lines of `cmd=NAME key=value ...` (PMI
// version 1.1, as MPICH's simple client speaks it). Spawning is refused: a simulated machine has a fixed
// number of processes. What a rank may make the server keep is bounded.
class PmiServer {
 public:
  // One descriptor a rank; -1: it has none, and speaks with another process manager.
  explicit PmiServer(std::vector<int> fds);
  ~PmiServer();
  PmiServer(const PmiServer&) = delete;
  PmiServer& operator=(const PmiServer&) = delete;

  // The descriptor of this rank is readable. false when nothing will come of it any more. Throws RankError
  // for what no client of the protocol does; the rank is not listened to after that.
  bool serve(std::uint32_t rank);

  [[nodiscard]] int fd(std::uint32_t rank) const { return fds_[rank]; }
  // The rank has introduced itself.
  [[nodiscard]] bool spoke(std::uint32_t rank) const { return ranks_[rank].spoke; }

  struct Abort {
    std::uint32_t rank;
    int exit_code;
    std::string message;
  };
  // In the order in which they were told.
  [[nodiscard]] const std::vector<Abort>& aborts() const { return aborts_; }
  // The rank waits for others that have not come to the barrier.
  [[nodiscard]] bool in_barrier(std::uint32_t rank) const { return ranks_[rank].in_barrier; }
  [[nodiscard]] bool spawn_refused() const { return spawn_refused_; }

 private:
  using Fields = std::map<std::string, std::string, std::less<>>;
  void handle(std::uint32_t rank, std::string_view line);
  void answer(std::uint32_t rank, const std::string& line);
  void enter_barrier(std::uint32_t rank);
  void put(std::uint32_t rank, Fields& space, const std::string& key, const std::string& value);
  void close_rank(std::uint32_t rank);
  void get(std::uint32_t rank, const std::string& key);

  std::vector<int> fds_;
  struct Rank {
    std::string unread;         // incomplete line
    std::uint32_t entries = 0;  // that it has put or published
    bool spoke = false;
    bool in_barrier = false;
    bool in_spawn = false;  // between `mcmd=spawn` and `endcmd`
  };
  std::vector<Rank> ranks_;
  std::string space_name_;
  Fields values_;
  Fields published_;
  std::uint32_t in_barrier_ = 0;
  bool spawn_refused_ = false;
  std::vector<Abort> aborts_;
};

}  // namespace apenet
