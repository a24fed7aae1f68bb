// Transmitter: the sending half of every generation of APENet cards. Turns descriptors into packets.
#pragma once

#include <cstdint>

#include "nic/apelink/card.hpp"

namespace apenet::apelink {

// Each port has one descriptor FIFO per hardware queue. The entry at the head of a FIFO is decoded, then
// split into packets; the queues take turns packet by packet. For each packet, space in the injection buffer
// is reserved first (credits hold the sender back), then the payload is read by DMA. The packet is passed to
// the network when its first word arrives, and the rest of the burst follows. A card that can access a GPU
// also reads payload there; each memory answers in the order of requests.
//
// Invariants: packets of one queue are injected in the order of their descriptors, whether they needed a read
// or not; reserved space is never given twice; at most outstanding_reads payload reads are in progress.
class Transmitter final : private BusClient, private EventHandler {
 public:
  static constexpr std::int64_t max_queues = 64;  // ports x queues; one bit each in State::decoded

  explicit Transmitter(Card& card);
  Transmitter(const Transmitter&) = delete;
  Transmitter& operator=(const Transmitter&) = delete;

  // The doorbell of a process.
  void doorbell(MessageId id) {
    const bool is_get = card_.all.messages.descriptor(id).verb == Verb::get;
    post(id, is_get ? Role::get_request : Role::data);
  }
  // Posts a descriptor: of a process, or of the driver (get_reply).
  void post(MessageId id, Role role);
  // Sends an acknowledgement to the source when its message is complete in this node's memory.
  void acknowledge(MessageId id);
  void injection_freed(std::uint16_t channel);
  struct State {
    std::uint32_t read_count = 0;        // payload reads in progress
    unsigned next_queue = 0;             // arbiter state: the next queue to serve
    std::uint64_t decoded = 0;           // one bit per queue whose head is decoded
    std::uint32_t acknowledgements = 0;  // waiting acknowledgements of all channels
  };
  void list_state(StateList& list) {
    list.state(state_);
    const std::size_t ports = card_.all.placement.processes_on(card_.node());
    for (std::size_t i = 0; i < ports * channel_count(); ++i) {
      list.state(queues_[i]);
      list.counters(decoder(i));
    }
  }
  void list_engines(EngineList& engines) const {
    const std::size_t ports = card_.all.placement.processes_on(card_.node());
    for (std::size_t i = 0; i < ports * channel_count(); ++i) engines.add("descriptor decoders", decoder(i));
    engines.add("drivers", card_.driver);
  }
  // A doorbell will ring soon.
  [[gnu::always_inline]] void prepare_doorbell() const { __builtin_prefetch(queues_); }

 private:
  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;
  void prepare(const Event& event, Ahead ahead) const override;

  [[nodiscard]] EngineUse& decoder(std::size_t queue) const {
    return card_.all.decoders[static_cast<std::size_t>(queues_ - card_.all.state.queues.data()) + queue];
  }
  [[nodiscard]] Channel& channel(std::size_t number) const { return queues_[number].channel; }
  [[nodiscard]] std::size_t channel_count() const {
    return static_cast<std::size_t>(card_.all.description.queues);
  }
  void payload_granted(const BusGrant& grant);
  void payload_comes(std::uint16_t number, Memory memory, Time tail_time);
  [[nodiscard]] std::size_t queue_index(MessageId id, Role role) const;
  void write_descriptor(std::size_t queue, const QueuedDescriptor& entry);
  void fetch_descriptor(std::size_t queue);
  void descriptor_granted(const BusGrant& grant);
  void decode_head(std::size_t queue);
  void finish_head(std::size_t queue);

  void pump();
  bool issue_packet(std::size_t queue);
  void issue_acknowledgements();
  [[nodiscard]] bool has_room(std::uint16_t number, std::int64_t wire_bytes);
  [[nodiscard]] Packet make_packet(MessageId id, Role role, std::uint32_t sequence) const;
  void inject(const Packet& packet, Time tail_time);
  void inject_what_has_its_data(std::uint16_t number);
  void report_sent(MessageId id);

  Card& card_;
  Queue* queues_;  // ordered by port, for the ports in use
  State state_;
};

}  // namespace apenet::apelink
