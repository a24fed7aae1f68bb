// The states of all components: no field can change without the comparison of two states noticing it.
#include <gtest/gtest.h>

#include "host/bus.hpp"
#include "host/gpu_memory.hpp"
#include "host/memory_copy.hpp"
#include "kernel/state.hpp"
#include "network/faults/faulty_network.hpp"
#include "network/flit/engine.hpp"
#include "network/flit/router_bank.hpp"
#include "network/packet/engine.hpp"
#include "network/routing/resequencer.hpp"
#include "nic/apelink/transmitter.hpp"
#include "nic/apelink_plus/nic.hpp"
#include "nic/engine_use.hpp"
#include "nic/extoll/nic.hpp"
#include "nic/hca/nic.hpp"
#include "nic/ideal/nic.hpp"
#include "nic/interrupts.hpp"
#include "nic/messages.hpp"
#include "nic/tnw/nic.hpp"
#include "support/state_changes.hpp"

namespace apenet {

template <>
inline constexpr bool test::is_packed<FlitLength> = true;

namespace {

template <typename State>
class AState : public testing::Test {};

using States = testing::Types<
    EventQueue::State, Simulation::State, Buses::State, Bus::State, GpuMemory::State, MemoryCopy::State,
    MessageTable::State, Interrupts::State, apelink::Cards::State, apelink::Card::State,
    apelink::Transmitter::State, apelink::Queue, apelink_plus::Cards::State, apelink_plus::Receiver::State,
    apelink_plus::Tlb::State, ideal::Nic::State, extoll::Cards::State, extoll::Card::State,
    extoll::RmaUnit::State, extoll::Completer::State, extoll::Velo::State, hca::Cards::State,
    hca::Card::State, hca::ConnectionTable::State, hca::ContextCache::State, hca::Transmitter::State,
    hca::Requester::State, hca::Responder::State, hca::Nic::State, tnw::Card::State, tnw::Transmitter::State,
    tnw::Receiver::State, tnw::CpuLinks::State, tnw::Forwarder::State, PacketEngine::State::Control,
    packet::Queue, packet::Output::State, packet::WaitingQueues::State, packet::CreditReturns::State,
    FlitEngine::State, FlitFabric::State, DelayLine<FlitArrival>::State, FlitRouterPort::State,
    FlitRouterBank::State, FlitSources::State, FlitSources::Port::State, FlitSinks::State,
    FlitSinks::Port::State, FlitRetries::State, BitErrors::State, FaultyNetwork::State,
    Resequencer::Port::State>;
TYPED_TEST_SUITE(AState, States);

constexpr Moment at{Time::from_ps(500'000'000)};

TYPED_TEST(AState, DiffersByEachOfItsFields) {
  TypeParam state{};
  test::fill(state);
  const TypeParam before = state;
  EXPECT_TRUE(equal_up_to_shift(state, at, before, at));
  int changes = 0;
  int seen = 0;
  test::change_each(state, [&](test::Seen expected) {
    const bool is_equal = equal_up_to_shift(state, at, before, at);
    ++changes;
    if (!is_equal) ++seen;
    if (expected == test::Seen::perhaps) return;
    EXPECT_EQ(is_equal, expected == test::Seen::never) << "change " << changes;
  });
  EXPECT_GT(seen, 0) << "of " << changes;
  EXPECT_TRUE(equal_up_to_shift(state, at, before, at)) << "all changes are taken back";
}

template <typename Counters>
class TheCounters : public testing::Test {};

using AllCounters = testing::Types<Simulation::Counters, Bus::Counters, Buses::Counters, GpuKind::Counters,
                                   MemoryCopy::Counters, EngineUse, apelink::Counters, apelink_plus::Counters,
                                   extoll::Counters, hca::Counters, tnw::Counters, PacketEngine::Counters,
                                   packet::Output::Counters, packet::Stage::Counters, FlitLinkUse,
                                   BitErrors::Counters, FaultyNetwork::Counters>;
TYPED_TEST_SUITE(TheCounters, AllCounters);

TYPED_TEST(TheCounters, GrowByEachOfTheirFields) {
  const TypeParam before{};
  TypeParam after{};
  test::change_each(after, [&](test::Seen) {
    TypeParam counters{};
    add_difference(counters, before, after);
    EXPECT_FALSE(equal_up_to_shift(counters, {}, before, {}));
    EXPECT_TRUE(equal_up_to_shift(counters, {}, after, {}));
  });
}

// The time of a field is compared by its distance.
struct Sample {
  Time time;
  std::uint32_t turn = 0;
  Numbering<std::uint32_t> number;
};

constexpr Time ps(std::int64_t count) {
  return Time::from_ps(count);
}

TEST(States, AreEqualUpToAShiftInTime) {
  const Sample left{.time = ps(130), .turn = 2, .number = {7}};
  EXPECT_TRUE(equal_up_to_shift(left, {ps(100)}, Sample{ps(1030), 2, {9}}, {ps(1000)}));
  EXPECT_FALSE(equal_up_to_shift(left, {ps(100)}, Sample{ps(1031), 2, {9}}, {ps(1000)}));
  EXPECT_FALSE(equal_up_to_shift(left, {ps(100)}, Sample{ps(1030), 3, {9}}, {ps(1000)}));
  EXPECT_FALSE(equal_up_to_shift(left, {ps(100)}, Sample{Time::never(), 2, {9}}, {ps(1000)}));
}

TEST(States, ForgetTimesThatArePast) {
  const Sample left{.time = ps(90), .turn = 2, .number = {}};
  const Sample right{.time = ps(1000), .turn = 2, .number = {}};
  EXPECT_TRUE(equal_up_to_shift(left, {ps(100)}, right, {ps(1000)}));
  EXPECT_FALSE(equal_up_to_shift(left, {ps(100), ps(10)}, right, {ps(1000), ps(10)}));
  EXPECT_TRUE(equal_up_to_shift(left, {ps(100), ps(10)}, right, {ps(1010), ps(10)}));
  EXPECT_TRUE(is_quiescent_state(left, {ps(100), ps(10)}));
  EXPECT_FALSE(is_quiescent_state(left, {ps(99), ps(10)}));
}

TEST(StateLists, CompareCopyAndRepeat) {
  struct Counted {
    std::uint64_t packets = 0;
    Time busy;
  };
  Sample state{.time = ps(5), .turn = 1, .number = {}};
  Counted counted{10, ps(100)};
  StateList list;
  list.state(state);
  list.counters(counted);
  const StateList::Checkpoint before = list.checkpoint(ps(50));
  state = {.time = ps(60), .turn = 2, .number = {3}};
  counted = {13, ps(140)};
  const StateList::Checkpoint after = list.checkpoint(ps(60));
  EXPECT_FALSE(list.equals(before, ps(60)));
  EXPECT_TRUE(list.equals(after, ps(70)));
  list.restore(before);
  EXPECT_EQ(state.turn, 1U);
  EXPECT_EQ(counted.packets, 10U);
  counted.packets = 20;
  EXPECT_TRUE(list.equals(before, ps(80))) << "counters do not count";
  list.repeat(before, after);
  EXPECT_EQ(state.turn, 2U);
  EXPECT_EQ(counted.packets, 23U);
  EXPECT_EQ(counted.busy, ps(140));
}

static_assert(field_count<Sample> == 3);
static_assert(field_count<Bus::State> == 7);

}  // namespace
}  // namespace apenet
