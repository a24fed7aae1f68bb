#include "host/bus.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "kernel/check.hpp"
#include "kernel/refuse.hpp"
#include "schema/ranges.hpp"

namespace apenet {

namespace {

// argument_a of the bus's events.
constexpr std::uint64_t card_lane_release = 0;  // a lane may be free for a waiting master
constexpr std::uint64_t host_lane_release = 1;
constexpr std::uint64_t completion_event = 2;  // the bridge has the data of the oldest issued read

// Bytes a second of a lane, without its code: 8b10b, from generation 3 on 128b130b.
std::int64_t lane_bytes_per_second(std::int64_t generation) {
  constexpr std::array<std::int64_t, 5> transfers_per_second = {2'500'000'000, 5'000'000'000, 8'000'000'000,
                                                                16'000'000'000, 32'000'000'000};
  const std::int64_t raw = transfers_per_second.at(static_cast<std::size_t>(generation - 1));
  return generation < 3 ? raw / 10 : raw / 130 * 16;
}

void require_pcie_rate(const BusDescription& bus) {
  const std::int64_t lane = lane_bytes_per_second(bus.pcie_generation);
  const std::int64_t rate = scale_up(bus.clock.frequency_hz, bus.width_bytes, 1);
  for (const std::int64_t lanes : {1, 2, 4, 8, 12, 16, 32}) {
    const std::int64_t expected = lanes * lane;
    const std::int64_t allowed = expected / 1'000'000;  // a clock is a whole number of hertz
    if (rate >= expected - allowed && rate <= expected + allowed) return;
  }
  refuse_value("bus.clock_mhz", std::to_string(bus.clock.frequency_hz) + " Hz",
               "times bus.width_bytes = " + std::to_string(bus.width_bytes) +
                   " the rate of 1 to 32 lanes of " + std::to_string(lane) +
                   " bytes/s, as bus.pcie_generation = " + std::to_string(bus.pcie_generation) + " has");
}

void require_power_of_two(std::string_view key, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most && (value & (value - 1)) == 0) return;
  refuse_value(key, std::to_string(value),
               "a power of two from " + std::to_string(least) + " to " + std::to_string(most) +
                   " with bus.pcie_generation");
}

void validate_pcie(const BusDescription& bus) {
  constexpr std::int64_t least_payload = 128;
  constexpr std::int64_t least_completion = 64;  // the smallest boundary of completions
  constexpr std::int64_t most = 4096;
  if (!bus.full_duplex) refuse_value("bus.duplex", "half", "full with bus.pcie_generation");
  if (bus.transaction_overhead_cycles != 0) {
    refuse_value("bus.transaction_overhead_cycles", std::to_string(bus.transaction_overhead_cycles),
                 "none with bus.pcie_generation, whose packets have their own headers");
  }
  require_pcie_rate(bus);
  require_power_of_two("bus.max_burst_bytes", bus.max_burst_bytes, least_payload, most);
  require_power_of_two("bus.read_request_bytes", bus.read_request_bytes, least_payload, most);
  require_power_of_two("bus.completion_bytes", bus.completion_bytes, least_completion, most);
  require_at_least("bus.packets_per_update", bus.packets_per_update, 1);
  if ((bus.posted_credit_bytes == 0) != (bus.credit_return == Time::zero())) {
    refuse_value("bus.credit_return_ns", std::to_string(bus.credit_return.ps()) + " ps",
                 "more than zero with bus.posted_credit_bytes, and none without");
  }
  if (bus.posted_credit_bytes > 0) {
    require_at_least("bus.posted_credit_bytes", bus.posted_credit_bytes, bus.max_burst_bytes);
  }
}

void refuse_pcie(const BusDescription& bus) {
  const auto refuse = [](std::string_view key, std::int64_t value) {
    if (value != 0) refuse_value(key, std::to_string(value), "none without bus.pcie_generation");
  };
  refuse("bus.read_request_bytes", bus.read_request_bytes);
  refuse("bus.completion_bytes", bus.completion_bytes);
  refuse("bus.packets_per_update", bus.packets_per_update);
  refuse("bus.posted_credit_bytes", bus.posted_credit_bytes);
  refuse("bus.credit_return_ns", bus.credit_return.ps());
}

// Calls emit(bytes) for each part of at most this size. Requires bytes > 0.
template <typename Emit>
void split(std::int64_t bytes, std::int64_t part_bytes, const Emit& emit) {
  APENET_CHECK(bytes > 0, "transfer of %lld bytes", static_cast<long long>(bytes));
  for (; bytes > part_bytes; bytes -= part_bytes) emit(part_bytes, false);
  emit(bytes, true);
}

}  // namespace

