// MemoryOffers: the memory that ranks have offered to the senders of long messages, which put them there
// without a key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "message/wire.hpp"
#include "runtime/ipc/protocol.hpp"

namespace apenet {

// A receiver offers memory by the message `clear` of a rendezvous: to one sender, through one interface, for
// one message. The offer ends when as many bytes have been put as it has. It outlives its rank, whose sender
// cannot know that it has left.
class MemoryOffers {
 public:
  explicit MemoryOffers(std::uint32_t rank_count) : count_of_(rank_count) {}

  // Notes the offer, if the request sends one. Throws RankError if the rank has too many.
  void note(std::uint32_t rank, const ipc::Request& request);
  // Requires a put. Throws RankError if it has no key and does not lie in one piece of an offer that its
  // target has made to the rank; or if it has one, and announces to its target a part of a message.
  void check(std::uint32_t rank, const ipc::Request& request);

  [[nodiscard]] std::size_t size() const { return offers_.size(); }

  // Offers of one rank at a time.
  static constexpr std::uint32_t most_of_a_rank = 1U << 20U;

 private:
  struct MemoryOffer {
    std::uint32_t source = 0;  // who may put
    std::uint32_t segment_count = 0;
    std::uint32_t gpu_segments = 0;
    std::uint64_t bytes_left = 0;
    std::array<message::Segment, message::segment_limit> segments;
  };
  static bool holds(const MemoryOffer& offer, std::uint32_t source, const ipc::Request& request);

  // By receiver, interface and the receiver's number of the message; equal ones in the order of their coming.
  // A receiver that uses a number again has no sender refused.
  std::multimap<std::uint64_t, MemoryOffer> offers_;
  std::vector<std::uint32_t> count_of_;  // by rank
};

}  // namespace apenet
