#include "runtime/scripted/message_matching.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "kernel/random.hpp"

namespace apenet {
namespace {

// MPI's rules as they are written, with two lists.
struct PlainMatching {
  struct Kept {
    ProcessId source;
    std::uint32_t tag;
    std::uint32_t message;
  };
  static bool fits(ProcessId wanted_source, std::uint32_t wanted_tag, ProcessId source, std::uint32_t tag) {
    return (wanted_source == any_rank || wanted_source == source) &&
           (wanted_tag == any_tag || wanted_tag == tag);
  }
  std::uint32_t match(ProcessId source, std::uint32_t tag) {
    for (std::size_t i = 0; i < posted.size(); ++i) {
      if (!fits(posted[i].source, posted[i].tag, source, tag)) continue;
      const std::uint32_t operation = posted[i].operation;
      posted.erase(posted.begin() + static_cast<std::ptrdiff_t>(i));
      return operation;
    }
    return MessageMatching::none;
  }
  std::uint32_t find(ProcessId source, std::uint32_t tag) {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (!fits(source, tag, kept[i].source, kept[i].tag)) continue;
      const std::uint32_t message = kept[i].message;
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
      return message;
    }
    return MessageMatching::none;
  }
  std::vector<PostedReceive> posted;
  std::vector<Kept> kept;
};

TEST(MessageMatching, IsThatOfTwoPlainLists) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RandomStream random(seed, 0);
    MessageMatching matching(3);
    std::vector<PlainMatching> plain(3);
    std::uint32_t matched = 0;
    for (std::uint32_t i = 0; i < 2000; ++i) {
      const auto rank = static_cast<ProcessId>(random.below(3));
      const auto source = static_cast<ProcessId>(random.below(3));
      const auto tag = static_cast<std::uint32_t>(random.below(3));
      if (random.below(2) == 0) {
        const bool is_any_source = random.below(4) == 0;
        const bool is_any_tag = random.below(4) == 0;
        const PostedReceive receive{rank, is_any_source ? any_rank : source, is_any_tag ? any_tag : tag, i};
        const std::uint32_t found = matching.find(rank, receive.source, receive.tag);
        ASSERT_EQ(found, plain[rank].find(receive.source, receive.tag));
        if (found != MessageMatching::none) {
          ++matched;
        } else {
          matching.post(receive);
          plain[rank].posted.push_back(receive);
        }
      } else {
        PostedReceive receive;
        const bool is_wanted = matching.match(rank, source, tag, receive);
        ASSERT_EQ(is_wanted ? receive.operation : MessageMatching::none, plain[rank].match(source, tag));
        if (is_wanted) {
          ++matched;
        } else {
          matching.keep(rank, source, tag, i);
          plain[rank].kept.push_back({source, tag, i});
        }
      }
      ASSERT_EQ(matching.oldest_kept(rank),
                plain[rank].kept.empty() ? MessageMatching::none : plain[rank].kept.front().message);
    }
    EXPECT_GT(matched, 500U);
  }
}

}  // namespace
}  // namespace apenet
