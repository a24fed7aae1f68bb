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
  Time end;    // when the last word has been transferred
  Time ready;  // the last burst could begin
  Time begin;  // and began
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
  std::uint32_t bytes = 0;
  bool ends_request = true;  // the last burst that answers one read request
  Time earliest_start;
};

// Who transfers on a bus. The bus itself sends the requests of reads.
enum class BusMaster : std::uint8_t { processor = 0, read = 1, card = 2, read_request = 3 };
inline constexpr std::size_t bus_masters = 4;

// Sizes of PCI Express, the same for generations 1 to 5. A packet has 8 bytes of framing, sequence number and
// check, and a header of 12 bytes, or 16 with an address of 64 bits (Intel AN 456, "Understanding PCI Express
// Throughput": 5 to 7 words of 4 bytes). A packet of the link layer has 8 bytes (the same: two words).
namespace pcie {
inline constexpr std::int64_t word_bytes = 4;  // a packet begins and ends at a multiple of it
inline constexpr std::int64_t request_header_bytes = 24;
inline constexpr std::int64_t completion_header_bytes = 20;
inline constexpr std::int64_t link_packet_bytes = 8;
}  // namespace pcie

// What the description of a bus means: the durations of its bursts.
class BusKind {
 public:
  explicit BusKind(const BusDescription& description);

  [[nodiscard]] const BusDescription& description() const { return description_; }
  // The duration of a master's burst with this payload.
  [[nodiscard]] Time burst_time(BusMaster master, std::int64_t bytes) const {
    const auto words = static_cast<std::size_t>((bytes + word_bytes_ - 1) / word_bytes_);
    return burst_time_[header_words_[static_cast<std::size_t>(master)] + words];
  }
  // Time from the start of a burst to its first word of payload.
  [[nodiscard]] Time first_word(BusMaster master) const {
    return burst_time_[header_words_[static_cast<std::size_t>(master)] + 1];
  }
  // The duration of all bursts of a write on an idle bus.
  [[nodiscard]] Time occupancy(std::int64_t bytes) const;
  // The largest payload that answers one request, and that of one burst of the answer.
  [[nodiscard]] std::int64_t request_bytes() const { return request_bytes_; }
  [[nodiscard]] std::int64_t completion_bytes() const { return completion_bytes_; }
  // What PCI Express sends back for packets_per_update packets to the card, or to the host.
  [[nodiscard]] Time update_time(bool to_card) const { return update_time_[to_card ? 1 : 0]; }
  // The span by which a write of this payload keeps credits from later ones, in the long run.
  [[nodiscard]] Time credit_time(std::int64_t bytes) const {
    return Time::from_ps(scale_up(description_.credit_return.ps(), bytes, description_.posted_credit_bytes));
  }

 private:
  [[nodiscard]] Time wire_time(std::int64_t bytes) const;

  BusDescription description_;
  const std::int64_t word_bytes_;
  const std::int64_t request_bytes_;
  const std::int64_t completion_bytes_;
  // Clocks by words: of payload after the overhead; with PCI Express, of header and payload together.
  std::vector<Time> burst_time_;
  std::array<std::uint8_t, bus_masters> header_words_ = {};
  std::array<Time, 2> update_time_ = {};
};

// What the buses of a machine share.
struct Buses {
  Buses(Simulation& simulation_, const BusDescription& description)
      : simulation(simulation_), kind(description) {}

  Simulation& simulation;
  const BusKind kind;
  struct State {
    QueuePool<Burst> bursts;  // bursts of all queues
    // When the credits of all writes will be back, for each bus with posted_credit_bytes.
    std::vector<Time> credits_back;
  };
  State state;
  // The sums over all buses, so that a bus fits two cache lines.
  struct Counters {
    Time waited;  // all bursts, from when they could begin until they did
    std::uint64_t bursts = 0;
  };
  Counters counters;
  std::uint32_t first_id = 0;  // first id of the buses, whose ids are consecutive
};

// The I/O bus of a node. Half duplex is a PCI-X segment: one transaction at a time, from any master. A burst
// of b bytes holds the bus for transaction_overhead_cycles + ceil(b / width) clocks. A transfer longer than
// max_burst_bytes is split into bursts, each of which is arbitrated separately.
//
// Full duplex is PCI Express or HyperTransport: the same, with separate lanes for the two directions. Bursts
// are packets (transaction_overhead_cycles is their header). Processor writes and read completions go to the
// card; card writes and read requests, which consist of a header, go to the host.
//
// With a pcie_generation the packets have the sizes of PCI Express: writes of up to max_burst_bytes, requests
// for up to read_request_bytes, each answered by completions of up to completion_bytes. A request holds its
// slot (its tag) until its last completion has ended. After packets_per_update packets of a direction the
// other one carries acknowledgement and credits; they wait for a packet that is under way, and cost nothing
// in an idle direction. Writes beyond posted_credit_bytes wait until credits are back, and what follows them
// waits too, because a read request may not pass a write.
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
  using Master = BusMaster;

  // `id` is unique among the sources of kind host. `all` must outlive the bus.
  Bus(Buses& all, std::uint32_t id);
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;

  // The duration of all bursts of a write on an idle bus.
  [[nodiscard]] Time occupancy(std::int64_t bytes) const { return all_.kind.occupancy(bytes); }

  // Both require bytes > 0. write(): the data are complete at the master now.
  void write(Master master, std::int64_t bytes, Time earliest_start, BusClient& client, std::uint64_t tag);
  void read(std::int64_t bytes, BusClient& client, std::uint64_t tag);

  using Queue = QueuePool<Burst>::Queue;
  static constexpr std::size_t masters = bus_masters;
  struct Lane {
    Time busy_until;
    std::uint8_t waiting_masters = 0;  // one bit per master with something to transfer
    std::uint8_t last_master = masters - 1;
    bool release_pending = false;
    std::uint8_t packets = 0;           // since the last update that answered this lane
    std::uint32_t reads_under_way = 0;  // issued and not yet granted on this lane
  };
  struct State {
    std::array<Queue, masters> waiting;  // each master uses one lane
    Queue unissued_reads;
    Queue issued_reads;  // at the bridge
    Time read_end;       // end of the last granted read
    EventSource source;
    Lane to_card;  // the only lane of a half duplex bus
    Lane to_host;
  };
  struct Counters {
    Time busy;  // both lanes
  };

  // Lists what later transfers depend on, and what it counts alone.
  void list_state(StateList& list) {
    list.state(state_);
    if (has_credits()) list.state(credits_back());
    list.counters(counters_);
  }
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] const Buses& all() const { return all_; }

 private:
  void handle_event(const Event& event) override;
  void prepare(const Event& event, Ahead ahead) const override;
  void issue_reads();
  [[nodiscard]] bool is_to_host(Master master) const;
  void enqueue(Lane& lane, Master master, const Burst& burst);
  void arbitrate(Lane& lane);
  void grant(Lane& lane, const Burst& burst, Master master);
  void answer_packet(Lane& lane);
  [[nodiscard]] Time take_credits(Time start, std::int64_t bytes);
  void move_request(Queue& from, Queue& to);
  [[nodiscard]] bool has_credits() const { return all_.kind.description().posted_credit_bytes > 0; }
  [[nodiscard]] Time& credits_back() { return all_.state.credits_back[state_.source.id - all_.first_id]; }

  Buses& all_;
  Counters counters_;
  State state_;
};

static_assert(sizeof(Bus) == 128);

}  // namespace apenet
