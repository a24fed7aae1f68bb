#include "host/bus.hpp"

#include <algorithm>
#include <bit>

#include "kernel/check.hpp"
#include "kernel/refuse.hpp"
#include "schema/ranges.hpp"

namespace apenet {

namespace {

// argument_a of the bus's events.
constexpr std::uint64_t card_lane_release = 0;  // a lane may be free for a waiting master
constexpr std::uint64_t host_lane_release = 1;
constexpr std::uint64_t completion_event = 2;  // the bridge has the data of the oldest issued read

}  // namespace

void validate(const BusDescription& bus) {
  schema::require_ranges("bus", bus);
  if (bus.full_duplex) {
    require_at_least("bus.transaction_overhead_cycles", bus.transaction_overhead_cycles, 1);
  }
  require_at_least("bus.max_burst_bytes", bus.max_burst_bytes, bus.width_bytes);
}

BusKind::BusKind(const BusDescription& description) : description_(description) {
  for (std::int64_t count = 0; count <= words(description.max_burst_bytes); ++count) {
    burst_time_.push_back(description.clock.cycles(description.transaction_overhead_cycles + count));
  }
}

Time BusKind::occupancy(std::int64_t bytes) const {
  if (bytes <= description_.max_burst_bytes) return burst_time(words(bytes));
  const std::int64_t bursts = (bytes + description_.max_burst_bytes - 1) / description_.max_burst_bytes;
  return description_.clock.cycles(bursts * description_.transaction_overhead_cycles + words(bytes));
}

Bus::Bus(Buses& all, std::uint32_t id) : all_(all) {
  state_.source = {EventKind::host, id, 0};
}

template <typename Emit>
void Bus::split(std::int64_t bytes, BusClient& client, const Emit& emit) const {
  APENET_CHECK(bytes > 0, "transfer of %lld bytes", static_cast<long long>(bytes));
  const std::int64_t max_burst_bytes = all_.kind.description().max_burst_bytes;
  for (; bytes > max_burst_bytes; bytes -= max_burst_bytes) emit(max_burst_bytes, nullptr);
  emit(bytes, &client);
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
  split(bytes, client, [&](std::int64_t burst_bytes, BusClient* burst_client) {
    enqueue(lane, master, {burst_client, tag, burst_bytes, earliest_start});
  });
  arbitrate(lane);
}

void Bus::read(std::int64_t bytes, BusClient& client, std::uint64_t tag) {
  split(bytes, client, [&](std::int64_t burst_bytes, BusClient* burst_client) {
    all_.state.bursts.push(state_.unissued_reads, {burst_client, tag, burst_bytes, Time::zero()});
  });
  issue_reads();
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
    all_.state.bursts.move_first(state_.unissued_reads, state_.issued_reads);
    if (all_.kind.description().full_duplex) {
      // A header without data. It takes turns with the card's own writes.
      enqueue(state_.to_host, Master::read_request, {nullptr, 0, 0, accepted});
      arbitrate(state_.to_host);
    } else {
      all_.simulation.schedule(state_.source, accepted + all_.kind.description().read_latency, *this,
                               completion_event);
    }
  }
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
  }
  if (lane.waiting_masters != 0 && !lane.release_pending) {
    lane.release_pending = true;
    all_.simulation.schedule(state_.source, lane.busy_until, *this,
                             &lane == &state_.to_card ? card_lane_release : host_lane_release);
  }
}

// A burst that began in the past ends now at the earliest, because its data are complete only now.
void Bus::grant(Lane& lane, const Burst& burst, Master master) {
  const Time start = std::max(burst.earliest_start, lane.busy_until);
  const Time duration = all_.kind.burst_time(all_.kind.words(burst.bytes));
  lane.busy_until = std::max(start + duration, all_.simulation.now());
  counters_.busy += duration;
  if (master == Master::read_request) {
    all_.simulation.schedule(state_.source, lane.busy_until + all_.kind.description().read_latency, *this,
                             completion_event);
  }
  if (master == Master::read) {
    state_.read_end = lane.busy_until;
    --lane.reads_under_way;
    issue_reads();
  }
  if (burst.client != nullptr) {
    burst.client->bus_granted({burst.tag, start + all_.kind.burst_time(1), lane.busy_until});
  }
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
  all_.state.bursts.front(state_.issued_reads).earliest_start = all_.simulation.now();
  constexpr auto read = static_cast<unsigned>(Master::read);
  all_.state.bursts.move_first(state_.issued_reads, state_.waiting[read]);
  state_.to_card.waiting_masters |= 1U << read;
  arbitrate(state_.to_card);
}

}  // namespace apenet
