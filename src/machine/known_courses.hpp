// KnownCourses: messages that have the machine to themselves, moved as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "kernel/rest_state.hpp"
#include "kernel/simulation.hpp"
#include "machine/rails.hpp"
#include "nic/messages.hpp"

namespace apenet {

// A message posted while the machine is at rest takes the same course, shifted in time, as an equal one
// posted before in the same state: the same reports after the same times, the same totals, the same state
// behind it. So the course of the second such message is noted, and the following ones only report what it
// reported. Their packets do not move.
//
// If anything else happens before such a course ends, the message's packets move after all: from its post up
// to now, without the reports that have been given. So the results are those of packet by packet.
//
// At rest: no event is pending, and every time in a component's state has passed. Which messages and machines
// take part: `can_follow` and list_rest() of cards and network.
class KnownCourses final : private EventHandler, private MessageWatcher {
 public:
  // Schedules a message's doorbell.
  using Ring = std::function<void(Time when, MessageId id)>;

  // Of a machine with this rail alone. Nothing may be posted yet.
  KnownCourses(Simulation& simulation, MessageTable& messages, Rail& rail, const Placement& placement,
               EventSource source, Ring ring);
  KnownCourses(const KnownCourses&) = delete;
  KnownCourses& operator=(const KnownCourses&) = delete;

  // Call before anything else happens to the machine at `when` or later, and before its totals are read.
  void interrupt(Time when) {
    if (phase_ != Phase::none) end_phase(when);
  }
  // Call when a message to another node is posted, after interrupt(). Returns true if it takes a known
  // course, so that its doorbell must not ring.
  [[nodiscard]] bool follow(Time when, const Descriptor& descriptor, MessageId id) {
    return is_on_ && simulation_.pending_count() == 0 && descriptor.bytes >= least_bytes_ &&
           !messages_.is_reporting() && follow_at_rest(when, descriptor, id);
  }
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
  struct Course {
    RestState::Values before;
    RestState::Values after;
    std::vector<Report> reports;
    Time duration;  // up to its last event
  };
  struct Known {
    RestState state;
    bool is_listed = false;
    std::uint32_t seen = 0;
    std::vector<Course> courses;  // from different choices
  };
  // All that a course depends on, but the state.
  using Key = std::tuple<ProcessId, ProcessId, std::int64_t, std::uint32_t, std::int64_t>;
  enum class Phase : std::uint8_t { none, noting, following };

  [[nodiscard]] static bool can_follow(const Descriptor& descriptor);
  [[nodiscard]] static Key key_of(const Descriptor& descriptor);
  [[nodiscard]] bool follow_at_rest(Time when, const Descriptor& descriptor, MessageId id);
  void note(Time when, const Descriptor& descriptor, MessageId id);
  void begin_course(Time when, const Descriptor& descriptor, MessageId id, const Course& course);
  void end_phase(Time when);
  void end_note();
  void make_up();
  void end_course();
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
  std::map<Key, Known> known_;
  std::size_t course_count_ = 0;

  Phase phase_ = Phase::none;
  Known* current_ = nullptr;
  MessageId id_ = 0;  // of the message noted or followed
  Time began_;        // its post
  Time posted_at_;    // the simulation's time then
  Time rest_since_;   // when the last course followed has ended
  Course noted_;
  std::size_t to_note_ = 0;         // reports
  const Course* course_ = nullptr;  // followed
  Descriptor descriptor_;
  std::uint32_t given_ = 0;         // reports of the message followed
  std::uint32_t to_keep_back_ = 0;  // reports of the packets that move after all
  std::uint64_t number_ = 0;        // of the course followed: an event of an earlier one is void
};

}  // namespace apenet
