// Bus: the I/O bus between a card and its host, for both directions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "host/description.hpp"
#include "kernel/queue_pool.hpp"
#include "kernel/simulation.hpp"
#include "kernel/state.hpp"

namespace apenet {

// The time slot that a transfer has been granted on the bus.
struct BusGrant {
  std::uint64_t tag = 0;
  // When the first word of the last burst is transferred; the next words follow one per clock.
  Time first_data;
  Time end;  // when the last word has been transferred
};

class BusClient {
 public:
  // Called once per transfer, when its last burst is granted, possibly from within Bus::write(). first_data
  // and end lie in the future; the client schedules its own events for them.
  virtual void bus_granted(const BusGrant& grant) = 0;

 protected:
  ~BusClient() = default;
};

// One burst of a transfer.
struct Burst {
  BusClient* client = nullptr;  // nullptr unless this is the last burst of its transfer
  std::uint64_t tag = 0;
  std::int64_t bytes = 0;
  Time earliest_start;
};

// What the description of a bus means: the durations of its bursts.
class BusKind {
 public:
  explicit BusKind(const BusDescription& description);

  [[nodiscard]] const BusDescription& description() const { return description_; }
  // The duration of a burst of this many words.
  [[nodiscard]] Time burst_time(std::int64_t words) const {
    return burst_time_[static_cast<std::size_t>(words)];
  }
  [[nodiscard]] std::int64_t words(std::int64_t bytes) const {
    return (bytes + description_.width_bytes - 1) / description_.width_bytes;
  }
  // The duration of all bursts of a transfer on an idle bus.
  [[nodiscard]] Time occupancy(std::int64_t bytes) const;

 private:
  BusDescription description_;
  std::vector<Time> burst_time_;
};

// What the buses of a machine share.
struct Buses {
  Buses(Simulation& simulation_, const BusDescription& description)
      : simulation(simulation_), kind(description) {}

  Simulation& simulation;
  const BusKind kind;
  struct State {
    QueuePool<Burst> bursts;  // of all queues
  };
  State state;
};

// The I/O bus of a node. Half duplex is a PCI-X segment: one transaction at a time, from any master. A burst
// of b bytes holds the bus for transaction_overhead_cycles + ceil(b / width) clocks. A transfer longer than
// max_burst_bytes is split into bursts, each of which is arbitrated separately.
//
// Full duplex is PCI Express or HyperTransport: the same, with separate lanes for the two directions. Bursts
// are packets (transaction_overhead_cycles is their header). Processor writes and read completions go to the
// card; card writes and read requests, which consist of a header, go to the host.
//
// - A read is a split transaction. The request is sent when one of the outstanding_reads slots is free;
//   read_latency later the bridge answers with a completion burst, in the order of requests. The bus clocks
//   of the request are part of transaction_overhead_cycles of its completion.
// - A write is posted: only the bus waits for it.
// - The masters of a lane (processor writes, read completions, card writes, read requests) take turns burst
//   by burst, so that none starves another.
//
// Cut-through: a client learns of a packet when its tail has arrived, but on an idle bus the write could have
// begun with the first words. write() therefore takes the earliest start, which may lie in the past. The
// burst then uses the idle time since then, and ends no earlier than its data. This is fair: any other master
// that had requested the bus meanwhile would have been granted it.
//
// The members are in the order of use, because in a large machine the first cache line is prefetched before
// it is known which others are needed.
class alignas(64) Bus final : private EventHandler {
 public:
  // read_request is used only by the bus itself.
  enum class Master : std::uint8_t { processor = 0, read = 1, card = 2, read_request = 3 };

  // `id` is unique among the sources of kind host. `all` must outlive the bus.
  Bus(Buses& all, std::uint32_t id);
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;

  // The duration of all bursts of a transfer on an idle bus.
  [[nodiscard]] Time occupancy(std::int64_t bytes) const { return all_.kind.occupancy(bytes); }

  // Both require bytes > 0. write(): the data are complete at the master now.
  void write(Master master, std::int64_t bytes, Time earliest_start, BusClient& client, std::uint64_t tag);
  void read(std::int64_t bytes, BusClient& client, std::uint64_t tag);

  using Queue = QueuePool<Burst>::Queue;
  static constexpr std::size_t masters = 4;
  struct Lane {
    Time busy_until;
    std::uint8_t waiting_masters = 0;  // one bit per master with something to transfer
    std::uint8_t last_master = masters - 1;
    bool release_pending = false;
    std::uint32_t reads_under_way = 0;  // issued and not yet granted on this lane
  };
  struct State {
    std::array<Queue, masters> waiting;  // each master uses one lane
    Queue unissued_reads;
    Queue issued_reads;  // at the bridge
    Time read_end;       // of the last granted read
    EventSource source;
    Lane to_card;  // the only lane of a half duplex bus
    Lane to_host;
  };
  struct Counters {
    Time busy;  // both lanes
  };

  // Lists what later transfers depend on.
  void list_state(StateList& list) {
    list.state(state_);
    list.counters(counters_);
  }
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  void handle_event(const Event& event) override;
  void prepare(const Event& event, Ahead ahead) const override;
  void issue_reads();
  [[nodiscard]] bool is_to_host(Master master) const;
  void enqueue(Lane& lane, Master master, const Burst& burst);
  void arbitrate(Lane& lane);
  void grant(Lane& lane, const Burst& burst, Master master);
  template <typename Emit>
  void split(std::int64_t bytes, BusClient& client, const Emit& emit) const;

  Buses& all_;
  Counters counters_;
  State state_;
};

static_assert(sizeof(Bus) == 128);

}  // namespace apenet