void validate(const BusDescription& bus) {
  schema::require_ranges("bus", bus);
  require_at_least("bus.max_burst_bytes", bus.max_burst_bytes, bus.width_bytes);
  if (bus.is_pcie()) {
    validate_pcie(bus);
    return;
  }
  refuse_pcie(bus);
  if (bus.transaction_overhead_cycles < 1) {
    refuse_value("bus.transaction_overhead_cycles", std::to_string(bus.transaction_overhead_cycles),
                 "1 or more, or bus.pcie_generation");
  }
}

BusKind::BusKind(const BusDescription& description)
    : description_(description),
      word_bytes_(description.is_pcie() ? pcie::word_bytes : description.width_bytes),
      request_bytes_(description.is_pcie() ? description.read_request_bytes : description.max_burst_bytes),
      completion_bytes_(description.is_pcie()
                            ? std::min({description.completion_bytes, description.max_burst_bytes,
                                        description.read_request_bytes})
                            : description.max_burst_bytes) {
  const std::int64_t words = (description.max_burst_bytes + word_bytes_ - 1) / word_bytes_;
  if (!description.is_pcie()) {
    for (std::int64_t count = 0; count <= words; ++count) {
      burst_time_.push_back(description.clock.cycles(description.transaction_overhead_cycles + count));
    }
    return;
  }
  constexpr std::int64_t request_words = pcie::request_header_bytes / pcie::word_bytes;
  constexpr std::int64_t completion_words = pcie::completion_header_bytes / pcie::word_bytes;
  for (std::int64_t count = 0; count <= request_words + words; ++count) {
    burst_time_.push_back(wire_time(count * pcie::word_bytes));
  }
  header_words_.fill(request_words);
  header_words_[static_cast<std::size_t>(BusMaster::read)] = completion_words;
  // An endpoint's credits for completions are infinite, so packets to the card are acknowledged only.
  update_time_ = {wire_time(2 * pcie::link_packet_bytes), wire_time(pcie::link_packet_bytes)};
}

Time BusKind::wire_time(std::int64_t bytes) const {
  return DataRate{description_.width_bytes, 1, description_.clock.frequency_hz}.duration(bytes);
}

Time BusKind::occupancy(std::int64_t bytes) const {
  if (bytes <= description_.max_burst_bytes) return burst_time(BusMaster::card, bytes);
  const std::int64_t bursts = (bytes + description_.max_burst_bytes - 1) / description_.max_burst_bytes;
  const std::int64_t words = (bytes + word_bytes_ - 1) / word_bytes_;
  if (description_.is_pcie()) {
    return wire_time(bursts * pcie::request_header_bytes + words * pcie::word_bytes);
  }
  return description_.clock.cycles(bursts * description_.transaction_overhead_cycles + words);
}

Bus::Bus(Buses& all, std::uint32_t id) : all_(all) {
  state_.source = {EventKind::host, id, 0};
  if (!has_credits()) return;
  if (all_.state.credits_back.empty()) all_.first_id = id;
  APENET_CHECK(id == all_.first_id + all_.state.credits_back.size(), "bus %u out of order", id);
  all_.state.credits_back.push_back(Time::zero());
}

bool Bus::is_to_host(Master master) const {
  const bool is_upwards = master == Master::card || master == Master::read_request;
  return is_upwards && all_.kind.description().full_duplex;
}

