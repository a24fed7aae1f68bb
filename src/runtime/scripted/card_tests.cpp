#include "runtime/scripted/card_tests.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "runtime/scripted/scripted_run.hpp"

namespace apenet {

namespace {

[[noreturn]] void refuse(const std::string& key, const std::string& value, const std::string& expected) {
  throw std::invalid_argument(key + " = " + value + ": expected " + expected);
}

// One message of the test: `channels` transfers of `bytes` at once, each in pieces that one descriptor can
// carry.
struct Exchange {
  std::int64_t bytes = 0;
  std::int64_t piece_bytes = 0;
  std::uint16_t channels = 1;
  bool copied = false;

  [[nodiscard]] std::int64_t pieces() const {
    return std::max<std::int64_t>(1, (bytes + piece_bytes - 1) / piece_bytes);
  }
  [[nodiscard]] std::int64_t total_bytes() const { return bytes * channels; }
};

constexpr ProcessId first = 0;
constexpr ProcessId second = 1;

std::vector<std::uint64_t> send_all(ScriptedProcess& process, ProcessId target, const Exchange& exchange,
                                    bool want_local) {
  if (exchange.copied) process.copy(exchange.total_bytes());
  std::vector<std::uint64_t> messages;
  for (std::int64_t piece = 0; piece < exchange.pieces(); ++piece) {
    const std::int64_t bytes = std::min(exchange.piece_bytes, exchange.bytes - piece * exchange.piece_bytes);
    for (std::uint16_t channel = 0; channel < exchange.channels; ++channel) {
      messages.push_back(process.send(target, bytes, {.channel = channel, .want_local = want_local}));
    }
  }
  return messages;
}

Script receive_all(ScriptedProcess& process, ProcessId source, Exchange exchange) {
  const std::int64_t arrivals = exchange.pieces() * exchange.channels;
  for (std::int64_t i = 0; i < arrivals; ++i) co_await process.arrival_from(source);
  if (exchange.copied) process.copy(exchange.total_bytes());
}

Script all_sent(ScriptedProcess& process, std::vector<std::uint64_t> messages) {
  for (const std::uint64_t message : messages) {
    co_await process.completion(Completion::Kind::sent, message);
  }
}

// Every script below stores its process's clock in *begin after the warm-up, and in *end when it is done.
struct Clocks {
  Time begin;
  Time end;
};

Script ping(ScriptedProcess& process, Exchange exchange, std::uint32_t warmup, std::uint32_t iterations,
            Clocks* clocks) {
  for (std::uint32_t i = 0; i < warmup + iterations; ++i) {
    if (i == warmup) clocks->begin = process.clock();
    send_all(process, second, exchange, false);
    co_await receive_all(process, second, exchange);
  }
  clocks->end = process.clock();
}

Script pong(ScriptedProcess& process, Exchange exchange, std::uint32_t rounds) {
  for (std::uint32_t i = 0; i < rounds; ++i) {
    co_await receive_all(process, first, exchange);
    send_all(process, first, exchange, false);
  }
}

// window 0: does not wait for its buffers.
Script stream_out(ScriptedProcess& process, Exchange exchange, std::uint32_t iterations, std::uint32_t window,
                  Clocks* clocks) {
  const Exchange closing{0, exchange.piece_bytes, 1, false};
  co_await receive_all(process, second, closing);
  clocks->begin = process.clock();
  std::vector<std::vector<std::uint64_t>> messages;
  for (std::uint32_t i = 0; i < iterations; ++i) {
    if (window > 0 && i >= window) co_await all_sent(process, messages[i - window]);
    messages.push_back(send_all(process, second, exchange, window > 0));
  }
  for (std::uint32_t i = iterations - std::min(window, iterations); i < iterations; ++i) {
    co_await all_sent(process, messages[i]);
  }
  co_await receive_all(process, second, closing);
  clocks->end = process.clock();
}

Script stream_in(ScriptedProcess& process, Exchange exchange, std::uint32_t iterations) {
  const Exchange closing{0, exchange.piece_bytes, 1, false};
  send_all(process, first, closing, false);
  for (std::uint32_t i = 0; i < iterations; ++i) co_await receive_all(process, first, exchange);
  send_all(process, first, closing, false);
}

Script send_and_receive(ScriptedProcess& process, ProcessId peer, Exchange exchange, std::uint32_t warmup,
                        std::uint32_t iterations, Clocks* clocks) {
  for (std::uint32_t i = 0; i < warmup + iterations; ++i) {
    if (i == warmup) clocks->begin = process.clock();
    std::vector<std::uint64_t> messages = send_all(process, peer, exchange, true);
    co_await receive_all(process, peer, exchange);
    co_await all_sent(process, std::move(messages));
  }
  clocks->end = process.clock();
}

Time measure(ScriptedRun& run, CardTest test, const Exchange& exchange, const CardTestOptions& options) {
  ScriptedProcess& one = run.process(first);
  ScriptedProcess& two = run.process(second);
  const std::uint32_t rounds = options.warmup + options.iterations;
  Clocks clocks;
  Clocks other;
  switch (test) {
    case CardTest::pingpong:
    case CardTest::roundtrip:
      run.spawn(first, ping(one, exchange, options.warmup, options.iterations, &clocks));
      run.spawn(second, pong(two, exchange, rounds));
      break;
    case CardTest::oneway:
    case CardTest::unidirectional: {
      const std::uint32_t window = test == CardTest::oneway ? 0 : options.window;
      run.spawn(first, stream_out(one, exchange, options.iterations, window, &clocks));
      run.spawn(second, stream_in(two, exchange, options.iterations));
      break;
    }
    case CardTest::bidirectional:
      run.spawn(first, send_and_receive(one, second, exchange, options.warmup, options.iterations, &clocks));
      run.spawn(second, send_and_receive(two, first, exchange, options.warmup, options.iterations, &other));
      break;
  }
  run.run();
  return std::max(clocks.end, other.end) - clocks.begin;
}

// The whole time over the iterations, rounded down to a picosecond: the last step of a measurement.
TestPoint point_of(CardTest test, const Exchange& exchange, Time whole, std::uint32_t iterations) {
  const bool is_half = test == CardTest::pingpong;
  const bool is_both_ways = test == CardTest::bidirectional || test == CardTest::roundtrip;
  const Time time = Time::from_ps(whole.ps() / (is_half ? 2 * std::int64_t{iterations} : iterations));
  const double mib = static_cast<double>(exchange.total_bytes() * (is_both_ways ? 2 : 1)) / (1 << 20);
  const double bandwidth = time > Time::zero() ? mib / (time.to_us() * 1e-6) : 0.0;
  return {exchange.bytes, time, bandwidth};
}

std::vector<NodeId> choose_nodes(const MachineDescription& description, const std::vector<NodeId>& asked) {
  if (asked.size() == 2) return asked;
  if (!asked.empty()) refuse("nodes", std::to_string(asked.size()) + " of them", "two, or none");
  NodeId neighbour = 1;
  for (const std::uint32_t extent : description.network.dims) {
    if (extent > 1) return {0, neighbour};
    neighbour *= extent;
  }
  if (!description.network.dims.empty())
    refuse("network.dims", "a single node", "two nodes to measure between");
  return {0, neighbour};
}

void validate(const CardTestOptions& options) {
  if (options.sizes.empty()) refuse("sizes", "none", "at least one");
  for (const std::int64_t size : options.sizes) {
    if (size < 0) refuse("sizes", std::to_string(size), "zero or more bytes");
  }
  if (options.iterations == 0) refuse("iterations", "0", "at least 1");
  if (options.channels == 0) refuse("channels", "0", "at least 1");
  if (options.window == 0) refuse("window", "0", "at least 1");
}

}  // namespace

std::vector<TestPoint> run_card_test(const MachineDescription& description, CardTest test,
                                     const CardTestOptions& options) {
  validate(options);
  const std::vector<NodeId> nodes = choose_nodes(description, options.nodes);
  std::vector<TestPoint> points;
  for (const std::int64_t size : options.sizes) {
    ScriptedRun run(description, description.card_software, nodes);
    const NicCapabilities card = run.machine().capabilities();
    if (options.channels > card.channels) {
      refuse("channels", std::to_string(options.channels),
             "at most the card's " + std::to_string(card.channels));
    }
    const Exchange exchange{size, card.max_message_bytes, options.channels, options.copied};
    const Time whole = measure(run, test, exchange, options);
    points.push_back(point_of(test, exchange, whole, options.iterations));
  }
  return points;
}

}  // namespace apenet
