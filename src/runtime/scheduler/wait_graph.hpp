// The graph of which rank waits for which, as far as it is certain.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/scheduler/rank_facts.hpp"

namespace apenet {

// The rank cannot continue before rank `to` has acted.
struct WaitEdge {
  std::uint32_t to = 0;
  OperationFact because;
};

// A collective, and the ranks that have entered it.
struct Meeting {
  OperationFact operation;
  std::vector<std::uint32_t> inside;
  // Members of its communicator or window that have not entered. If the members are unknown, both lists are
  // empty.
  std::vector<std::uint32_t> outside;
};

[[nodiscard]] std::vector<Meeting> meetings_of(const std::vector<RankFacts>& ranks);

class WaitGraph {
 public:
  explicit WaitGraph(const std::vector<RankFacts>& ranks);

  [[nodiscard]] const std::vector<Meeting>& meetings() const { return meetings_; }
  [[nodiscard]] const std::vector<WaitEdge>& edges(std::uint32_t rank) const { return edges_[rank]; }
  // Returns the circles of ranks of which each waits for the next and the last for the first, starting with
  // the lowest rank. At most one circle per rank. Omits ranks that wait for themselves and circles that
  // consist of collectives only.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> circles() const;

 private:
  void add(std::uint32_t rank, const CallFact& call);
  void add(std::uint32_t rank, const OperationFact& operation, bool sends, bool receives);
  void add_lock_holders(std::uint32_t rank, const OperationFact& operation);
  void add_missing();

  const std::vector<RankFacts>& ranks_;
  std::vector<Meeting> meetings_;
  std::vector<std::vector<WaitEdge>> edges_;
};

// The rank of the run that has number `peer` in an object, as `rank` describes it; empty if unknown.
[[nodiscard]] std::optional<std::uint32_t> peer_of(const std::vector<RankFacts>& ranks, std::uint32_t rank,
                                                   const ObjectFact& object, std::int32_t peer);

// The members of an object in rank order; empty if unknown.
[[nodiscard]] std::vector<std::uint32_t> members_of(const std::vector<RankFacts>& ranks, std::uint32_t rank,
                                                    const ObjectFact& object);

// Of the requests that a call waits for, the ones that match the provider's oldest unfinished operation; all
// of them if none matches.
[[nodiscard]] std::vector<OperationFact> unfinished(const std::vector<RankFacts>& ranks, std::uint32_t rank,
                                                    const CallFact& call);

}  // namespace apenet
