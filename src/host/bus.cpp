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

Bus::Bus(Simulation& simulation, BusKind& kind, std::uint32_t id)
    : to_host_(kind.description().full_duplex ? std::make_unique<Lane>() : nullptr),
      simulation_(simulation),
      kind_(kind),
      source_{EventKind::host, id, 0} {}

template <typename Emit>
void Bus::split(std::int64_t bytes, BusClient& client, const Emit& emit) const {
  APENET_CHECK(bytes > 0, "transfer of %lld bytes", static_cast<long long>(bytes));
  const std::int64_t max_burst_bytes = kind_.description().max_burst_bytes;
  for (; bytes > max_burst_bytes; bytes -= max_burst_bytes) emit(max_burst_bytes, nullptr);
  emit(bytes, &client);
}

bool Bus::is_to_host(Master master) const {
  const bool is_upwards = master == Master::card || master == Master::read_request;
  return is_upwards && kind_.description().full_duplex;
}

inline void Bus::enqueue(Lane& lane, Master master, const Burst& burst) {
  const auto number = static_cast<std::size_t>(master);
  kind_.bursts_.push(lane.waiting[number], burst);
  lane.waiting_masters |= static_cast<std::uint8_t>(1U << number);
}

void Bus::write(Master master, std::int64_t bytes, Time earliest_start, BusClient& client,
                std::uint64_t tag) {
  Lane& lane = is_to_host(master) ? *to_host_ : to_card_;
  split(bytes, client, [&](std::int64_t burst_bytes, BusClient* burst_client) {
    enqueue(lane, master, {burst_client, tag, burst_bytes, earliest_start});
  });
  arbitrate(lane);
}

void Bus::read(std::int64_t bytes, BusClient& client, std::uint64_t tag) {
  split(bytes, client, [&](std::int64_t burst_bytes, BusClient* burst_client) {
    kind_.bursts_.push(unissued_reads_, {burst_client, tag, burst_bytes, Time::zero()});
  });
  issue_reads();
}

// The last free slot may be that of the most recently granted read, which frees it when that read ends. All
// other granted reads have ended.
void Bus::issue_reads() {
  const auto slots = static_cast<std::uint32_t>(kind_.description().outstanding_reads);
  std::uint32_t& under_way = to_card_.reads_under_way;
  while (!unissued_reads_.empty() && under_way < slots) {
    ++under_way;
    const Time now = simulation_.now();
    const Time accepted = under_way == slots ? std::max(now, read_end_) : now;
    kind_.bursts_.move_first(unissued_reads_, issued_reads_);
    if (kind_.description().full_duplex) {
      // A header without data. It takes turns with the card's own writes.
      enqueue(*to_host_, Master::read_request, {nullptr, 0, 0, accepted});
      arbitrate(*to_host_);
    } else {
      simulation_.schedule(source_, accepted + kind_.description().read_latency, *this, completion_event);
    }
  }
}

void Bus::arbitrate(Lane& lane) {
  while (lane.waiting_masters != 0 && lane.busy_until <= simulation_.now()) {
    // The next waiting master in round-robin order after the last one.
    const unsigned round = lane.waiting_masters | unsigned{lane.waiting_masters} << masters;
    const unsigned behind = lane.last_master + 1U;
    const unsigned next = (behind + static_cast<unsigned>(std::countr_zero(round >> behind))) % masters;
    Queue& queue = lane.waiting[next];
    const Burst burst = kind_.bursts_.pop(queue);
    if (queue.empty()) lane.waiting_masters &= static_cast<std::uint8_t>(~(1U << next));
    lane.last_master = static_cast<std::uint8_t>(next);
    grant(lane, burst, static_cast<Master>(next));
  }
  if (lane.waiting_masters != 0 && !lane.release_pending) {
    lane.release_pending = true;
    simulation_.schedule(source_, lane.busy_until, *this,
                         &lane == &to_card_ ? card_lane_release : host_lane_release);
  }
}

// A burst that began in the past ends now at the earliest, because its data are complete only now.
void Bus::grant(Lane& lane, const Burst& burst, Master master) {
  const Time start = std::max(burst.earliest_start, lane.busy_until);
  const Time duration = kind_.burst_time(kind_.words(burst.bytes));
  lane.busy_until = std::max(start + duration, simulation_.now());
  busy_ += duration;
  if (master == Master::read_request) {
    simulation_.schedule(source_, lane.busy_until + kind_.description().read_latency, *this,
                         completion_event);
  }
  if (master == Master::read) {
    read_end_ = lane.busy_until;
    --lane.reads_under_way;
    issue_reads();
  }
  if (burst.client != nullptr) {
    burst.client->bus_granted({burst.tag, start + kind_.burst_time(1), lane.busy_until});
  }
}

const Bus::Lane& Bus::released(const Event& event) const {
  return event.argument_a == host_lane_release ? *to_host_ : to_card_;
}

// The first call prefetches the bus's own state, the second the clients it will call.
void Bus::prepare(const Event& event, Ahead ahead) const {
  if (ahead == Ahead::far) {
    prefetch(*this);
    if (event.argument_a == completion_event) return;
    for (const Queue& queue : released(event).waiting) kind_.bursts_.prepare(queue);
  } else if (event.argument_a == completion_event) {
    kind_.bursts_.prepare(issued_reads_);
  } else {
    for (const Queue& queue : released(event).waiting) {
      if (!queue.empty()) __builtin_prefetch(kind_.bursts_.front(queue).client);
    }
    kind_.bursts_.prepare(unissued_reads_);
  }
}

void Bus::handle_event(const Event& event) {
  if (event.argument_a != completion_event) {
    Lane& lane = event.argument_a == host_lane_release ? *to_host_ : to_card_;
    lane.release_pending = false;
    arbitrate(lane);
    return;
  }
  kind_.bursts_.front(issued_reads_).earliest_start = simulation_.now();
  constexpr auto read = static_cast<unsigned>(Master::read);
  kind_.bursts_.move_first(issued_reads_, to_card_.waiting[read]);
  to_card_.waiting_masters |= 1U << read;
  arbitrate(to_card_);
}

}  // namespace apenet
