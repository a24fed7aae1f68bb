#include <gtest/gtest.h>

#include <stdexcept>

#include "kernel/counters.hpp"
#include "kernel/simulation.hpp"
#include "kernel/trace.hpp"

namespace apenet {
namespace {

TEST(Counters, KeepTheOrderOfDefinition) {
  Counters counters;
  const Counters::Index zebra = counters.define("zebra");
  const Counters::Index ape = counters.define("ape");
  counters.add(ape);
  counters.add(zebra, 5);
  counters.add(ape);
  ASSERT_EQ(counters.all().size(), 2U);
  EXPECT_EQ(counters.all()[0].name, "zebra");
  EXPECT_EQ(counters.all()[0].value, 5U);
  EXPECT_EQ(counters.value(ape), 2U);
  EXPECT_THROW(counters.define("ape"), std::invalid_argument);
}

TEST(TraceHash, DependsOnTheOrderAndOnEveryField) {
  const TraceRecord one{Time::from_ns(1), Time::from_ns(7), EventKind::link, 2, 3, 8, 4, 5};
  const auto hash = [](const TraceRecord& first, const TraceRecord& second) {
    TraceHash trace;
    trace.record(first);
    trace.record(second);
    return trace.value();
  };
  TraceRecord other = one;
  other.b = 6;
  EXPECT_EQ(hash(one, other), hash(one, other));
  EXPECT_NE(hash(one, other), hash(other, one));
  other = one;
  other.what = 1;
  EXPECT_NE(hash(one, one), hash(one, other));
  other = one;
  other.kind = EventKind::nic;
  EXPECT_NE(hash(one, one), hash(one, other));
  other = one;
  other.time = Time::from_ns(2);
  EXPECT_NE(hash(one, one), hash(one, other));
  other = one;
  other.until = Time::from_ns(8);
  EXPECT_NE(hash(one, one), hash(one, other));
  other = one;
  other.other = 9;
  EXPECT_NE(hash(one, one), hash(one, other));
}

TEST(Simulation, RecordsOnlyWhenASinkIsAttached) {
  Simulation simulation;
  TraceHash trace;
  simulation.trace({});
  EXPECT_FALSE(simulation.is_traced());
  simulation.attach_trace(&trace);
  EXPECT_TRUE(simulation.is_traced());
  simulation.trace({});
  EXPECT_EQ(trace.count(), 1U);
}

}  // namespace
}  // namespace apenet
