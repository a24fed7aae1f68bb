// Who waits for whom: the certain part of what ranks that stand still need of each other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/scheduler/rank_facts.hpp"

namespace apenet {

// A rank cannot go on before another has acted.
struct WaitEdge {
  std::uint32_t to = 0;
  OperationFact because;
};

// A collective, and the ranks that are in it.
struct Meeting {
  OperationFact operation;
  std::vector<std::uint32_t> inside;
  std::vector<std::uint32_t>
      outside;  // members of its communicator or window; both empty where those are not known
};

[[nodiscard]] std::vector<Meeting> meetings_of(const std::vector<RankFacts>& ranks);

class WaitGraph {
 public:
  explicit WaitGraph(const std::vector<RankFacts>& ranks);

  [[nodiscard]] const std::vector<Meeting>& meetings() const { return meetings_; }
  [[nodiscard]] const std::vector<WaitEdge>& edges(std::uint32_t rank) const { return edges_[rank]; }
  // Ranks that wait for each other in a circle, each for the next, the last for the first; the lowest first.
  // At most one circle for each rank; ranks that wait for themselves are none, nor are those of collectives
  // alone.
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

// The rank of the run that is `peer` of an object, as `rank` knows it; none where that is not known.
[[nodiscard]] std::optional<std::uint32_t> peer_of(const std::vector<RankFacts>& ranks, std::uint32_t rank,
                                                   const ObjectFact& object, std::int32_t peer);

// The members of an object, in the order of ranks; empty where they are not known.
[[nodiscard]] std::vector<std::uint32_t> members_of(const std::vector<RankFacts>& ranks, std::uint32_t rank,
                                                    const ObjectFact& object);

// Of the requests that a call waits for, those that the provider knows as its oldest unfinished; all of them
// where it knows of none.
[[nodiscard]] std::vector<OperationFact> unfinished(const std::vector<RankFacts>& ranks, std::uint32_t rank,
                                                    const CallFact& call);

}  // namespace apenet
