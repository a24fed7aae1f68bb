// Memory for large machines: elements never move.
#include "kernel/large_array.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace apenet {
namespace {

TEST(GrowingArray, KeepsEveryItemInItsPlace) {
  GrowingArray<std::uint32_t> array;
  std::vector<const std::uint32_t*> places;
  constexpr std::uint32_t count = 5000;
  for (std::uint32_t i = 0; i < count; ++i) {
    EXPECT_EQ(array.add(3 * i), i);
    places.push_back(&array[i]);
  }
  EXPECT_EQ(array.size(), count);
  for (std::uint32_t i = 0; i < count; ++i) {
    EXPECT_EQ(array[i], 3 * i);
    EXPECT_EQ(&array[i], places[i]);
  }
}

TEST(LargeObjects, ConstructsEachObjectInPlaceAndDestroysIt) {
  struct Object {
    Object(int number_, int& living_) : number(number_), living(living_) { ++living; }
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    ~Object() { --living; }
    int number;
    int& living;
  };
  int living = 0;
  {
    constexpr int room = 100;
    LargeObjects<Object> objects(room);
    for (int i = 0; i < room - 1; ++i) {
      EXPECT_EQ(&objects.emplace_back(i, living), &objects[static_cast<std::size_t>(i)]);
    }
    EXPECT_EQ(living, room - 1);
    EXPECT_EQ(objects[7].number, 7);
  }
  EXPECT_EQ(living, 0);
}

}  // namespace
}  // namespace apenet
