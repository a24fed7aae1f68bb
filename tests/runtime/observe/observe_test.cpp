#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <numeric>
#include <sstream>

#include "network/network_trace.hpp"
#include "network/topology/cube.hpp"
#include "nic/messages.hpp"
#include "runtime/observe/chrome_trace.hpp"
#include "runtime/observe/network_report.hpp"
#include "runtime/observe/process_trace.hpp"
#include "runtime/scripted/card_run.hpp"
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

Script stream(CardProcess& process, ProcessId target, int count) {
  for (int i = 0; i < count; ++i) process.send(target, 1000);
  co_return;
}

Script take(CardProcess& process, int count) {
  for (int i = 0; i < count; ++i) co_await process.arrival();
}

// Two senders to one receiver on a ring.
void contend(CardRun& run) {
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
  CardRun run(machine, {}, {0, 1, 2}, {.network_history = true, .trace_path = {}});
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
  CardRun plain(ring(), {}, {0, 1, 2});
  contend(plain);
  CardRun observed(ring(), {}, {0, 1, 2}, {.network_history = true, .trace_path = {}});
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

// The sum of the numbers behind each `key` of a text.
std::uint64_t sum_of(const std::string& text, const std::string& key) {
  std::uint64_t sum = 0;
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1))
    sum += std::stoull(text.substr(at + key.size()));
  return sum;
}

// What a trace of these records holds; call 1 is MPI_Recv, on one node a process.
template <typename Records>
std::string trace_of(const Records& records, TraceFilter filter = {}, std::uint32_t processes = 3) {
  const std::string path = testing::TempDir() + "apenet-observe-own.json";
  std::vector<std::uint32_t> nodes(processes);
  std::iota(nodes.begin(), nodes.end(), 0);
  {
    ChromeTrace trace(path, nodes, {"one", "two"},
                      {.filter = std::move(filter), .call_names = {"", "MPI_Recv"}});
    trace.begin(us(0));
    records(trace);
    EXPECT_TRUE(trace.finish());
  }
  std::string text = contents(path);
  std::remove(path.c_str());
  return text;
}

TraceRecord landed(Time from, Time until, std::uint32_t source, std::uint32_t target, std::uint64_t bytes) {
  return {.time = from,
          .until = until,
          .kind = EventKind::nic,
          .what = static_cast<std::uint16_t>(CardTrace::landed),
          .place = source,
          .other = target,
          .b = bytes << 2U | static_cast<std::uint64_t>(Verb::send)};
}

TEST(ChromeTrace, HoldsEveryMessageAndEveryCrossing) {
  const std::string path = testing::TempDir() + "apenet-observe-test.json";
  std::uint64_t crossings = 0;
  {
    CardRun run(ring(), {}, {0, 1, 2}, {.network_history = false, .trace_path = path});
    contend(run);
    for (const LinkUse& use : run.machine().link_use()) crossings += use.packets;
    EXPECT_TRUE(run.observation().finish().empty());
  }
  const std::string text = contents(path);
  std::remove(path.c_str());
  EXPECT_EQ(count_of(text, "\"name\":\"send to 2\""), 40U);
  EXPECT_EQ(sum_of(text, "{\"packets\":"), crossings);
  EXPECT_LT(count_of(text, "{\"packets\":"), crossings);
  EXPECT_GT(count_of(text, "\"name\":\"wait\""), 0U);
  EXPECT_EQ(text.substr(text.size() - 3), "]}\n");
}

TEST(ChromeTrace, JoinsPacketsOfOneMessageThatFollowEachOther) {
  const std::string text = trace_of([](ChromeTrace& trace) {
    // Two packets, a pause of four packets' time, and one more; then a longer pause.
    for (const int begin : {0, 1, 6}) trace.record(at(NetworkTrace::crossed, us(begin), us(begin + 1), 0, 0));
    trace.record(at(NetworkTrace::crossed, us(12), us(13), 0, 0));
    // Another message comes between, and on another link nothing does.
    for (const std::uint64_t message : {1U, 2U, 1U}) {
      TraceRecord packet = at(NetworkTrace::crossed, us(20), us(21), 0, 0);
      packet.a = message;
      trace.record(packet);
      packet.a = 5;
      packet.place = 1;
      trace.record(packet);
    }
  });
  EXPECT_EQ(count_of(text, "\"ts\":0.000000,\"dur\":7.000000"), 1U);
  EXPECT_EQ(count_of(text, "\"packets\":3,\"from node\":0,\"wire bytes\":300,\"busy us\":3.000000"), 2U);
  EXPECT_EQ(count_of(text, "{\"packets\":1,"), 4U);
}

