// ContextCache: the queue pair contexts that are cached on a card.
#pragma once

#include <cstdint>
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
    const std::uint64_t use = ++state_.uses;
    const auto [found, is_new] = state_.last_use.try_emplace(key, use);
    if (is_new) {
      if (state_.last_use.size() > entries_) {
        const auto oldest = state_.by_use.begin();
        state_.last_use.erase(oldest->second);
        state_.by_use.erase(oldest);
      }
    } else {
      state_.by_use.erase(found->second);
      found->second = use;
    }
    state_.by_use.emplace(use, key);
    return !is_new;
  }

  struct State {
    std::uint64_t uses = 0;
    std::map<std::uint64_t, std::uint64_t> last_use;  // one for each context
    std::map<std::uint64_t, std::uint64_t> by_use;    // the contexts, the least recently used first
  };

 private:
  const std::size_t entries_;
  State state_;
};

}  // namespace apenet::hca
