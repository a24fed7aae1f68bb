// Bus: the I/O bus between a card and its host, shared by both directions.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "host/description.hpp"
#include "kernel/queue_pool.hpp"
#include "kernel/simulation.hpp"

namespace apenet {

// What was asked for now has its place on the bus.
struct BusGrant {
  std::uint64_t tag = 0;
  Time first_data;  // its (last) burst's first word is transferred; the words follow one a clock
  Time end;         // the last word has been
};

class BusClient {
 public:
  // Called once a transfer, when its last burst is granted: possibly from within Bus::write, and before
  // first_data and end, for which the client schedules what it does then.
  virtual void bus_granted(const BusGrant& grant) = 0;

 protected:
  ~BusClient() = default;
};

// One burst of a transfer.
struct Burst {
  BusClient* client = nullptr;  // nullptr: not the last burst of its transfer
  std::uint64_t tag = 0;
  std::int64_t bytes = 0;
  Time earliest_start;
};

// What the buses of a machine share: the clocks of bursts, counted into time once, and the memory of their
// queues.
class BusKind {
 public:
  explicit BusKind(const BusDescription& description);
  BusKind(const BusKind&) = delete;
  BusKind& operator=(const BusKind&) = delete;

  [[nodiscard]] const BusDescription& description() const { return description_; }
  // Of a burst with so many words.
  [[nodiscard]] Time burst_time(std::int64_t words) const {
    return burst_time_[static_cast<std::size_t>(words)];
  }
  [[nodiscard]] std::int64_t words(std::int64_t bytes) const {
    return (bytes + description_.width_bytes - 1) / description_.width_bytes;
  }
  // Clocks of a transfer on an idle bus, all its bursts.
  [[nodiscard]] Time occupancy(std::int64_t bytes) const;

 private:
  friend class Bus;
  BusDescription description_;
  std::vector<Time> burst_time_;
  QueuePool<Burst> bursts_;
};

// The I/O bus of a node. Half duplex is a PCI-X segment: one transaction at a time, whoever is its master. A
// burst of b bytes holds the bus for transaction_overhead_cycles + ceil(b / width) clocks; a transfer longer
// than max_burst_bytes is several bursts, and every burst is arbitrated for anew.
//
// Full duplex is PCI Express or HyperTransport: the same, with wires of its own for each direction. Bursts
// are packets (transaction_overhead_cycles is their header); processor writes and read completions go to the
// card; card writes and read requests, a header each, go to the host.
//
// - A read is a split transaction: the request goes out when one of the outstanding_reads slots is free, the
//   bridge answers read_latency later with a completion burst, in order of the requests. The bus clocks of
//   the request are part of transaction_overhead_cycles of its completion.
// - A write is posted: nobody waits for it but the bus.
// - The masters of a lane (processor writes, read completions, card writes, read requests) take turns, burst
//   by burst: none starves another.
//
// Cut-through: a client learns of a packet when its tail is there, but the write may have begun when the
// first words were, had the bus been idle. write() therefore names the earliest start, which may lie in the
// past: the burst then takes the idle time since, and ends when the data it carries ended, at the earliest.
// Nobody is harmed, since whoever had asked for the bus meanwhile would have had it.
//
// The state comes in the order of its use: a large machine asks for the first cache line before it can know
// what is behind it.
class alignas(64) Bus final : private EventHandler {
 public:
  // read_request is the bus's own.
  enum class Master : std::uint8_t { processor = 0, read = 1, card = 2, read_request = 3 };

  // id is unique among the sources of kind host. The kind outlives the bus.
  Bus(Simulation& simulation, BusKind& kind, std::uint32_t id);
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;

  // Clocks of a transfer on an idle bus, all its bursts.
  [[nodiscard]] Time occupancy(std::int64_t bytes) const { return kind_.occupancy(bytes); }

  // Requires bytes > 0. The data are complete at the card (or the processor) now.
  void write(Master master, std::int64_t bytes, Time earliest_start, BusClient& client, std::uint64_t tag);
  void read(std::int64_t bytes, BusClient& client, std::uint64_t tag);

  [[nodiscard]] Time busy() const { return busy_; }  // total, of both lanes

 private:
  using Queue = QueuePool<Burst>::Queue;
  static constexpr std::size_t masters = 4;
  struct Lane {
    Time busy_until;
    std::array<Queue, masters> waiting;
    std::uint8_t waiting_masters = 0;  // a bit for each whose queue is not empty
    std::uint8_t last_master = masters - 1;
    bool release_pending = false;
    std::uint32_t reads_under_way = 0;  // issued, and not granted here
  };

  void handle_event(const Event& event) override;
  void prepare(const Event& event, Ahead ahead) const override;
  void issue_reads();
  [[nodiscard]] bool is_to_host(Master master) const;
  void enqueue(Lane& lane, Master master, const Burst& burst);
  void arbitrate(Lane& lane);
  void grant(Lane& lane, const Burst& burst, Master master);
  [[nodiscard]] const Lane& released(const Event& event) const;
  template <typename Emit>
  void split(std::int64_t bytes, BusClient& client, const Emit& emit) const;

  Lane to_card_;  // a half duplex bus has only this one
  std::unique_ptr<Lane> to_host_;
  Simulation& simulation_;
  BusKind& kind_;
  EventSource source_;
  Queue unissued_reads_;
  Queue issued_reads_;  // at the bridge
  Time read_end_;       // of the read granted last
  Time busy_;
};

}  // namespace apenet
