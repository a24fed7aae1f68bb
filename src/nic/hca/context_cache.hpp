// ContextCache: the queue pair contexts that are cached on a card.
#pragma once

#include <cstdint>
#include <list>
#include <map>

#include "nic/hca/connection.hpp"

namespace apenet::hca {

// Fully associative, with least-recently-used replacement. A queue pair is one end of a connection. With zero
// entries the capacity is unlimited and no access misses.
class ContextCache {
 public:
  explicit ContextCache(std::int64_t entries) : entries_(static_cast<std::size_t>(entries)) {}

  // Uses the context. Returns false on a miss.
  bool use(ConnectionId connection, bool at_source) {
    if (entries_ == 0) return true;
    const std::uint64_t key = std::uint64_t{connection} << 1U | (at_source ? 1U : 0U);
    const auto found = where_.find(key);
    if (found != where_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return true;
    }
    if (recent_.size() == entries_) {
      where_.erase(recent_.back());
      recent_.pop_back();
    }
    recent_.push_front(key);
    where_.emplace(key, recent_.begin());
    return false;
  }

 private:
  std::size_t entries_;
  std::list<std::uint64_t> recent_;
  std::map<std::uint64_t, std::list<std::uint64_t>::iterator> where_;
};

}  // namespace apenet::hca
