// MessageMatching: posted receives against arrived messages of all ranks of a scripted run.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "nic/nic.hpp"

namespace apenet {

inline constexpr std::uint32_t any_rank = 0xffffffff;
inline constexpr std::uint32_t any_tag = 0xffffffff;

// A receive that a rank has posted and that has no message yet.
struct PostedReceive {
  ProcessId rank = 0;
  ProcessId source = any_rank;
  std::uint32_t tag = any_tag;
  std::uint32_t operation = 0;
  std::uint16_t cpu = 0;
};

// MPI's rules: of the receives that a message fits, the one posted first takes it; of the messages that fit a
// receive, the one that arrived first is taken. What names source and tag is found by them, in a table of
// queues that exist only while something is in them; a search through a rank's lists is for wildcards alone.
// Traces post as many receives at once as they like.
class MessageMatching {
 public:
  static constexpr std::uint32_t none = 0xffffffff;

  explicit MessageMatching(std::uint32_t rank_count) : ranks_(rank_count) {}

  void post(const PostedReceive& receive);
  // The receive that takes a message, out of the lists; false when there is none.
  [[nodiscard]] bool match(ProcessId rank, ProcessId source, std::uint32_t tag, PostedReceive& receive);

  // A message that no receive has taken, by its number.
  void keep(ProcessId rank, ProcessId source, std::uint32_t tag, std::uint32_t message);
  // The kept message that a receive takes, out of the lists; none when there is none.
  [[nodiscard]] std::uint32_t find(ProcessId rank, ProcessId source, std::uint32_t tag);
  // The oldest kept message of a rank, or none.
  [[nodiscard]] std::uint32_t oldest_kept(ProcessId rank) const;

 private:
  struct Key {
    ProcessId rank;
    ProcessId source;
    std::uint32_t tag;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t z = (std::uint64_t{key.rank} << 32 | key.source) * 0x9e3779b97f4a7c15U + key.tag;
      z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93U;
      return z ^ (z >> 32);
    }
  };
  // One list through all nodes of a queue, and, for kept messages, one through all of a rank.
  struct Node {
    PostedReceive receive;  // of a kept message: rank, source and tag are the message's
    std::uint32_t message = none;
    std::uint64_t order = 0;
    std::uint32_t next = none;    // of the queue
    std::uint32_t before = none;  // kept: of the rank
    std::uint32_t after = none;
  };
  struct Queue {
    std::uint32_t first = none;
    std::uint32_t last = none;
  };
  struct Rank {
    Queue wildcards;  // posted, through `next`
    Queue kept;       // through `after`
  };
  using Table = std::unordered_map<Key, Queue, Hash>;  // looked up, never walked through

  std::uint32_t add(const Node& node);
  void append(Queue& queue, std::uint32_t node);
  std::uint32_t pop(Table& table, Table::iterator at);
  void take_from_rank(std::uint32_t node);
  [[nodiscard]] static bool fits(const PostedReceive& receive, ProcessId source, std::uint32_t tag);

  std::vector<Rank> ranks_;
  Table posted_;
  Table kept_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> free_;
  std::uint64_t next_order_ = 0;
};

}  // namespace apenet