[[gnu::always_inline]] inline void Bus::enqueue(Lane& lane, Master master, const Burst& burst) {
  const auto number = static_cast<std::size_t>(master);
  all_.state.bursts.push(state_.waiting[number], burst);
  lane.waiting_masters |= static_cast<std::uint8_t>(1U << number);
}

void Bus::write(Master master, std::int64_t bytes, Time earliest_start, BusClient& client,
                std::uint64_t tag) {
  Lane& lane = is_to_host(master) ? state_.to_host : state_.to_card;
  split(bytes, all_.kind.description().max_burst_bytes, [&](std::int64_t burst_bytes, bool is_last) {
    enqueue(
        lane, master,
        {is_last ? &client : nullptr, tag, static_cast<std::uint32_t>(burst_bytes), true, earliest_start});
  });
  arbitrate(lane);
}

void Bus::read(std::int64_t bytes, BusClient& client, std::uint64_t tag) {
  QueuePool<Burst>& bursts = all_.state.bursts;
  // Both sizes of PCI Express are powers of two, so that completions fill a request.
  const std::int64_t completion_bytes = all_.kind.completion_bytes();
  std::int64_t left_of_request = all_.kind.request_bytes();
  split(bytes, completion_bytes, [&](std::int64_t burst_bytes, bool is_last) {
    left_of_request -= burst_bytes;
    const bool ends_request = is_last || left_of_request <= 0;
    if (ends_request) left_of_request = all_.kind.request_bytes();
    bursts.push(state_.unissued_reads, {is_last ? &client : nullptr, tag,
                                        static_cast<std::uint32_t>(burst_bytes), ends_request, Time::zero()});
  });
  issue_reads();
}

// Moves the bursts that answer the first request.
[[gnu::always_inline]] inline void Bus::move_request(Queue& from, Queue& to) {
  bool is_end = false;
  while (!is_end) {
    is_end = all_.state.bursts.front(from).ends_request;
    all_.state.bursts.move_first(from, to);
  }
}

// The last free slot may be that of the most recently granted read, which frees it when that read ends. All
// other granted reads have ended.
void Bus::issue_reads() {
  const auto slots = static_cast<std::uint32_t>(all_.kind.description().outstanding_reads);
  std::uint32_t& under_way = state_.to_card.reads_under_way;
  while (!state_.unissued_reads.empty() && under_way < slots) {
    ++under_way;
    const Time now = all_.simulation.now();
    const Time accepted = under_way == slots ? std::max(now, state_.read_end) : now;
    move_request(state_.unissued_reads, state_.issued_reads);
    if (all_.kind.description().full_duplex) {
      // A header without data. It takes turns with the card's own writes.
      enqueue(state_.to_host, Master::read_request, {nullptr, 0, 0, true, accepted});
      arbitrate(state_.to_host);
    } else {
      all_.simulation.schedule(state_.source, accepted + all_.kind.description().read_latency, *this,
                               completion_event);
    }
  }
}

// A burst that began in the past ends now at the earliest, because its data are complete only now.
[[gnu::always_inline]] inline void Bus::grant(Lane& lane, const Burst& burst, Master master) {
  const BusKind& kind = all_.kind;
  const bool is_pcie = kind.description().is_pcie();
  Time start = std::max(burst.earliest_start, lane.busy_until);
  if (is_pcie && master == Master::card && has_credits()) start = take_credits(start, burst.bytes);
  const Time duration = kind.burst_time(master, burst.bytes);
  const Time end = std::max(start + duration, all_.simulation.now());
  lane.busy_until = end;
  counters_.busy += duration;
  all_.counters.waited += start - burst.earliest_start;
  ++all_.counters.bursts;
  if (is_pcie) answer_packet(lane);
  if (master == Master::read_request) {
    all_.simulation.schedule(state_.source, end + kind.description().read_latency, *this, completion_event);
  }
  if (master == Master::read && burst.ends_request) {
    state_.read_end = end;
    --lane.reads_under_way;
    if (!state_.unissued_reads.empty()) issue_reads();
  }
  if (burst.client != nullptr)
    burst.client->bus_granted({burst.tag, start + kind.first_word(master), end, burst.earliest_start, start});
}

