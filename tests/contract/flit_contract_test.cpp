// The contract of the flit engine for any pipeline: stages of several cycles, slow links, packets larger than
// the buffers.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "contract/arrangements.hpp"
#include "contract/traffic.hpp"
#include "kernel/random.hpp"
#include "support/cases.hpp"

namespace apenet::testing {
namespace {

class FlitPipelineContract : public ::testing::TestWithParam<Arrangement> {};

// An event is a cycle in which something changes. Normal runs need far fewer than the limit, which detects a
// network that never becomes quiescent.
TEST_P(FlitPipelineContract, DeliversEveryPacketAndComesToRest) {
  constexpr std::uint64_t max_events = 300'000;
  for (std::uint64_t seed = 1; seed <= test::drawn_cases(40); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 24);
    NetworkParameters parameters = random_network(NetworkDescription::Engine::flit, GetParam(), random);
    draw_pipeline(parameters, random);
    Traffic traffic(parameters, Time::from_ps(static_cast<std::int64_t>(random.below(30'000))),
                    Time::from_ps(static_cast<std::int64_t>(random.below(30'000))));
    offer_random(traffic, parameters, random, 400);
    Simulation& simulation = traffic.simulation();
    while (simulation.event_count() < max_events && simulation.step()) {
    }
    ASSERT_LT(simulation.event_count(), max_events);
    traffic.expect_all_delivered();
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Arrangements, FlitPipelineContract, ::testing::ValuesIn(all_arrangements),
                         [](const ::testing::TestParamInfo<Arrangement>& which) {
                           return name_of(which.param);
                         });

}  // namespace
}  // namespace apenet::testing
