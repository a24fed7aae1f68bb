// The queue in lockstep with the reference, for all patterns of delays that could break it.
#include "kernel/event_queue.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include "kernel/random.hpp"
#include "reference_event_queue.hpp"

namespace apenet {
namespace {

// The fast queue and the reference, in lockstep.
class QueuePair {
 public:
  void push(std::uint64_t time_ps, std::uint64_t order) {
    ++pushed_;
    queue_.push(time_ps, order, nullptr, pushed_, 0);
    reference_.push(time_ps, order, nullptr, pushed_, 0);
  }

  // Pops from both queues and compares the events. Returns the time.
  std::uint64_t pop() {
    EXPECT_EQ(queue_.next_time_ps(), reference_.next_time_ps());
    const Event event = queue_.pop();
    const Event expected = reference_.pop();
    EXPECT_EQ(event.time_ps, expected.time_ps);
    EXPECT_EQ(event.order, expected.order);
    EXPECT_EQ(event.argument_a, expected.argument_a);
    EXPECT_EQ(queue_.size(), reference_.size());
    return expected.time_ps;
  }

  [[nodiscard]] bool empty() const { return reference_.empty(); }

 private:
  EventQueue queue_;
  ReferenceEventQueue reference_;
  std::uint64_t pushed_ = 0;
};

using Delay = std::function<std::uint64_t(RandomStream&)>;

void compare(const char* name, int initial, int steps, const Delay& delay) {
  SCOPED_TRACE(name);
  RandomStream random(1, 0);
  QueuePair pair;
  std::uint64_t order = 0;
  const auto next_order = [&] {
    return PackedOrder::pack(EventKind::link, static_cast<std::uint32_t>(random.below(9)), order++);
  };
  for (int i = 0; i < initial; ++i) pair.push(delay(random), next_order());
  for (int i = 0; i < steps && !pair.empty(); ++i) {
    const std::uint64_t now = pair.pop();
    const std::uint64_t children = random.below(3);
    for (std::uint64_t child = 0; child < children; ++child) pair.push(now + delay(random), next_order());
    if (pair.empty()) pair.push(now + delay(random), next_order());
    if (::testing::Test::HasFailure()) return;
  }
  while (!pair.empty()) pair.pop();
}

TEST(EventQueue, PopsInTheOrderOfASortedSet) {
  for (const int initial : {1, 3, 100, 5000}) {
    compare("all at one time", initial, 3000, [](RandomStream&) { return 0U; });
    compare("few times", initial, 20000, [](RandomStream& random) { return random.below(3) * 1000; });
    compare("dense", initial, 20000, [](RandomStream& random) { return random.below(100); });
    compare("a microsecond", initial, 20000, [](RandomStream& random) { return random.below(1'000'000); });
    compare("a microsecond, none soon", initial, 20000,
            [](RandomStream& random) { return 100'000 + random.below(1'000'000); });
    compare("seconds, none soon", initial, 20000,
            [](RandomStream& random) { return 1'000'000'000'000 + random.below(8'000'000'000'000); });
    compare("seconds, in bunches", initial, 20000, [](RandomStream& random) {
      return 1'000'000'000'000 + random.below(100) * 80'000'000'000 + random.below(1000);
    });
    compare("in bunches, none soon", initial, 20000,
            [](RandomStream& random) { return 100'000 + random.below(20) * 40'000 + random.below(4); });
    compare("sparse", initial, 20000,
            [](RandomStream& random) { return random.below(std::uint64_t{1} << 45U); });
    compare("every magnitude", initial, 20000,
            [](RandomStream& random) { return random.next() >> (20 + random.below(44)); });
    compare("mostly now, sometimes far", initial, 20000, [](RandomStream& random) {
      return random.below(1000) == 0 ? std::uint64_t{1'000'000'000'000} : random.below(50);
    });
  }
}

// Components that act at the same times, and schedule in any order of their sources.
TEST(EventQueue, SimultaneousComponentsRunInTheOrderOfTheirSources) {
  QueuePair pair;
  RandomStream random(4, 0);
  constexpr std::uint64_t sources = std::uint64_t{1} << PackedOrder::source_bits;
  constexpr std::uint64_t period_ps = 1'000'003;
  const auto next_order = [&](std::uint64_t step) {
    const auto kind = static_cast<EventKind>(random.below(7));
    return PackedOrder::pack(kind, static_cast<std::uint32_t>(random.below(sources)), step);
  };
  for (int i = 0; i < 2000; ++i) pair.push(period_ps, next_order(0));
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const std::uint64_t now = pair.pop();
    pair.push(now + period_ps, next_order(i));
  }
  while (!pair.empty()) pair.pop();
}

// One timer far ahead widens the sorted part. Events pushed before it must not accumulate there
// (narrow_near).
TEST(EventQueue, LoneTimerFarAheadKeepsTheOrder) {
  QueuePair pair;
  std::uint64_t order = 0;
  pair.push(0, order++);
  pair.push(1'000'000'000'000, order++);
  std::uint64_t now = pair.pop();
  RandomStream random(2, 0);
  for (int i = 0; i < 1000; ++i) pair.push(now + random.below(1'000'000), order++);
  for (int i = 0; i < 20000; ++i) {
    now = pair.pop();
    pair.push(now + random.below(1'000'000), order++);
  }
  while (!pair.empty()) pair.pop();
}

// The sorted part has passed a boundary of a high digit, and many events before it are still pushed: the
// wheel must go back over the boundary (narrow_near).
TEST(EventQueue, GoesBackOverABoundary) {
  for (const int bits : {8, 16, 24, 32}) {
    QueuePair pair;
    std::uint64_t order = 0;
    RandomStream random(3, static_cast<std::uint64_t>(bits));
    const std::uint64_t boundary = std::uint64_t{1} << bits;
    pair.push(boundary - 200, order++);
    for (int i = 0; i < 40; ++i) pair.push(boundary + random.below(boundary), order++);
    pair.pop();
    for (int i = 0; i < 300; ++i) pair.push(boundary - 150 + random.below(100), order++);
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t now = pair.pop();
      pair.push(now + random.below(300), order++);
      pair.push(now + random.below(boundary), order++);
    }
    while (!pair.empty()) pair.pop();
  }
}

// Few events are kept without the wheel: the number of them rises and falls across both limits, also within
// the handling of one event, and over more events than the sorted part has room for.
TEST(EventQueue, FewEventsBecomeManyAndFewAgain) {
  QueuePair pair;
  RandomStream random(5, 0);
  std::uint64_t order = 0;
  std::uint64_t pending = 1;
  pair.push(0, order++);
  for (int turn = 0; turn < 300; ++turn) {
    const std::uint64_t most = 1 + random.below(70);
    const std::uint64_t least = 1 + random.below(most);
    const std::uint64_t span_ps = std::uint64_t{1} << random.below(40);
    while (pending > least) {
      pair.pop();
      --pending;
    }
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t now = pair.pop();
      for (; pending <= most && random.below(3) > 0; ++pending)
        pair.push(now + random.below(span_ps), order++);
      pair.push(now + random.below(span_ps), order++);
    }
  }
  while (!pair.empty()) pair.pop();
}

TEST(EventQueue, TimesUpToTheEndOfInt64) {
  QueuePair pair;
  constexpr std::uint64_t end = (std::uint64_t{1} << 63U) - 2;
  for (std::uint64_t i = 0; i < 100; ++i) pair.push(end - i * (end / 100), i);
  while (!pair.empty()) pair.pop();
}

TEST(PackedOrder, KeepsItsPartsAndTheirRank) {
  const std::uint64_t word = PackedOrder::pack(EventKind::process, 12345, 678'901'234'567 % (1ULL << 36U));
  EXPECT_EQ(PackedOrder::kind(word), EventKind::process);
  EXPECT_EQ(PackedOrder::source(word), 12345U);
  EXPECT_EQ(PackedOrder::counter(word), 678'901'234'567 % (1ULL << 36U));
  EXPECT_LT(PackedOrder::pack(EventKind::credit, 9, 9), PackedOrder::pack(EventKind::link, 0, 0));
  EXPECT_LT(PackedOrder::pack(EventKind::link, 1, 9), PackedOrder::pack(EventKind::link, 2, 0));
}

}  // namespace
}  // namespace apenet
