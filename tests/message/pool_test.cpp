#include "message/pool.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace apenet::message {
namespace {

struct Thing {
  std::uint32_t id = 0;
  int value = 0;
  Hook<Thing> hook;
  void reset() { value = 0; }
};

TEST(Pool, NumbersIdentifyOnlyItemsInUse) {
  Pool<Thing> pool;
  std::map<std::uint32_t, Thing*> live;
  std::set<std::uint32_t> dead;
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    if (live.size() < 200 && random() % 2 == 0) {
      Thing* thing = pool.take();
      EXPECT_EQ(thing->value, 0);
      thing->value = round;
      ASSERT_TRUE(live.emplace(thing->id, thing).second);
      dead.erase(thing->id);
    } else if (!live.empty()) {
      auto victim = live.begin();
      std::advance(victim, random() % live.size());
      dead.insert(victim->first);
      pool.give_back(victim->second);
      live.erase(victim);
    }
  }
  EXPECT_EQ(pool.used(), live.size());
  for (const auto& [id, thing] : live) EXPECT_EQ(pool.find(id), thing);
  for (const std::uint32_t id : dead) EXPECT_EQ(pool.find(id), nullptr);
  for (std::uint32_t id = 0; id < 2000; ++id) EXPECT_EQ(pool.find(id), nullptr);
}

TEST(List, KeepsOrderUnderRemoval) {
  using Things = List<Thing, &Thing::hook>;
  std::vector<Thing> storage(10);
  Things things;
  for (int i = 0; i < 10; ++i) {
    storage[static_cast<std::size_t>(i)].value = i;
    things.push_back(&storage[static_cast<std::size_t>(i)]);
  }
  for (const std::size_t gone : {0U, 9U, 5U, 4U}) things.remove(&storage[gone]);
  things.push_back(storage.data());
  std::vector<int> seen;
  for (Thing* thing = things.front(); thing != nullptr; thing = Things::next(thing))
    seen.push_back(thing->value);
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3, 6, 7, 8, 0}));
}

TEST(MessageMap, AgreesWithAMap) {
  MessageMap map;
  std::map<std::uint64_t, std::uint32_t> reference;
  std::mt19937_64 random(3);
  std::uint64_t next = 1;
  for (int round = 0; round < 50'000; ++round) {
    if (reference.size() < 600 && random() % 5 < 3) {
      next += 1 + random() % 300;  // gaps, because other libraries of the process use numbers too
      map.insert(next, static_cast<std::uint32_t>(round));
      reference[next] = static_cast<std::uint32_t>(round);
    } else if (!reference.empty()) {
      auto victim = reference.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random() % reference.size()));
      std::uint32_t value = 0;
      ASSERT_TRUE(map.take(victim->first, value));
      ASSERT_EQ(value, victim->second);
      ASSERT_FALSE(map.take(victim->first, value));
      reference.erase(victim);
    }
    ASSERT_EQ(map.size(), reference.size());
  }
}

}  // namespace
}  // namespace apenet::message
