#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <numeric>
#include <sstream>

#include "network/network_trace.hpp"
#include "network/topology/cube.hpp"
#include "runtime/observe/chrome_trace.hpp"
#include "runtime/observe/network_report.hpp"
#include "runtime/observe/process_trace.hpp"
#include "runtime/scripted/scripted_run.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

Time us(std::int64_t count) {
  return Time::from_ns(1000 * count);
}

TraceRecord at(NetworkTrace what, Time time, Time until, std::uint32_t place, std::uint32_t sequence) {
  return network_record(what, time, until, 0, place, 0, 7, sequence, 100);
}

// One packet from node 0 over links 0 and 1 to node 2.
void cross_two_links(NetworkReport& report, Time begin, std::uint32_t sequence) {
  report.record(at(NetworkTrace::injected, begin, {}, 0, sequence));
  report.record(at(NetworkTrace::crossed, begin + us(1), begin + us(3), 0, sequence));
  report.record(at(NetworkTrace::crossed, begin + us(5), begin + us(6), 1, sequence));
  report.record(at(NetworkTrace::ejected, begin + us(8), {}, 2, sequence));
  report.record(at(NetworkTrace::delivered, begin + us(9), {}, 2, sequence));
}

TEST(NetworkReport, CountsLinksQueuesAndLatenciesOfOnePacket) {
  NetworkReport report({"one", "two", "idle"});
  cross_two_links(report, us(0), 0);
  const NetworkHistory history = report.history();
  ASSERT_EQ(history.bin_ps, us(1).ps());
  ASSERT_EQ(history.links.size(), 2U);
  EXPECT_EQ(history.links[0].name, "one");
  EXPECT_EQ(history.links[0].busy_ps, (std::vector<std::int64_t>{0, us(1).ps(), us(1).ps(), 0, 0, 0}));
  EXPECT_EQ(history.links[1].busy_ps, (std::vector<std::int64_t>{0, 0, 0, 0, 0, us(1).ps()}));
  EXPECT_EQ(history.links[0].peak_queue_bytes, 100U);
  EXPECT_EQ(history.links[0].queue_byte_picoseconds, 100U * static_cast<std::uint64_t>(us(4).ps()));
  EXPECT_EQ(history.links[1].queue_byte_picoseconds, 100U * static_cast<std::uint64_t>(us(3).ps()));
  ASSERT_EQ(history.by_hops.size(), 1U);
  EXPECT_EQ(history.by_hops[0].hops, 2U);
  EXPECT_EQ(history.by_hops[0].packets, 1U);
  EXPECT_EQ(history.by_hops[0].least_ps, us(9).ps());
  EXPECT_EQ(history.by_hops[0].counts[HopLatency::bin_of(us(9).ps())], 1U);
}

TEST(NetworkReport, WidensItsBinsAndKeepsTheSum) {
  NetworkReport report({"one", "two"});
  for (std::uint32_t i = 0; i < 100; ++i) cross_two_links(report, us(37 * i), i);
  const NetworkHistory history = report.history();
  EXPECT_EQ(history.bin_ps, us(64).ps());
  const std::vector<std::int64_t>& busy = history.links[0].busy_ps;
  EXPECT_LE(busy.size(), NetworkReport::most_bins);
  EXPECT_EQ(std::accumulate(busy.begin(), busy.end(), std::int64_t{0}), us(200).ps());
  EXPECT_EQ(history.by_hops[0].packets, 100U);
}

TEST(NetworkReport, DiscardsWhatHappenedBeforeVirtualTime) {
  NetworkReport report({"one", "two"});
  cross_two_links(report, us(0), 0);
  report.record(at(NetworkTrace::injected, us(10), {}, 0, 1));
  report.record(at(NetworkTrace::crossed, us(11), us(12), 0, 1));
  report.begin(us(20));
  report.record(at(NetworkTrace::crossed, us(21), us(22), 1, 1));
  const NetworkHistory history = report.history();
  ASSERT_EQ(history.links.size(), 1U);
  EXPECT_EQ(history.links[0].name, "two");
  EXPECT_EQ(history.links[0].busy_ps, (std::vector<std::int64_t>{0, us(1).ps()}));
  EXPECT_TRUE(history.by_hops.empty());
}

TEST(HopLatency, BinsCoverEveryLatencyOnceAndGrowByAtMostAQuarter) {
  std::int64_t expected = 0;
  for (std::size_t bin = 0; bin + 1 < 150; ++bin) {
    const std::int64_t lower = HopLatency::lower_bound_ps(bin);
    const std::int64_t next = HopLatency::lower_bound_ps(bin + 1);
    ASSERT_EQ(lower, expected);
    ASSERT_LT(lower, next);
    ASSERT_EQ(HopLatency::bin_of(lower), bin);
    ASSERT_EQ(HopLatency::bin_of(next - 1), bin);
    if (lower >= 4) {
      ASSERT_LE(4 * (next - lower), lower);
    }
    expected = next;
  }
}

Script stream(ScriptedProcess& process, ProcessId target, int count) {
  for (int i = 0; i < count; ++i) process.send(target, 1000);
  co_return;
}

Script take(ScriptedProcess& process, int count) {
  for (int i = 0; i < count; ++i) co_await process.arrival();
}

