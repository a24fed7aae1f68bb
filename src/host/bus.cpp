#include "host/bus.hpp"

#include <algorithm>

#include "kernel/check.hpp"
#include "kernel/refuse.hpp"

namespace apenet {

namespace {

// argument_a of the bus's own events.
constexpr std::uint64_t release_event = 0;     // a lane (argument_b) may be free for who waits
constexpr std::uint64_t completion_event = 1;  // the bridge has the data of the oldest issued read

constexpr std::size_t to_card = 0;  // lanes of a full duplex bus; a half duplex one has only the first
constexpr std::size_t to_host = 1;

}  // namespace

void validate(const BusDescription& bus) {
  require_clock("bus.clock_mhz", bus.clock);
  require_at_least("bus.width_bytes", bus.width_bytes, 1);
  require_at_least("bus.transaction_overhead_cycles", bus.transaction_overhead_cycles, 0);
  if (bus.full_duplex) {
    require_at_least("bus.transaction_overhead_cycles", bus.transaction_overhead_cycles, 1);
  }
  require_at_least("bus.max_burst_bytes", bus.max_burst_bytes, bus.width_bytes);
  require_duration("bus.read_latency_ns", bus.read_latency);
  require_at_least("bus.outstanding_reads", bus.outstanding_reads, 1);
  require_positive_time("bus.pio_write_latency_ns", bus.pio_write_latency,
                        "it is what lets processes run ahead of the model");
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
    : simulation_(simulation),
      kind_(kind),
      source_{EventKind::host, id, 0},
      first_slot_(kind.slot_free_.size()) {
  kind.slot_free_.resize(first_slot_ + kind.description().outstanding_reads);
}

template <typename Emit>
void Bus::split(std::int64_t bytes, BusClient& client, const Emit& emit) const {
  APENET_CHECK(bytes > 0, "transfer of %lld bytes", static_cast<long long>(bytes));
  const std::int64_t max_burst_bytes = kind_.description().max_burst_bytes;
  for (; bytes > max_burst_bytes; bytes -= max_burst_bytes) emit(max_burst_bytes, nullptr);
  emit(bytes, &client);
}

Bus::Lane& Bus::lane_of(Master master) {
  const bool is_upwards = master == Master::card || master == Master::read_request;
  return lanes_[kind_.description().full_duplex && is_upwards ? to_host : to_card];
}

void Bus::write(Master master, std::int64_t bytes, Time earliest_start, BusClient& client,
                std::uint64_t tag) {
  const Time now = simulation_.now();
  Lane& lane = lane_of(master);
  split(bytes, client, [&](std::int64_t burst_bytes, BusClient* burst_client) {
    kind_.bursts_.push(lane.waiting[static_cast<std::size_t>(master)],
                       {burst_client, tag, burst_bytes, earliest_start, now});
  });
  arbitrate(lane);
}

void Bus::read(std::int64_t bytes, BusClient& client, std::uint64_t tag) {
  split(bytes, client, [&](std::int64_t burst_bytes, BusClient* burst_client) {
    kind_.bursts_.push(unissued_reads_, {burst_client, tag, burst_bytes, Time::zero(), Time::zero()});
  });
  issue_reads();
}

void Bus::issue_reads() {
  const std::uint64_t slots = kind_.description().outstanding_reads;
  while (!unissued_reads_.empty() && issued_ < granted_reads_ + slots) {
    const Time accepted = std::max(simulation_.now(), slot_free(issued_));
    ++issued_;
    kind_.bursts_.push(issued_reads_, kind_.bursts_.pop(unissued_reads_));
    if (kind_.description().full_duplex) {
      // A header without data, behind the card's own writes.
      Lane& lane = lanes_[to_host];
      kind_.bursts_.push(lane.waiting[static_cast<std::size_t>(Master::read_request)],
                         {nullptr, 0, 0, accepted, accepted});
      arbitrate(lane);
    } else {
      simulation_.schedule(source_, accepted + kind_.description().read_latency, *this, completion_event);
    }
  }
}

bool Bus::anyone_waits(const Lane& lane) {
  return std::any_of(lane.waiting.begin(), lane.waiting.end(),
                     [](const auto& queue) { return !queue.empty(); });
}

void Bus::arbitrate(Lane& lane) {
  while (lane.busy_until <= simulation_.now() && anyone_waits(lane)) {
    do {
      lane.last_master =
          static_cast<std::uint8_t>(lane.last_master + 1U == masters ? 0 : lane.last_master + 1U);
    } while (lane.waiting[lane.last_master].empty());
    grant(lane, kind_.bursts_.pop(lane.waiting[lane.last_master]), static_cast<Master>(lane.last_master));
  }
  if (!lane.release_pending && anyone_waits(lane)) {
    lane.release_pending = true;
    simulation_.schedule(source_, lane.busy_until, *this, release_event,
                         static_cast<std::uint64_t>(&lane - lanes_.data()));
  }
}

void Bus::grant(Lane& lane, const Burst& burst, Master master) {
  const Time start = std::max(burst.earliest_start, lane.busy_until);
  const Time unhindered_end = start + kind_.burst_time(kind_.words(burst.bytes));
  lane.busy_until = std::max(unhindered_end, burst.data_complete);
  busy_ += unhindered_end - start;
  ++bursts_;
  if (master == Master::read_request) {
    simulation_.schedule(source_, lane.busy_until + kind_.description().read_latency, *this,
                         completion_event);
  }
  if (master == Master::read) {
    slot_free(granted_reads_) = lane.busy_until;
    ++granted_reads_;
    issue_reads();
  }
  if (burst.client != nullptr) {
    burst.client->bus_granted({burst.tag, start + kind_.burst_time(1), lane.busy_until});
  }
}

void Bus::prepare(const Event& event, Ahead ahead) const {
  if (ahead == Ahead::far) {
    prefetch(*this);
  } else if (event.argument_a == completion_event) {
    kind_.bursts_.prepare(issued_reads_);
  } else {
    for (const Queue& queue : lanes_[event.argument_b].waiting) kind_.bursts_.prepare(queue);
  }
}

void Bus::handle_event(const Event& event) {
  if (event.argument_a == release_event) {
    Lane& lane = lanes_[event.argument_b];
    lane.release_pending = false;
    arbitrate(lane);
    return;
  }
  Burst burst = kind_.bursts_.pop(issued_reads_);
  burst.earliest_start = simulation_.now();
  burst.data_complete = simulation_.now();
  kind_.bursts_.push(lanes_[to_card].waiting[static_cast<std::size_t>(Master::read)], burst);
  arbitrate(lanes_[to_card]);
}

}  // namespace apenet
