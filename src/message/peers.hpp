// Peers: the ranks with which a process communicates, numbered in the order of first contact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "message/matching.hpp"

namespace apenet::message {

// The state towards one rank.
struct Conversation {
  std::uint32_t next_out = 0;
  std::uint32_t next_in = 0;
  std::uint32_t slots_kept = 0;  // slots of its arena that messages without a matching receive occupy
  List<KeptMessage, &KeptMessage::by_source> held;  // arrived before a predecessor
  KeptMessage* in_pieces = nullptr;                 // an eager message whose last pieces have not come
  std::size_t room_left = 0;                        // for these
};

// Open addressing from the rank to the number: a process of a large machine communicates with few ranks.
class Peers {
 public:
  Peers() : places_(8) {}

  [[nodiscard]] std::uint32_t number_of(std::uint32_t rank) {
    const NumberedRank& first = places_[home(rank)];
    return first.rank_plus_1 == rank + 1 ? first.number : find_or_add(rank);
  }
  [[nodiscard]] Conversation& operator[](std::uint32_t number) { return conversations_[number]; }

 private:
  struct NumberedRank {
    std::uint32_t rank_plus_1 = 0;  // 0: nobody
    std::uint32_t number = 0;
  };

  [[nodiscard]] std::size_t home(std::uint32_t rank) const { return rank & (places_.size() - 1); }
  // Not inlined, so that the caller's first comparison is.
  [[gnu::noinline]] std::uint32_t find_or_add(std::uint32_t rank) {
    std::size_t at = home(rank);
    while (places_[at].rank_plus_1 != 0) {
      if (places_[at].rank_plus_1 == rank + 1) return places_[at].number;
      at = (at + 1) & (places_.size() - 1);
    }
    return add(rank);
  }
  std::uint32_t add(std::uint32_t rank) {
    const auto number = static_cast<std::uint32_t>(conversations_.size());
    conversations_.emplace_back();
    if (conversations_.size() * 2 > places_.size()) {
      std::vector<NumberedRank> old(places_.size() * 2);
      old.swap(places_);
      for (const NumberedRank& place : old) {
        if (place.rank_plus_1 != 0) insert(place);
      }
    }
    insert({rank + 1, number});
    return number;
  }
  void insert(const NumberedRank& place) {
    std::size_t at = home(place.rank_plus_1 - 1);
    while (places_[at].rank_plus_1 != 0) at = (at + 1) & (places_.size() - 1);
    places_[at] = place;
  }

  std::vector<NumberedRank> places_;  // size: a power of two
  std::vector<Conversation> conversations_;
};

}  // namespace apenet::message
