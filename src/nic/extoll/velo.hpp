// Velo: the engine for small messages. Turns the processor's writes into packets, and packets into mailbox
// slots.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/extoll/card.hpp"
#include "nic/extoll/rma_unit.hpp"

namespace apenet::extoll {

// The library splits a message into packets of velo_payload_bytes and writes each to the card itself, without
// descriptor or DMA. The requester adds a header; packets leave in the order in which they were written. At
// the target the completer writes each packet, with its status, into the next slot of the process's mailbox,
// a ring in memory that the library polls.
//
// A message occupies its slots until the library has taken it (give_back(), in the order of arrival). A
// packet that finds no free slot waits in the ejection buffer and blocks the packets behind it: credits hold
// their senders back, and nothing is lost. A mailbox full of incomplete messages would block forever, so the
// library then copies them out of their slots to reassemble them, as libraries over VELO do.
//
// Invariants: at most velo_mailbox_entries slots of a process are in use; packets of a process's mailbox are
// written in the order of arrival.
class Velo final : private BusClient, private EventHandler {
 public:
  Velo(Card& card, RmaUnit& responder);
  Velo(const Velo&) = delete;
  Velo& operator=(const Velo&) = delete;

  // Call when the process's processor starts to write the message.
  void send(MessageId id);
  void packet_arrived(const Packet& packet, Time head_time);
  void give_back(ProcessId process);
  void injection_freed() { pump(); }
  void list_engines(EngineList& engines) const {
    engines.add("VELO requesters", requester_);
    engines.add("VELO completers", completer_);
  }

  // An incomplete message: some of its packets have a slot, more are to come.
  struct Beginning {
    MessageId id = 0;
    std::uint32_t slots = 0;
  };
  struct Mailbox {
    std::int64_t slots_in_use = 0;
    std::vector<Beginning> beginnings;
    QueuePool<std::uint32_t>::Queue whole;  // number of slots of each complete message
    QueuePool<Packet>::Queue waiting;       // packets in the ejection buffer that wait for a slot
  };
  struct State {
    Pace requester;
    Pace completer;
    std::vector<QueuePool<MessageId>::Queue> trains;  // one per port in use: what its processor writes
    QueuePool<Packet>::Queue outgoing;
    // Written while packets before them waited for room: `sent` is reported when they leave.
    QueuePool<MessageId>::Queue held_back;
    std::vector<Mailbox> mailboxes;  // one per port in use
  };

 private:
  void bus_granted(const BusGrant& grant) override;
  void note_grant(const BusGrant& grant) const;
  void handle_event(const Event& event) override;

  [[nodiscard]] std::uint32_t packets_of(MessageId id) const;
  void write_packets(QueuePool<MessageId>::Queue& trains, std::uint32_t sequence);
  void write_packet(MessageId id, std::uint32_t sequence);
  void packet_written(MessageId id, std::uint32_t sequence);
  void pump();

  void admit_waiting(Mailbox& mailbox, Time earliest);
  void reassemble(Mailbox& mailbox);
  void take_slot(Mailbox& mailbox, const Packet& packet);
  void slot_written(const Packet& packet);

  Card& card_;
  RmaUnit& responder_;
  State state_;
  EngineUse requester_;
  EngineUse completer_;
};

}  // namespace apenet::extoll
