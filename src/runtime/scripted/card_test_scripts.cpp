#include "runtime/scripted/card_test_scripts.hpp"

#include <utility>

namespace apenet {

namespace {

ProcessId other(const CardProcess& process) {
  return process.id() == first_process ? second_process : first_process;
}

// The copy that a side makes of a message's bytes before it sends them, or after it has received them.
void stage(CardProcess& process, const Exchange& exchange) {
  const Buffer buffer = exchange.buffers[process.id()];
  if (buffer == Buffer::host_copied) process.copy(exchange.total_bytes());
  if (buffer == Buffer::gpu_staged) process.copy_gpu(exchange.total_bytes());
}

Memory memory_of(Buffer buffer) {
  return buffer == Buffer::gpu ? Memory::gpu : Memory::host;
}

// Each channel has its own region, at the same virtual address in both processes and aligned to any page
// size. Messages fill the region one after another and wrap around at its end.
std::uint64_t address_of(const Exchange& exchange, std::uint16_t channel, std::uint64_t message) {
  constexpr int region_bits = 40;
  const std::uint64_t base = (std::uint64_t{channel} + 1) << region_bits;
  if (exchange.region_bytes == 0 || exchange.bytes == 0) return base;
  const auto slots = static_cast<std::uint64_t>(exchange.region_bytes / exchange.bytes);
  return base + message % slots * static_cast<std::uint64_t>(exchange.bytes);
}

struct Wanted {
  bool local = false;
  bool notify = true;
};

std::uint64_t post(CardProcess& process, const Exchange& exchange, std::uint16_t channel,
                   std::uint64_t address, std::int64_t bytes, Wanted wanted) {
  const ProcessId target = other(process);
  const Memory local = memory_of(exchange.buffers[process.id()]);
  const Memory remote = exchange.is_dropped ? Memory::none : memory_of(exchange.buffers[target]);
  const Verb verb = exchange.verb.value_or(process.verb_of_send(bytes));
  const std::int64_t max_pio_bytes = verb == Verb::put ? exchange.max_pio_put_bytes : exchange.max_pio_bytes;
  return process.post({.verb = verb,
                       .target = target,
                       .channel = channel,
                       .from_cpu = local == Memory::host && bytes <= max_pio_bytes,
                       .want_local = wanted.local,
                       .notify_target = wanted.notify,
                       .local_memory = local,
                       .remote_memory = remote,
                       .bytes = bytes,
                       .local_address = address,
                       .remote_address = address});
}

// Posts the transfers of message number `message` of this process. Returns their numbers, which identify
// their completions.
std::vector<std::uint64_t> send_all(CardProcess& process, const Exchange& exchange, std::uint64_t message,
                                    bool want_local) {
  stage(process, exchange);
  std::vector<std::uint64_t> transfers;
  for (std::int64_t piece = 0; piece < exchange.pieces(); ++piece) {
    const std::int64_t offset = piece * exchange.piece_bytes;
    for (std::uint16_t channel = 0; channel < exchange.channels; ++channel) {
      const std::uint64_t address =
          address_of(exchange, channel, message) + static_cast<std::uint64_t>(offset);
      transfers.push_back(post(process, exchange, channel, address, exchange.piece(piece),
                               {.local = want_local, .notify = !exchange.is_dropped}));
    }
  }
  return transfers;
}

void expect_all(CardProcess& process, const Exchange& exchange) {
  for (std::int64_t piece = 0; piece < exchange.pieces(); ++piece) {
    for (std::uint16_t channel = 0; channel < exchange.channels; ++channel) {
      process.expect(other(process), exchange.piece(piece), channel);
    }
  }
}

// Messages expected so far.
Script take_all(CardProcess& process, Exchange exchange) {
  const std::int64_t arrivals = exchange.pieces() * exchange.channels;
  for (std::int64_t i = 0; i < arrivals; ++i) co_await process.arrival_from(other(process));
  stage(process, exchange);
}

Script receive_all(CardProcess& process, Exchange exchange) {
  expect_all(process, exchange);
  co_await take_all(process, exchange);
}

Script all_sent(CardProcess& process, std::vector<std::uint64_t> transfers) {
  for (const std::uint64_t transfer : transfers) {
    co_await process.completion(CompletionKind::sent, transfer);
  }
}

}  // namespace

Exchange Exchange::closing() const {
  Exchange empty = *this;
  empty.bytes = 0;
  empty.channels = 1;
  empty.buffers = {};
  empty.is_dropped = false;
  return empty;
}

Script ping(CardProcess& process, Exchange exchange, Rounds rounds, Clocks* clocks) {
  for (std::uint32_t i = 0; i < rounds.warmup + rounds.measured; ++i) {
    if (i == rounds.warmup) clocks->begin = process.clock();
    send_all(process, exchange, i, false);
    co_await receive_all(process, exchange);
  }
  clocks->end = process.clock();
}

Script pong(CardProcess& process, Exchange exchange, Rounds rounds) {
  for (std::uint32_t i = 0; i < rounds.warmup + rounds.measured; ++i) {
    co_await receive_all(process, exchange);
    send_all(process, exchange, i, false);
  }
}

Script send_and_receive(CardProcess& process, Exchange exchange, Rounds rounds, bool waits_for_sent,
                        Clocks* clocks) {
  const std::uint64_t count = std::uint64_t{rounds.warmup} + rounds.measured;
  const std::uint64_t window = std::min<std::uint64_t>(rounds.window, count);
  std::vector<std::vector<std::uint64_t>> transfers;
  for (std::uint64_t i = 0; i < count + window - 1; ++i) {
    if (i == rounds.warmup) clocks->begin = process.clock();
    if (i < count) transfers.push_back(send_all(process, exchange, i, waits_for_sent));
    if (i + 1 < window) continue;
    co_await receive_all(process, exchange);
    if (waits_for_sent) co_await all_sent(process, std::move(transfers[i + 1 - window]));
  }
  clocks->end = process.clock();
}

Script stream_out(CardProcess& process, Exchange exchange, Rounds rounds, StreamEnd end, Clocks* clocks) {
  co_await receive_all(process, exchange.closing());
  clocks->begin = process.clock();
  const bool waits = rounds.window > 0 || end != StreamEnd::reply;
  std::vector<std::vector<std::uint64_t>> transfers;
  std::uint32_t finished = 0;
  for (std::uint32_t i = 0; i < rounds.measured; ++i) {
    if (rounds.window > 0 && i >= rounds.window) {
      co_await all_sent(process, transfers[finished]);
      ++finished;
    }
    transfers.push_back(send_all(process, exchange, i, waits));
  }
  for (; waits && finished < rounds.measured; ++finished) co_await all_sent(process, transfers[finished]);
  if (end == StreamEnd::reply) co_await receive_all(process, exchange.closing());
  clocks->end = process.clock();
}

Script stream_in(CardProcess& process, Exchange exchange, Rounds rounds, StreamEnd end, Clocks* clocks) {
  send_all(process, exchange.closing(), 0, false);
  if (exchange.is_dropped) co_return;
  // Expect a window of messages in advance: a sender that needs credit could not fill its window otherwise.
  const std::uint32_t ahead = std::min(std::max(rounds.window, 1U), rounds.measured);
  for (std::uint32_t i = 0; i < ahead; ++i) expect_all(process, exchange);
  for (std::uint32_t i = 0; i < rounds.measured; ++i) {
    co_await take_all(process, exchange);
    if (i + ahead < rounds.measured) expect_all(process, exchange);
  }
  if (end == StreamEnd::reply) send_all(process, exchange.closing(), 0, false);
  if (end == StreamEnd::landed) clocks->end = process.clock();
}

Script put_out(CardProcess& process, Exchange exchange, Rounds rounds, Clocks* clocks) {
  co_await receive_all(process, exchange.closing());
  clocks->begin = process.clock();
  std::vector<std::uint64_t> marks;  // the last put of each window
  for (std::uint32_t i = 0; i < rounds.measured; ++i) {
    const std::uint32_t window = i / rounds.window;
    const bool is_first = i % rounds.window == 0;
    const bool is_last = (i + 1) % rounds.window == 0;
    if (is_first && window >= 2) co_await process.completion(CompletionKind::sent, marks[window - 2]);
    const auto channel = static_cast<std::uint16_t>(i % exchange.channels);
    const std::uint64_t put =
        post(process, exchange, channel, address_of(exchange, channel, i / exchange.channels), exchange.bytes,
             {.local = is_last, .notify = i + exchange.channels >= rounds.measured});
    if (is_last) marks.push_back(put);
  }
  clocks->end = process.clock();
}

Script put_in(CardProcess& process, Exchange exchange, Rounds rounds, Clocks* clocks) {
  for (std::uint32_t i = 0; i < rounds.measured; ++i) {
    process.expect(first_process, exchange.bytes, static_cast<std::uint16_t>(i % exchange.channels));
  }
  send_all(process, exchange.closing(), 0, false);
  const std::uint32_t last = std::min<std::uint32_t>(exchange.channels, rounds.measured);
  // The sender numbers its puts from 0. The numbers distinguish them from other messages that a card
  // announces.
  for (std::uint32_t i = rounds.measured - last; i < rounds.measured; ++i) {
    co_await process.arrival_of(first_process, i);
  }
  clocks->end = process.clock();
}

}  // namespace apenet
