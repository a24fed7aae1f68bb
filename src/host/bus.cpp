#include "host/bus.hpp"

#include <algorithm>

#include "kernel/check.hpp"

namespace apenet {

namespace {

// argument_a of the bus's own events.
constexpr std::uint64_t release_event = 0;     // the bus may be free for who waits
constexpr std::uint64_t completion_event = 1;  // the bridge has the data of the oldest issued read

}  // namespace

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
      slot_free_(kind.description().outstanding_reads) {}

template <typename Emit>
void Bus::split(std::int64_t bytes, BusClient& client, const Emit& emit) const {
  APENET_CHECK(bytes > 0, "transfer of %lld bytes", static_cast<long long>(bytes));
  const std::int64_t max_burst_bytes = kind_.description().max_burst_bytes;
  for (; bytes > max_burst_bytes; bytes -= max_burst_bytes) emit(max_burst_bytes, nullptr);
  emit(bytes, &client);
}

void Bus::write(Master master, std::int64_t bytes, Time earliest_start, BusClient& client,
                std::uint64_t tag) {
  const Time now = simulation_.now();
  split(bytes, client, [&](std::int64_t burst_bytes, BusClient* burst_client) {
    kind_.bursts_.push(waiting_[static_cast<std::size_t>(master)],
                       {burst_client, tag, burst_bytes, earliest_start, now});
  });
  arbitrate();
}

void Bus::read(std::int64_t bytes, BusClient& client, std::uint64_t tag) {
  split(bytes, client, [&](std::int64_t burst_bytes, BusClient* burst_client) {
    kind_.bursts_.push(unissued_reads_, {burst_client, tag, burst_bytes, Time::zero(), Time::zero()});
  });
  issue_reads();
}

void Bus::issue_reads() {
  const std::uint64_t slots = slot_free_.size();
  while (!unissued_reads_.empty() && issued_ < granted_reads_ + slots) {
    const Time accepted = std::max(simulation_.now(), slot_free_[issued_ % slots]);
    ++issued_;
    kind_.bursts_.push(issued_reads_, kind_.bursts_.pop(unissued_reads_));
    simulation_.schedule(source_, accepted + kind_.description().read_latency, *this, completion_event);
  }
}

bool Bus::anyone_waits() const {
  return std::any_of(waiting_.begin(), waiting_.end(), [](const auto& queue) { return !queue.empty(); });
}

void Bus::arbitrate() {
  while (busy_until_ <= simulation_.now() && anyone_waits()) {
    do {
      last_master_ = static_cast<std::uint8_t>(last_master_ + 1U == masters ? 0 : last_master_ + 1U);
    } while (waiting_[last_master_].empty());
    grant(kind_.bursts_.pop(waiting_[last_master_]), static_cast<Master>(last_master_));
  }
  if (!release_pending_ && anyone_waits()) {
    release_pending_ = true;
    simulation_.schedule(source_, busy_until_, *this, release_event);
  }
}

void Bus::grant(const Burst& burst, Master master) {
  const Time start = std::max(burst.earliest_start, busy_until_);
  const Time unhindered_end = start + kind_.burst_time(kind_.words(burst.bytes));
  busy_until_ = std::max(unhindered_end, burst.data_complete);
  busy_ += unhindered_end - start;
  ++bursts_;
  if (master == Master::read) {
    slot_free_[granted_reads_ % slot_free_.size()] = busy_until_;
    ++granted_reads_;
    issue_reads();
  }
  if (burst.client != nullptr) {
    burst.client->bus_granted({burst.tag, start + kind_.burst_time(1), busy_until_});
  }
}

void Bus::handle_event(const Event& event) {
  if (event.argument_a == release_event) {
    release_pending_ = false;
  } else {
    Burst burst = kind_.bursts_.pop(issued_reads_);
    burst.earliest_start = simulation_.now();
    burst.data_complete = simulation_.now();
    kind_.bursts_.push(waiting_[static_cast<std::size_t>(Master::read)], burst);
  }
  arbitrate();
}

}  // namespace apenet