TEST(ChromeTrace, LeadsFromAMessageToTheWaitThatItEnded) {
  const std::string text = trace_of([](ChromeTrace& trace) {
    trace.record(landed(us(3), us(8), 1, 0, 1000));
    trace.record(landed(us(4), us(8), 2, 0, 2000));
    trace.record(process_record(ProcessTrace::waited, us(2), us(8), 0, 1));
    trace.record(process_record(ProcessTrace::waited, us(9), us(10), 0, 7));
  });
  EXPECT_EQ(count_of(text,
                     "\"dur\":6.000000,\"cat\":\"wait\",\"name\":\"MPI_Recv\",\"args\":{\"ended by "
                     "rank\":1,\"bytes\":1000}"),
            1U);
  EXPECT_EQ(count_of(text, "\"name\":\"wait\"}"), 1U);
  EXPECT_EQ(count_of(text, "\"ph\":\"s\""), 1U);
  EXPECT_EQ(count_of(text, "\"pid\":2,\"tid\":1,\"ts\":3.000000}"), 1U);
  EXPECT_EQ(count_of(text, "\"pid\":1,\"tid\":0,\"ts\":7.999000}"), 1U);
}

TEST(ChromeTrace, PutsMessagesThatOverlapOnTracksOfTheirOwn) {
  const std::string text = trace_of([](ChromeTrace& trace) {
    trace.record(landed(us(0), us(4), 1, 0, 1));
    trace.record(landed(us(2), us(5), 1, 0, 1));
    trace.record(landed(us(4), us(6), 1, 0, 1));
  });
  EXPECT_EQ(count_of(text, "\"pid\":2,\"tid\":1,\"ts\""), 2U);
  EXPECT_EQ(count_of(text, "\"pid\":2,\"tid\":4,\"ts\":2.000000"), 1U);
  EXPECT_EQ(count_of(text, "from rank 1 (2)"), 1U);
}

TEST(ChromeTrace, LeavesOutWhatItsFilterDoesNotWant) {
  const auto records = [](ChromeTrace& trace) {
    trace.record(landed(us(0), us(2), 0, 1, 10));
    trace.record(landed(us(3), us(5), 1, 2, 1000));
    trace.record(landed(us(6), us(9), 2, 0, 20));
    for (std::uint32_t process = 0; process < 3; ++process)
      trace.record(process_record(ProcessTrace::waited, us(4 * process), us(4 * process + 1), process, 1));
    trace.record(at(NetworkTrace::crossed, us(1), us(2), 0, 0));
  };
  const auto messages = [](const std::string& text) { return count_of(text, "\"bytes\":"); };
  const auto waits = [](const std::string& text) { return count_of(text, "\"MPI_Recv\""); };
  const std::string all = trace_of(records);
  EXPECT_EQ(messages(all), 3U);
  EXPECT_EQ(waits(all), 3U);
  EXPECT_EQ(sum_of(all, "{\"packets\":"), 1U);
  const std::string of_rank_1 = trace_of(records, {.ranks = {false, true}});
  EXPECT_EQ(messages(of_rank_1), 2U);
  EXPECT_EQ(waits(of_rank_1), 1U);
  EXPECT_EQ(sum_of(of_rank_1, "{\"packets\":"), 0U);
  const std::string large = trace_of(records, {.least_bytes = 20});
  EXPECT_EQ(messages(large), 2U);
  EXPECT_EQ(waits(large), 3U);
  const std::string late = trace_of(records, {.from = us(5), .to = us(7)});
  EXPECT_EQ(messages(late), 2U);
  EXPECT_EQ(waits(late), 1U);
  EXPECT_EQ(sum_of(late, "{\"packets\":"), 0U);
}

TEST(ChromeTrace, StopsAtItsLimitAndReportsIt) {
  const std::string path = testing::TempDir() + "apenet-observe-limit.json";
  constexpr std::uint64_t limit = 4000;
  {
    ChromeTrace trace(path, {0}, {"one"}, {.limit_bytes = limit});
    trace.begin(us(0));
    for (std::uint32_t i = 0; i < 1000; ++i) {
      TraceRecord packet = at(NetworkTrace::crossed, us(i), us(i + 1), 0, i);
      packet.a = i;
      trace.record(packet);
    }
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
      CardRun run(ring(), {}, {0, 1, 2}, {.trace_path = path, .trace = {.limit_bytes = 4000}});
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
  CardRun run(ring(), {}, {0, 1, 2}, {.trace_path = "/dev/full"});
  contend(run);
  const std::vector<std::string> said = run.observation().finish();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].substr(0, 24), "the trace is incomplete:");
}

TEST(ChromeTrace, RefusesAFileThatCannotBeWritten) {
  EXPECT_THROW(ChromeTrace("/nowhere/trace.json", {0}, {}, {}), std::invalid_argument);
}

}  // namespace
}  // namespace apenet
