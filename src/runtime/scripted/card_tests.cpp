#include "runtime/scripted/card_tests.hpp"

#include <algorithm>
#include <string>

#include "kernel/refuse.hpp"
#include "runtime/scripted/card_run.hpp"
#include "runtime/scripted/card_test_scripts.hpp"

namespace apenet {

namespace {

bool is_stream(CardTest test) {
  return test == CardTest::oneway || test == CardTest::unidirectional || test == CardTest::flush;
}

// Enough messages for the start and end of a stream to be negligible. In the other tests all rounds are
// alike.
std::uint32_t iterations_of(CardTest test, std::int64_t bytes) {
  constexpr std::uint32_t few = 20;
  constexpr std::uint32_t many = 100;
  constexpr std::uint32_t puts = 2000;
  constexpr std::int64_t small_bytes = 8192;
  if (test == CardTest::rate) return puts;
  return is_stream(test) && bytes <= small_bytes ? many : few;
}

std::uint32_t window_of(CardTest test) {
  if (test == CardTest::unidirectional) return 16;
  if (test == CardTest::rate) return 64;
  return is_stream(test) ? 0 : 1;
}

Time measure(CardRun& run, CardTest test, const Exchange& exchange, const Rounds& rounds, bool until_landed) {
  CardProcess& one = run.process(first_process);
  CardProcess& two = run.process(second_process);
  Clocks clocks;
  Clocks other;
  switch (test) {
    case CardTest::pingpong:
    case CardTest::roundtrip:
      run.spawn(first_process, ping(one, exchange, rounds, &clocks));
      run.spawn(second_process, pong(two, exchange, rounds));
      break;
    case CardTest::oneway:
    case CardTest::unidirectional:
    case CardTest::flush: {
      const StreamEnd streamed = until_landed ? StreamEnd::landed : StreamEnd::reply;
      const StreamEnd end = test == CardTest::flush ? StreamEnd::sent : streamed;
      run.spawn(first_process, stream_out(one, exchange, rounds, end, &clocks));
      run.spawn(second_process, stream_in(two, exchange, rounds, end, &other));
      break;
    }
    case CardTest::pingping:
    case CardTest::bidirectional: {
      const bool waits_for_sent = test == CardTest::bidirectional;
      run.spawn(first_process, send_and_receive(one, exchange, rounds, waits_for_sent, &clocks));
      run.spawn(second_process, send_and_receive(two, exchange, rounds, waits_for_sent, &other));
      break;
    }
    case CardTest::rate:
      run.spawn(first_process, put_out(one, exchange, rounds, &clocks));
      run.spawn(second_process, put_in(two, exchange, rounds, &other));
      break;
  }
  run.run();
  return std::max(clocks.end, other.end) - clocks.begin;
}

// The last step of a measurement: the total time per iteration, rounded down to a picosecond.
TestPoint point_of(CardTest test, const Exchange& exchange, Time whole, std::uint32_t iterations) {
  const bool is_half = test == CardTest::pingpong;
  const bool is_both_ways = test == CardTest::bidirectional || test == CardTest::roundtrip;
  const Time time = Time::from_ps(whole.ps() / (is_half ? 2 * std::int64_t{iterations} : iterations));
  const std::int64_t moved = test == CardTest::rate ? exchange.bytes : exchange.total_bytes();
  const double mib = static_cast<double>(moved * (is_both_ways ? 2 : 1)) / (1 << 20);
  const double bandwidth = time > Time::zero() ? mib / (time.to_us() * 1e-6) : 0.0;
  return {exchange.bytes, time, bandwidth, {}};
}

std::vector<NodeId> choose_nodes(const MachineDescription& description, const std::vector<NodeId>& asked) {
  if (asked.size() == 2) return asked;
  if (!asked.empty()) refuse_value("nodes", std::to_string(asked.size()) + " of them", "two, or none");
  NodeId neighbour = 1;
  const std::vector<std::uint32_t> dims = description.network.topology.dims();
  for (const std::uint32_t extent : dims) {
    if (extent > 1) return {0, neighbour};
    neighbour *= extent;
  }
  if (!dims.empty()) refuse_value("network.dims", "a single node", "two nodes to measure between");
  return {0, neighbour};
}

void validate(const CardTestOptions& options, CardTest test) {
  if (options.sizes.empty()) refuse_value("sizes", "none", "at least one");
  for (const std::int64_t size : options.sizes) {
    if (size < 0) refuse_value("sizes", std::to_string(size), "zero or more bytes");
    if (options.region_bytes != 0 && options.region_bytes < size) {
      refuse_value("region", std::to_string(options.region_bytes),
                   "at least one message of " + std::to_string(size) + " bytes");
    }
  }
  if (options.channels == 0) refuse_value("channels", "0", "at least 1");
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (options.region_bytes > most)
    refuse_value("region", std::to_string(options.region_bytes), "at most 2^40 bytes");
  if (options.window != 0 && test != CardTest::unidirectional && test != CardTest::bidirectional &&
      test != CardTest::rate) {
    refuse_value("window", std::to_string(options.window),
                 "none: unidirectional, bidirectional and rate have one");
  }
  std::uint32_t most_messages = options.iterations;
  if (options.iterations == 0) {
    for (const std::int64_t size : options.sizes)
      most_messages = std::max(most_messages, iterations_of(test, size));
  }
  if (options.window > most_messages) {
    refuse_value(
        "window", std::to_string(options.window),
        "at most the " + std::to_string(most_messages) + " messages of a size; more with more iterations");
  }
  if (options.until_landed && test != CardTest::oneway)
    refuse_value("until", "landed", "reply: only oneway can end when everything has landed");
}

// Refuses options that the card does not support, and names them.
void check(const NicCapabilities& card, const MachineDescription& machine, CardTest test,
           const CardTestOptions& options) {
  const std::string of_machine = "the card of " + machine.name;
  if (options.channels > card.channels) {
    refuse_value("channels", std::to_string(options.channels),
                 "at most the " + std::to_string(card.channels) + " of " + of_machine);
  }
  for (const Buffer buffer : {options.local, options.remote}) {
    if (buffer == Buffer::gpu && !card.gpu_memory)
      refuse_value("memory", "gpu", "host: " + of_machine + " does not reach a GPU's memory");
    if (buffer == Buffer::gpu_staged && machine.host.gpu_copy_bytes_per_second == 0)
      refuse_value("memory", "gpu-staged", "host: " + machine.name + " has no host.gpu_copy_bandwidth_mib_s");
  }
  if (test == CardTest::rate && options.path == Path::send)
    refuse_value("path", "send", "put: rate is one of puts");
  if ((test == CardTest::rate || options.path == Path::put) && !card.put)
    refuse_value(test == CardTest::rate ? "test" : "path", test == CardTest::rate ? "rate" : "put",
                 "what " + of_machine + " can do: it has no put");
  if (options.path == Path::send && card.max_send_bytes == 0)
    refuse_value("path", "send", "put: " + of_machine + " sends nothing without an address");
}

// Rounds before the clock starts: two, or as many as touch every page of a receive ring, so that the
// translation of its addresses is warm.
std::uint32_t warmup_of(const NicCapabilities& card, std::int64_t bytes) {
  constexpr std::int64_t fewest = 2;
  const std::int64_t once_round = card.receive_ring_bytes / std::max<std::int64_t>(bytes, 1) + 1;
  return static_cast<std::uint32_t>(std::max(fewest, once_round));
}

Exchange exchange_of(std::int64_t size, const NicCapabilities& card, CardTest test,
                     const CardTestOptions& options) {
  const bool is_dropped = test == CardTest::flush && card.drops && options.path != Path::send;
  std::optional<Verb> verb;
  if (options.path == Path::send) verb = Verb::send;
  if (options.path == Path::put || test == CardTest::rate || is_dropped) verb = Verb::put;
  // The library cuts what it writes itself into trains of packets.
  const std::int64_t max_send_bytes = card.send_packet_bytes > 0 ? card.max_pio_bytes : card.max_send_bytes;
  return {.bytes = size,
          .piece_bytes = verb == Verb::send ? max_send_bytes : card.max_message_bytes,
          .max_pio_bytes = card.pio_limit_bytes(Verb::send),
          .max_pio_put_bytes = card.pio_limit_bytes(Verb::put),
          .region_bytes = options.region_bytes,
          .channels = options.channels,
          .verb = verb,
          .is_dropped = is_dropped,
          .buffers = {options.local, options.remote}};
}

// Refuses more messages than memory has room for: a stream keeps some 200 bytes for each.
Rounds rounds_of(const NicCapabilities& card, std::int64_t size, CardTest test,
                 const CardTestOptions& options) {
  const Rounds rounds{.warmup = warmup_of(card, size),
                      .measured = options.iterations > 0 ? options.iterations : iterations_of(test, size),
                      .window = options.window > 0 ? options.window : window_of(test)};
  constexpr std::int64_t most_messages = std::int64_t{1} << 25;
  const std::int64_t of_a_round = size / card.max_message_bytes + options.channels;
  if (rounds.measured > most_messages / of_a_round) {
    refuse_value("iterations", std::to_string(rounds.measured),
                 "at most " + std::to_string(most_messages / of_a_round) + " with messages of " +
                     std::to_string(size) + " bytes on " + std::to_string(options.channels) + " channels");
  }
  return rounds;
}

}  // namespace

std::vector<TestPoint> run_card_test(const MachineDescription& description, CardTest test,
                                     const CardTestOptions& options) {
  validate(options, test);
  const std::vector<NodeId> nodes = choose_nodes(description, options.nodes);
  std::vector<TestPoint> points;
  for (const std::int64_t size : options.sizes) {
    CardRun run(description, description.card_software, nodes);
    const NicCapabilities card = run.machine().capabilities();
    check(card, description, test, options);
    const Exchange exchange = exchange_of(size, card, test, options);
    if (test == CardTest::rate && exchange.pieces() > 1) {
      refuse_value("sizes", std::to_string(size),
                   "at most the " + std::to_string(card.max_message_bytes) + " bytes of one put");
    }
    const Rounds rounds = rounds_of(card, size, test, options);
    const Time whole = measure(run, test, exchange, rounds, options.until_landed);
    points.push_back(point_of(test, exchange, whole, rounds.measured));
    points.back().warnings = run.machine().warnings();
  }
  return points;
}

PacketHops count_packet_hops(const MachineDescription& description, CardTest test,
                             const CardTestOptions& options) {
  validate(options, test);
  const std::vector<NodeId> nodes = choose_nodes(description, options.nodes);
  const NicCapabilities card = card_traits(description.nic, description.host).capabilities;
  const MessageWork work(description);
  PacketHops whole;
  for (const std::int64_t size : options.sizes) {
    const Rounds rounds = rounds_of(card, size, test, options);
    const bool is_one_way = is_stream(test) || test == CardTest::rate;
    const double messages = is_one_way ? rounds.measured : 2.0 * (0.0 + rounds.warmup + rounds.measured);
    const double at_once = test == CardTest::rate ? 1 : options.channels;
    whole += work.of(nodes[0], nodes[1], size) * (messages * at_once);
  }
  return whole;
}

}  // namespace apenet