void Bus::arbitrate(Lane& lane) {
  while (lane.waiting_masters != 0 && lane.busy_until <= all_.simulation.now()) {
    // The next waiting master in round-robin order after the last one.
    const unsigned round = lane.waiting_masters | unsigned{lane.waiting_masters} << masters;
    const unsigned behind = lane.last_master + 1U;
    const unsigned next = (behind + static_cast<unsigned>(std::countr_zero(round >> behind))) % masters;
    Queue& queue = state_.waiting[next];
    const Burst burst = all_.state.bursts.pop(queue);
    if (queue.empty()) lane.waiting_masters &= static_cast<std::uint8_t>(~(1U << next));
    lane.last_master = static_cast<std::uint8_t>(next);
    grant(lane, burst, static_cast<Master>(next));
    // The bursts of a transfer do not wait for each other, and only the last one has a client.
    if (burst.client == nullptr && static_cast<Master>(next) != Master::read_request && !queue.empty()) {
      Time& ready = all_.state.bursts.front(queue).earliest_start;
      ready = std::max(ready, lane.busy_until);
    }
  }
  if (lane.waiting_masters != 0 && !lane.release_pending) {
    lane.release_pending = true;
    all_.simulation.schedule(state_.source, lane.busy_until, *this,
                             &lane == &state_.to_card ? card_lane_release : host_lane_release);
  }
}

// Returns the start of a write that waits for its credits. The host hands them back in the order of writes
// and at an even rate, posted_credit_bytes in credit_return, so one time says it all: when those of all
// writes so far will be back. Credits beyond posted_credit_bytes are not saved up.
Time Bus::take_credits(Time start, std::int64_t bytes) {
  Time& all_back = credits_back();
  const Time mine_back = std::max(all_back, start) + all_.kind.credit_time(bytes);
  start = std::max(start, mine_back - all_.kind.description().credit_return);
  all_back = mine_back;
  return start;
}

// Counts a packet of a lane. What answers packets_per_update of them goes the other way. It costs something
// only where it makes others wait.
void Bus::answer_packet(Lane& lane) {
  if (++lane.packets < all_.kind.description().packets_per_update) return;
  lane.packets = 0;
  const bool to_card = &lane == &state_.to_card;
  Lane& back = to_card ? state_.to_host : state_.to_card;
  if (back.busy_until <= all_.simulation.now() && back.waiting_masters == 0) return;
  const Time update = all_.kind.update_time(to_card);
  back.busy_until = std::max(back.busy_until, all_.simulation.now()) + update;
  counters_.busy += update;
}

// The first call prefetches the bus's own state, the second the clients it will call.
void Bus::prepare(const Event& event, Ahead ahead) const {
  if (ahead == Ahead::far) {
    prefetch(*this);
    if (event.argument_a == completion_event) return;
    for (const Queue& queue : state_.waiting) all_.state.bursts.prepare(queue);
  } else if (event.argument_a == completion_event) {
    all_.state.bursts.prepare(state_.issued_reads);
  } else {
    for (const Queue& queue : state_.waiting) {
      if (!queue.empty()) __builtin_prefetch(all_.state.bursts.front(queue).client);
    }
    all_.state.bursts.prepare(state_.unissued_reads);
  }
}

void Bus::handle_event(const Event& event) {
  if (event.argument_a != completion_event) {
    Lane& lane = event.argument_a == host_lane_release ? state_.to_host : state_.to_card;
    lane.release_pending = false;
    arbitrate(lane);
    return;
  }
  constexpr auto read = static_cast<unsigned>(Master::read);
  bool is_end = false;
  while (!is_end) {
    Burst& burst = all_.state.bursts.front(state_.issued_reads);
    burst.earliest_start = all_.simulation.now();
    is_end = burst.ends_request;
    all_.state.bursts.move_first(state_.issued_reads, state_.waiting[read]);
  }
  state_.to_card.waiting_masters |= 1U << read;
  arbitrate(state_.to_card);
}

}  // namespace apenet
