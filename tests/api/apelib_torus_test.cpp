// The torus of apelib's ranks: its shape from the environment, from the machine or from their number.
#include "api/apelib/torus.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <tuple>

#include "api/apelib/error.hpp"

namespace apenet::test {
namespace {

using apelib::Coordinates;
using apelib::Torus;

std::uint32_t places(const Torus& torus) {
  return std::accumulate(torus.extents().begin(), torus.extents().end(), 1U, std::multiplies<>());
}

void expect_consistent(const Torus& torus, std::uint32_t ranks) {
  ASSERT_EQ(places(torus), ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    ASSERT_EQ(torus.rank_at(torus.coordinates(rank)), rank);
    for (std::uint32_t direction = 0; direction < 2 * torus.dimensions(); ++direction) {
      const std::uint32_t there = torus.neighbor(rank, direction);
      ASSERT_EQ(torus.neighbor(there, direction ^ 1U), rank);
    }
  }
}

TEST(ApelibTorus, IsBalancedForAnyNumberOfRanks) {
  for (std::uint32_t ranks = 1; ranks <= 300; ++ranks) {
    const Torus torus = apelib::balanced_torus(ranks);
    expect_consistent(torus, ranks);
    EXPECT_EQ(torus.dimensions(), 3U);
    EXPECT_GE(torus.extents()[0], torus.extents()[1]);
    EXPECT_GE(torus.extents()[1], torus.extents()[2]);
  }
  EXPECT_EQ(apelib::balanced_torus(64).extents(), (Coordinates{4, 4, 4, 1, 1, 1}));
  EXPECT_EQ(apelib::balanced_torus(7).extents(), (Coordinates{7, 1, 1, 1, 1, 1}));
}

TEST(ApelibTorus, HasTheShapeThatIsAskedFor) {
  const Torus torus = apelib::torus_of("2x1x3x2x1x2", 24);
  EXPECT_EQ(torus.dimensions(), 6U);
  expect_consistent(torus, 24);
  EXPECT_EQ(apelib::torus_of("5", 5).dimensions(), 3U);
  for (const char* wrong :
       {"", "x", "4x", "x4", "2x2", "4x0", "-4", "4 ", "2x2x1x1x1x1x1", "4294967297x4", "4X1"})
    EXPECT_THROW(std::ignore = apelib::torus_of(wrong, 24), apelib::Error) << wrong;
}

TEST(ApelibTorus, IsTheBoxThatTheRanksFill) {
  constexpr std::array<std::uint32_t, 3> grid{4, 3, 2};
  // Nodes (1..2, 1..2, 0..1), not in the order of their numbers.
  constexpr std::array<std::uint32_t, 8> nodes{18, 5, 6, 17, 9, 10, 22, 21};
  const std::optional<Torus> torus = apelib::torus_of_nodes(grid, nodes);
  ASSERT_TRUE(torus.has_value());
  EXPECT_EQ(torus->extents(), (Coordinates{2, 2, 2, 1, 1, 1}));
  expect_consistent(*torus, 8);
  EXPECT_EQ(torus->coordinates(1), Coordinates{});
  EXPECT_EQ(torus->neighbor(1, APE_PLUS_X), 2U);
  EXPECT_EQ(torus->neighbor(1, APE_PLUS_Z), 3U);
}

TEST(ApelibTorus, IsNotThatOfTheMachineIfTheRanksFillNoBox) {
  constexpr std::array<std::uint32_t, 3> grid{4, 3, 2};
  EXPECT_FALSE(apelib::torus_of_nodes(grid, std::array{0U, 1U, 2U, 4U}).has_value());
  EXPECT_FALSE(apelib::torus_of_nodes(grid, std::array{0U, 1U, 0U, 1U}).has_value());
  EXPECT_FALSE(apelib::torus_of_nodes({}, std::array{0U}).has_value());
}

}  // namespace
}  // namespace apenet::test
