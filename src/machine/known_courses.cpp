#include "machine/known_courses.hpp"

#include <algorithm>
#include <utility>

#include "kernel/check.hpp"

namespace apenet {
namespace {

// A message of fewer packets moves about as fast by itself.
constexpr std::int64_t least_packets = 4;
// Beyond these, no further messages and courses are noted.
constexpr std::size_t most_known = 4096;
constexpr std::size_t most_courses = 1024;
constexpr std::size_t most_courses_each = 8;

constexpr std::uint32_t end_of_course = ~std::uint32_t{0};

}  // namespace

KnownCourses::KnownCourses(Simulation& simulation, MessageTable& messages, Rail& rail,
                           const Placement& placement, EventSource source, Ring ring)
    : simulation_(simulation),
      messages_(messages),
      rail_(rail),
      placement_(placement),
      source_(source),
      ring_(std::move(ring)),
      least_bytes_(least_packets * rail.facts.max_packet_wire_bytes) {}

// What the processor writes with the descriptor reaches back to before the post.
bool KnownCourses::can_follow(const Descriptor& descriptor) {
  return !descriptor.from_cpu && !descriptor.is_lock && descriptor.verb != Verb::credit &&
         descriptor.local_memory == Memory::host && descriptor.remote_memory == Memory::host;
}

KnownCourses::Key KnownCourses::key_of(const Descriptor& descriptor) {
  const auto flags =
      static_cast<std::uint32_t>(descriptor.verb) | std::uint32_t{descriptor.want_local} << 2U |
      std::uint32_t{descriptor.want_remote} << 3U | std::uint32_t{descriptor.notify_target} << 4U |
      std::uint32_t{descriptor.notify_requester} << 5U | std::uint32_t{descriptor.notify_responder} << 6U |
      std::uint32_t{descriptor.channel} << 8U;
  return {descriptor.source, descriptor.target, descriptor.bytes, flags, descriptor.packet_interval.ps()};
}

bool KnownCourses::follow_at_rest(Time when, const Descriptor& descriptor, MessageId id) {
  if (simulation_.is_traced() || !can_follow(descriptor)) return false;
  const Key key = key_of(descriptor);
  auto found = known_.find(key);
  if (found == known_.end()) {
    if (known_.size() == most_known) return false;
    found = known_.emplace(key, Known{}).first;
  }
  Known& known = found->second;
  if (++known.seen == 1) return false;  // most messages do not come again
  if (!known.is_listed) {
    known.is_listed = true;
    const NodeId source = placement_.node(descriptor.source);
    const NodeId target = placement_.node(descriptor.target);
    if (!rail_.network || !rail_.network->list_rest(source, target, known.state) ||
        !rail_.cards->list_rest(source, target, known.state)) {
      stop();
      return false;
    }
  }
  if (when < std::max(rest_since_, simulation_.now()) + known.state.rest_after()) return false;
  current_ = &known;
  for (const Course& course : known.courses) {
    if (!known.state.has_choices_of(course.before)) continue;
    begin_course(when, descriptor, id, course);
    return true;
  }
  note(when, descriptor, id);
  return false;
}

void KnownCourses::note(Time when, const Descriptor& descriptor, MessageId id) {
  if (current_->courses.size() == most_courses_each || course_count_ == most_courses) return;
  phase_ = Phase::noting;
  began_ = when;
  id_ = id;
  to_note_ = MessageTable::reports_of(descriptor);
  noted_ = Course{.before = current_->state.read(), .after = {}, .reports = {}, .duration = {}};
  messages_.set_watcher(this);
}

void KnownCourses::begin_course(Time when, const Descriptor& descriptor, MessageId id, const Course& course) {
  phase_ = Phase::following;
  began_ = when;
  posted_at_ = simulation_.now();
  course_ = &course;
  descriptor_ = descriptor;
  id_ = id;
  given_ = 0;
  ++number_;
  for (std::uint32_t i = 0; i < course.reports.size(); ++i)
    simulation_.schedule(source_, when + course.reports[i].after, *this, i, number_);
  simulation_.schedule(source_, when + course.duration, *this, end_of_course, number_);
}

void KnownCourses::handle_event(const Event& event) {
  if (event.argument_b != number_ || phase_ != Phase::following) return;
  if (event.argument_a == end_of_course) {
    end_course();
    return;
  }
  const Report given = course_->reports[event.argument_a];
  ++given_;
  report(given);
}

void KnownCourses::report(const Report& report) {
  switch (report.what) {
    case CardTrace::sent:
      messages_.sent(id_);
      break;
    case CardTrace::remote_done:
      messages_.remote_done(id_);
      break;
    case CardTrace::served:
      messages_.served(id_);
      break;
    default:  // arrived, or got
      messages_.delivered(id_, report.mailbox_packets);
      break;
  }
}

bool KnownCourses::keeps_back(MessageId id, CardTrace what, std::uint32_t mailbox_packets) {
  if (id != id_) return false;
  if (phase_ == Phase::noting) {
    noted_.reports.push_back({simulation_.now() - began_, what, mailbox_packets});
    // With its last report the number is another message's.
    if (noted_.reports.size() == to_note_) messages_.set_watcher(nullptr);
    return false;
  }
  if (to_keep_back_ == 0) return false;
  if (--to_keep_back_ == 0) messages_.set_watcher(nullptr);
  return true;
}

void KnownCourses::end_course() {
  current_->state.repeat(course_->before, course_->after);
  rest_since_ = began_ + course_->duration;
  phase_ = Phase::none;
}

void KnownCourses::end_phase(Time when) {
  if (phase_ == Phase::noting) {
    end_note();
  } else if (given_ == course_->reports.size() &&
             when >= began_ + course_->duration + current_->state.rest_after()) {
    end_course();
  } else {
    make_up();
  }
}

// The course has an end if nothing else has happened up to it.
void KnownCourses::end_note() {
  phase_ = Phase::none;
  messages_.set_watcher(nullptr);
  if (simulation_.pending_count() != 0 || noted_.reports.size() < to_note_) return;
  noted_.after = current_->state.read();
  noted_.duration = simulation_.now() - began_;
  current_->courses.push_back(std::move(noted_));
  ++course_count_;
}

void KnownCourses::make_up() {
  phase_ = Phase::none;
  if (messages_.is_reporting(id_)) {
    messages_.end_with_this_report(id_);
  } else if (given_ < course_->reports.size()) {
    messages_.forget(id_);
  }
  id_ = messages_.add(descriptor_);
  to_keep_back_ = given_;
  if (to_keep_back_ > 0) messages_.set_watcher(this);
  simulation_.make_up(
      posted_at_, [this] { ring_(began_, id_); }, [this] { return to_keep_back_ > 0; });
  APENET_CHECK(to_keep_back_ == 0, "%u reports of a message that should have been given", to_keep_back_);
}

}  // namespace apenet
