#include "machine/memoised_timings.hpp"

#include <algorithm>
#include <utility>

#include "kernel/check.hpp"

namespace apenet {
namespace {

// A message of fewer packets moves about as fast by itself.
constexpr std::int64_t least_packets = 4;
// Beyond these, no further messages and timings are recorded.
constexpr std::size_t most_memos = 4096;
constexpr std::size_t most_timings = 1024;
constexpr std::size_t most_timings_each = 8;

constexpr std::uint32_t end_of_hit = ~std::uint32_t{0};

}  // namespace

MemoisedTimings::MemoisedTimings(Simulation& simulation, MessageTable& messages, Rail& rail,
                                 const Placement& placement, EventSource source, Ring ring)
    : simulation_(simulation),
      messages_(messages),
      rail_(rail),
      placement_(placement),
      source_(source),
      ring_(std::move(ring)),
      least_bytes_(least_packets * rail.traits.max_packet_wire_bytes) {}

// Excludes data that the processor writes with the descriptor: that begins before the post.
bool MemoisedTimings::can_hit(const Descriptor& descriptor) {
  return !descriptor.from_cpu && !descriptor.is_lock && descriptor.verb != Verb::credit &&
         descriptor.local_memory == Memory::host && descriptor.remote_memory == Memory::host;
}

MemoisedTimings::Key MemoisedTimings::key_of(const Descriptor& descriptor) {
  const auto flags =
      static_cast<std::uint32_t>(descriptor.verb) | std::uint32_t{descriptor.want_local} << 2U |
      std::uint32_t{descriptor.want_remote} << 3U | std::uint32_t{descriptor.notify_target} << 4U |
      std::uint32_t{descriptor.notify_requester} << 5U | std::uint32_t{descriptor.notify_responder} << 6U |
      std::uint32_t{descriptor.channel} << 8U;
  return {descriptor.source, descriptor.target, descriptor.bytes, flags, descriptor.packet_interval.ps()};
}

bool MemoisedTimings::hit_when_quiescent(Time when, const Descriptor& descriptor, MessageId id) {
  if (simulation_.is_traced() || !can_hit(descriptor)) return false;
  // What a loop-back uses would be listed twice, and its counters be counted twice.
  if (placement_.node(descriptor.source) == placement_.node(descriptor.target)) return false;
  const Key key = key_of(descriptor);
  auto found = memos_.find(key);
  if (found == memos_.end()) {
    if (memos_.size() == most_memos) return false;
    found = memos_.emplace(key, Memo{}).first;
  }
  Memo& memo = found->second;
  if (++memo.seen == 1) return false;  // most messages do not come again
  if (!memo.is_listed) {
    memo.is_listed = true;
    const NodeId source = placement_.node(descriptor.source);
    const NodeId target = placement_.node(descriptor.target);
    if (!rail_.network || !rail_.network->list_state(source, target, memo.states) ||
        !rail_.cards->list_state(source, target, memo.states)) {
      stop();
      return false;
    }
  }
  if (when < std::max(quiescent_since_, simulation_.now()) + memo.states.reach()) return false;
  current_ = &memo;
  for (const Timing& timing : memo.timings) {
    if (!memo.states.equals(timing.before, when)) continue;
    begin_hit(when, descriptor, id, timing);
    return true;
  }
  if (memo.states.is_quiescent(when)) begin_recording(when, descriptor, id);
  return false;
}

void MemoisedTimings::begin_recording(Time when, const Descriptor& descriptor, MessageId id) {
  if (current_->timings.size() == most_timings_each || timing_count_ == most_timings) return;
  phase_ = Phase::recording;
  began_ = when;
  id_ = id;
  to_record_ = MessageTable::reports_of(descriptor);
  recorded_ = Timing{.before = current_->states.checkpoint(when), .after = {}, .reports = {}, .duration = {}};
  messages_.set_watcher(this);
}

void MemoisedTimings::begin_hit(Time when, const Descriptor& descriptor, MessageId id, const Timing& timing) {
  phase_ = Phase::hit;
  began_ = when;
  posted_at_ = simulation_.now();
  timing_ = &timing;
  descriptor_ = descriptor;
  id_ = id;
  given_ = 0;
  ++number_;
  for (std::uint32_t i = 0; i < timing.reports.size(); ++i)
    simulation_.schedule(source_, when + timing.reports[i].after, *this, i, number_);
  simulation_.schedule(source_, when + timing.duration, *this, end_of_hit, number_);
}

void MemoisedTimings::handle_event(const Event& event) {
  if (event.argument_b != number_ || phase_ != Phase::hit) return;
  if (event.argument_a == end_of_hit) {
    end_hit();
    return;
  }
  const Report given = timing_->reports[event.argument_a];
  ++given_;
  report(given);
}

void MemoisedTimings::report(const Report& report) {
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

bool MemoisedTimings::keeps_back(MessageId id, CardTrace what, std::uint32_t mailbox_packets) {
  if (id != id_) return false;
  if (phase_ == Phase::recording) {
    recorded_.reports.push_back({simulation_.now() - began_, what, mailbox_packets});
    // With its last report the number is another message's.
    if (recorded_.reports.size() == to_record_) messages_.set_watcher(nullptr);
    return false;
  }
  if (to_keep_back_ == 0) return false;
  if (--to_keep_back_ == 0) messages_.set_watcher(nullptr);
  return true;
}

void MemoisedTimings::end_hit() {
  current_->states.repeat(timing_->before, timing_->after);
  quiescent_since_ = began_ + timing_->duration;
  phase_ = Phase::none;
}

void MemoisedTimings::end_phase(Time when) {
  if (phase_ == Phase::recording) {
    end_recording();
  } else if (given_ == timing_->reports.size() &&
             when >= began_ + timing_->duration + current_->states.reach()) {
    end_hit();
  } else {
    replay();
  }
}

// The timing is complete if nothing else has happened up to its last event.
void MemoisedTimings::end_recording() {
  phase_ = Phase::none;
  messages_.set_watcher(nullptr);
  if (simulation_.pending_count() != 0 || recorded_.reports.size() < to_record_ ||
      !current_->states.is_quiescent(simulation_.now() + current_->states.reach())) {
    return;
  }
  recorded_.after = current_->states.checkpoint(simulation_.now());
  recorded_.duration = simulation_.now() - began_;
  current_->timings.push_back(std::move(recorded_));
  ++timing_count_;
}

void MemoisedTimings::replay() {
  phase_ = Phase::none;
  if (messages_.is_reporting(id_)) {
    messages_.end_with_this_report(id_);
  } else if (given_ < timing_->reports.size()) {
    messages_.forget(id_);
  }
  id_ = messages_.add(descriptor_);
  to_keep_back_ = given_;
  if (to_keep_back_ > 0) messages_.set_watcher(this);
  simulation_.replay(
      posted_at_, [this] { ring_(began_, id_); }, [this] { return to_keep_back_ > 0; });
  APENET_CHECK(to_keep_back_ == 0, "%u reports of a message that should have been given", to_keep_back_);
}

}  // namespace apenet