// Two senders to one receiver on a ring.
void contend(ScriptedRun& run) {
  constexpr int count = 20;
  run.spawn(0, stream(run.process(0), 2, count));
  run.spawn(1, stream(run.process(1), 2, count));
  run.spawn(2, take(run.process(2), 2 * count));
  run.run();
}

MachineDescription ring() {
  MachineDescription machine = test::machine("apenet-2004");
  machine.network.topology = TorusDescription({8});
  machine.network.links.resize(1);
  return machine;
}

class ObservedEngine : public testing::TestWithParam<NetworkDescription::Engine> {};
INSTANTIATE_TEST_SUITE_P(Engines, ObservedEngine,
                         testing::Values(NetworkDescription::Engine::packet,
                                         NetworkDescription::Engine::flit));

TEST_P(ObservedEngine, AgreesWithTheStatisticsOfTheLinks) {
  MachineDescription machine = ring();
  machine.network.engine = GetParam();
  machine.network.pipeline.clock_hz = 100'000'000;
  ScriptedRun run(machine, {}, {0, 1, 2}, {.network_history = true, .trace_path = {}});
  contend(run);
  const NetworkHistory history = run.observation().network_history().value();
  std::size_t used = 0;
  std::uint64_t crossings = 0;
  for (const LinkUse& use : run.machine().link_use()) {
    if (use.packets == 0) continue;
    ASSERT_LT(used, history.links.size());
    const LinkHistory& link = history.links[used++];
    EXPECT_EQ(link.name, use.name);
    EXPECT_EQ(std::accumulate(link.busy_ps.begin(), link.busy_ps.end(), std::int64_t{0}), use.busy.ps());
    EXPECT_GT(link.peak_queue_bytes, 0U);
    crossings += use.packets;
  }
  EXPECT_EQ(used, history.links.size());
  std::uint64_t hops = 0;
  for (const HopLatency& entry : history.by_hops) {
    hops += entry.hops * entry.packets;
    EXPECT_EQ(std::accumulate(entry.counts.begin(), entry.counts.end(), std::uint64_t{0}), entry.packets);
  }
  EXPECT_EQ(hops, crossings);
}

TEST(Observation, ChangesNothing) {
  ScriptedRun plain(ring(), {}, {0, 1, 2});
  contend(plain);
  ScriptedRun observed(ring(), {}, {0, 1, 2}, {.network_history = true, .trace_path = {}});
  contend(observed);
  EXPECT_EQ(plain.process(2).clock(), observed.process(2).clock());
  EXPECT_FALSE(plain.observation().network_history().has_value());
}

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ChromeTrace, HoldsEveryMessageAndEveryCrossing) {
  const std::string path = testing::TempDir() + "apenet-observe-test.json";
  std::uint64_t crossings = 0;
  {
    ScriptedRun run(ring(), {}, {0, 1, 2}, {.network_history = false, .trace_path = path});
    contend(run);
    for (const LinkUse& use : run.machine().link_use()) crossings += use.packets;
    EXPECT_TRUE(run.observation().finish().empty());
  }
  const std::string text = contents(path);
  std::remove(path.c_str());
  EXPECT_EQ(count_of(text, "\"ph\": \"b\""), 40U);
  EXPECT_EQ(count_of(text, "\"ph\": \"e\""), 40U);
  EXPECT_EQ(count_of(text, "\"name\": \"packet\""), crossings);
  EXPECT_GT(count_of(text, "\"name\": \"wait\""), 0U);
  EXPECT_EQ(text.substr(text.size() - 3), "]}\n");
}

TEST(ChromeTrace, StopsAtItsLimitAndReportsIt) {
  const std::string path = testing::TempDir() + "apenet-observe-limit.json";
  constexpr std::uint64_t limit = 4000;
  {
    ChromeTrace trace(path, 1, {"one"}, limit);
    trace.begin(us(0));
    for (std::uint32_t i = 0; i < 1000; ++i) trace.record(at(NetworkTrace::crossed, us(i), us(i + 1), 0, i));
    EXPECT_GT(trace.dropped(), 900U);
  }
  const std::string text = contents(path);
  std::remove(path.c_str());
  EXPECT_LT(text.size(), limit + 1000);
  EXPECT_EQ(count_of(text, "events left out"), 1U);
}

TEST(ChromeTrace, ItsWarningDoesNotDependOnTheFileName) {
  std::vector<std::vector<std::string>> warnings;
  for (const std::string name : {"apenet-one.json", "apenet-another.json"}) {
    const std::string path = testing::TempDir() + name;
    {
      ScriptedRun run(ring(), {}, {0, 1, 2}, {.trace_path = path, .trace_limit_bytes = 4000});
      contend(run);
      warnings.push_back(run.observation().finish());
    }
    std::remove(path.c_str());
  }
  ASSERT_EQ(warnings[0].size(), 1U);
  EXPECT_EQ(warnings[0][0].substr(0, 19), "the trace is full: ");
  EXPECT_EQ(warnings[0], warnings[1]);
}

TEST(ChromeTrace, ReportsAFullDisk) {
  ScriptedRun run(ring(), {}, {0, 1, 2}, {.trace_path = "/dev/full"});
  contend(run);
  const std::vector<std::string> said = run.observation().finish();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].substr(0, 24), "the trace is incomplete:");
}

TEST(ChromeTrace, RefusesAFileThatCannotBeWritten) {
  EXPECT_THROW(ChromeTrace("/nowhere/trace.json", 1, {}), std::invalid_argument);
}

}  // namespace
}  // namespace apenet
