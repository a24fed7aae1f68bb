// The graph of which rank waits for which, as far as it is certain.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/scheduler/rank_snapshot.hpp"

namespace apenet {

// The rank cannot continue before rank `to` has acted.
struct WaitEdge {
  std::uint32_t to = 0;
  OperationSnapshot because;
};

// A collective, and the ranks that have entered it.
struct Meeting {
  OperationSnapshot operation;
  std::vector<std::uint32_t> inside;
  // Members of its communicator or window that have not entered. If the members are unknown, both lists are
  // empty.
  std::vector<std::uint32_t> outside;
};

[[nodiscard]] std::vector<Meeting> meetings_of(const std::vector<RankSnapshot>& ranks);

class WaitGraph {
 public:
  explicit WaitGraph(const std::vector<RankSnapshot>& ranks);

  [[nodiscard]] const std::vector<Meeting>& meetings() const { return meetings_; }
  [[nodiscard]] const std::vector<WaitEdge>& edges(std::uint32_t rank) const { return edges_[rank]; }
  // Returns the cycles of ranks of which each waits for the next and the last for the first, starting with
  // the lowest rank. At most one cycle per rank. Omits ranks that wait for themselves and cycles that
  // consist of collectives only.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> cycles() const;

 private:
  void add(std::uint32_t rank, const CallSnapshot& call);
  void add(std::uint32_t rank, const OperationSnapshot& operation, bool sends, bool receives);
  void add_lock_holders(std::uint32_t rank, const OperationSnapshot& operation);
  void add_missing();

  const std::vector<RankSnapshot>& ranks_;
  std::vector<Meeting> meetings_;
  std::vector<std::vector<WaitEdge>> edges_;
};

// The rank of the run that has number `peer` in an object, as `rank` describes it; empty if unknown.
[[nodiscard]] std::optional<std::uint32_t> peer_of(const std::vector<RankSnapshot>& ranks, std::uint32_t rank,
                                                   const ObjectSnapshot& object, std::int32_t peer);

// The members of an object in rank order; empty if unknown.
[[nodiscard]] std::vector<std::uint32_t> members_of(const std::vector<RankSnapshot>& ranks,
                                                    std::uint32_t rank, const ObjectSnapshot& object);

// Returns the requests that a call waits for and that match the provider's oldest unfinished operation; all
// of them if none matches.
[[nodiscard]] std::vector<OperationSnapshot> unfinished(const std::vector<RankSnapshot>& ranks,
                                                        std::uint32_t rank, const CallSnapshot& call);

}  // namespace apenet
