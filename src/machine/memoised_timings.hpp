// MemoisedTimings: messages that have the machine to themselves, moved as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "kernel/simulation.hpp"
#include "kernel/state.hpp"
#include "machine/rails.hpp"
#include "nic/messages.hpp"

namespace apenet {

// A message posted while the machine is quiescent takes as long as an equal one posted before in the same
// state: it has the same reports after the same times, adds the same to the counters, and leaves the same
// state behind. So the timing of the second such message is recorded, and the following ones, the hits, only
// report what it reported. Their packets do not move.
//
// If anything else happens before a hit ends, its packets are replayed: they move from the post up to now,
// without the reports that have been given. So the results are those of packet by packet.
//
// Quiescent: no event is pending, and every time in the state of a component that the message uses has
// passed. Which messages and machines take part: `can_hit` and list_state() of cards and network.
class MemoisedTimings final : private EventHandler, private MessageWatcher {
 public:
  // Schedules a message's doorbell.
  using Ring = std::function<void(Time when, MessageId id)>;

  // For a machine with this rail alone. Nothing may be posted yet.
  MemoisedTimings(Simulation& simulation, MessageTable& messages, Rail& rail, const Placement& placement,
                  EventSource source, Ring ring);
  MemoisedTimings(const MemoisedTimings&) = delete;
  MemoisedTimings& operator=(const MemoisedTimings&) = delete;

  // Call before anything else happens to the machine at `when` or later, and before its counters are read.
  void interrupt(Time when) {
    if (phase_ != Phase::none) end_phase(when);
  }
  // Call when a message to a card is posted, after interrupt(). Returns true for a hit: its doorbell
  // must not ring.
  [[nodiscard]] bool hit(Time when, const Descriptor& descriptor, MessageId id) {
    return is_on_ && simulation_.pending_count() == 0 && descriptor.bytes >= least_bytes_ &&
           !messages_.is_reporting() && hit_when_quiescent(when, descriptor, id);
  }
  [[nodiscard]] bool is_hit() const { return phase_ == Phase::hit; }
  // From now on every packet moves.
  void stop() {
    interrupt(simulation_.now());
    is_on_ = false;
  }

 private:
  struct Report {
    Time after;
    CardTrace what;
    std::uint32_t mailbox_packets;
  };
  struct Timing {
    StateList::Checkpoint before;
    StateList::Checkpoint after;
    std::vector<Report> reports;
    Time duration;  // up to its last event
  };
  struct Memo {
    StateList states;  // states of all that the message uses
    bool is_listed = false;
    std::uint32_t seen = 0;
    std::vector<Timing> timings;  // from different states
  };
  // All that a timing depends on, but the state.
  using Key = std::tuple<ProcessId, ProcessId, std::int64_t, std::uint32_t, std::int64_t>;
  enum class Phase : std::uint8_t { none, recording, hit };

  [[nodiscard]] static bool can_hit(const Descriptor& descriptor);
  [[nodiscard]] static Key key_of(const Descriptor& descriptor);
  [[nodiscard]] bool hit_when_quiescent(Time when, const Descriptor& descriptor, MessageId id);
  void begin_recording(Time when, const Descriptor& descriptor, MessageId id);
  void begin_hit(Time when, const Descriptor& descriptor, MessageId id, const Timing& timing);
  void end_phase(Time when);
  void end_recording();
  void replay();
  void end_hit();
  void report(const Report& report);
  void handle_event(const Event& event) override;
  bool keeps_back(MessageId id, CardTrace what, std::uint32_t mailbox_packets) override;

  Simulation& simulation_;
  MessageTable& messages_;
  Rail& rail_;
  const Placement& placement_;
  EventSource source_;
  Ring ring_;
  bool is_on_ = true;
  std::int64_t least_bytes_;
  std::map<Key, Memo> memos_;
  std::size_t timing_count_ = 0;

  Phase phase_ = Phase::none;
  Memo* current_ = nullptr;
  MessageId id_ = 0;      // id of the recorded message, or of the hit
  Time began_;            // its post
  Time posted_at_;        // the simulation's time then
  Time quiescent_since_;  // when the last hit has ended: its times are not in the states
  Timing recorded_;
  std::size_t to_record_ = 0;       // reports
  const Timing* timing_ = nullptr;  // the hit's
  Descriptor descriptor_;
  std::uint32_t given_ = 0;         // reports of the hit
  std::uint32_t to_keep_back_ = 0;  // reports of the packets that are replayed
  std::uint64_t number_ = 0;        // number of the hit: an event of an earlier one is void
};

}  // namespace apenet
