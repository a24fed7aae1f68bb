// PmiServer: the process manager's side of PMI-1, through which the ranks of an MPI program exchange
// addresses.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/launch/node_topology.hpp"

namespace apenet {

// Provides one key-value space, a barrier and abort. The wire protocol is lines of `cmd=NAME key=value ...`
// (PMI version 1.1, as spoken by MPICH's simple client). Spawning is refused, because a simulated machine has
// a fixed number of processes. The memory that a rank can make the server use is bounded.
class PmiServer {
 public:
  // One descriptor per rank; -1 if the rank uses another process manager.
  // `find_launcher` says where a rank, whose MPI library is this file, gets the variables of its own
  // launcher: the fields of the answer.
  using FindLauncher = std::function<std::string(std::uint32_t rank, const std::string& library)>;
  explicit PmiServer(std::vector<int> fds, FindLauncher find_launcher = {});
  ~PmiServer();
  PmiServer(const PmiServer&) = delete;
  PmiServer& operator=(const PmiServer&) = delete;

  // Call when the descriptor of this rank is readable. Returns false when the connection is closed. Throws
  // RankError if the rank violates the protocol; the rank's connection is closed before that.
  bool serve(std::uint32_t rank);

  // The rank goes on by this descriptor. Returns false, and closes it, if the rank has spoken already.
  bool reconnect(std::uint32_t rank, int fd);

  [[nodiscard]] int fd(std::uint32_t rank) const { return fds_[rank]; }
  // The rank has sent its init command.
  [[nodiscard]] bool spoke(std::uint32_t rank) const { return ranks_[rank].spoke; }

  struct Abort {
    std::uint32_t rank;
    int exit_code;
    std::string message;
  };
  // Call when the rank has ended: it cannot tell its library any more.
  void note_end(std::uint32_t rank);
  // Refuses a rank if the ranks that have told their libraries have two, without waiting for the others.
  // Returns whether it has.
  bool refuse_two_libraries();
  // Ordered by arrival.
  [[nodiscard]] const std::vector<Abort>& aborts() const { return aborts_; }
  // The rank waits for other ranks: in the barrier, or until they have told their libraries.
  [[nodiscard]] bool waits_for_others(std::uint32_t rank) const {
    return ranks_[rank].in_barrier || ranks_[rank].awaits_library;
  }
  // Why a process of the rank has refused to go on, or may not; empty if there is no such reason.
  [[nodiscard]] const std::string& refusal(std::uint32_t rank) const { return ranks_[rank].refusal; }
  [[nodiscard]] bool spawn_refused() const { return spawn_refused_; }

 private:
  using Fields = std::map<std::string, std::string, std::less<>>;
  void handle(std::uint32_t rank, std::string_view line);
  void answer(std::uint32_t rank, const std::string& line);
  void enter_barrier(std::uint32_t rank);
  void put(std::uint32_t rank, Fields& space, const std::string& key, const std::string& value);
  void close_rank(std::uint32_t rank);
  void compare_libraries();
  void get(std::uint32_t rank, const std::string& key);
  std::string answers_ahead(std::uint32_t rank, const std::string& key);
  bool is_answered(std::uint32_t rank, std::string_view line);

  std::vector<int> fds_;
  FindLauncher find_launcher_;
  // Keys with numbers in sequence, which a rank reads one after the other.
  struct Row {
    std::string prefix{};
    std::uint32_t next = 0;   // the number that the rank asks for next
    std::uint32_t ahead = 0;  // so many values from there on have been sent
  };
  struct Rank {
    Row row;
    std::string unread;         // incomplete line
    std::string refusal;        // why a process of the rank does not go on
    std::string library;        // what it says of itself, until it has finalised; the file of Open MPI's
    std::uint32_t entries = 0;  // number of keys and names put or published
    bool spoke = false;
    bool speaks_pmi = false;  // its library meets the others by PMI-1, until it has finalised
    bool asked_launcher = false;
    bool awaits_library = false;  // it has told its library, and has no answer yet
    bool has_ended = false;
    bool in_barrier = false;
    bool in_spawn = false;  // between `mcmd=spawn` and `endcmd`
  };
  struct TwoLibraries {
    std::uint32_t first;
    std::uint32_t second;
  };
  // `one` has told its library.
  static bool are_of_two_libraries(const Rank& one, const Rank& other);
  // The lowest rank that has told its library, and the lowest that cannot meet it, in the order of ranks.
  [[nodiscard]] std::optional<TwoLibraries> find_two_libraries() const;
  std::vector<Rank> ranks_;
  std::string space_name_;
  NodeTopology topology_;
  Fields values_;
  Fields published_;
  std::uint32_t in_barrier_ = 0;
  bool spawn_refused_ = false;
  std::vector<Abort> aborts_;
};

}  // namespace apenet
