#include "runtime/scheduler/request_validation.hpp"
#include "kernel/one_line.hpp"

#include <array>
#include <atomic>
#include <cstring>

namespace apenet::validation {
namespace {

// Prevents the compiler from reading shared memory again after the copy.
void finish_copy() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// The text of a field.
template <std::size_t bytes>
std::string text_of(const char (&field)[bytes]) {
  std::array<char, bytes> copy{};
  std::memcpy(copy.data(), field, bytes);
  finish_copy();
  return {copy.data(), strnlen(copy.data(), bytes)};
}

// One field of data written by a process.
class Field {
 public:
  Field(std::uint32_t rank, const char* what, const char* name, std::int64_t value)
      : rank_(rank), what_(what), name_(name), value_(value) {}

  void at_most(std::int64_t most) const {
    if (value_ < 0 || value_ > most) refuse(rank_, what_, name_, value_, "at most " + std::to_string(most));
  }
  void below(std::int64_t bound, const char* of) const {
    if (value_ < 0 || value_ >= bound)
      refuse(rank_, what_, name_, value_, "below the " + std::to_string(bound) + of);
  }
  void between(std::int64_t least, std::int64_t most) const {
    if (value_ < least || value_ > most)
      refuse(rank_, what_, name_, value_, std::to_string(least) + " to " + std::to_string(most));
  }
  void one_of(bool holds, const char* expected) const {
    if (!holds) refuse(rank_, what_, name_, value_, expected);
  }

 private:
  std::uint32_t rank_;
  const char* what_;
  const char* name_;
  std::int64_t value_;
};

void check_clock(std::uint32_t rank, std::int64_t now_ps, std::int64_t seen_ps) {
  Field(rank, "clock", "now_ps", now_ps).between(seen_ps, ipc::end_of_time_ps);
}

constexpr int all_flags = ipc::from_cpu | ipc::want_local | ipc::want_remote | ipc::notify_target |
                          ipc::by_key | ipc::local_gpu | ipc::remote_gpu | ipc::lock;

// Names the memory of another process by an address alone: only the answer of a rendezvous does, which the
// message engine of libfabric and apelib gives (message/engine_send.hpp), and which MemoryOffers checks. No
// other interface opens its memory to whoever knows an address. An empty access touches no memory.
void check_key(std::uint32_t rank, const ipc::Request& request) {
  const bool is_get = request.verb == ipc::RequestVerb::get;
  const bool is_access = is_get || request.verb == ipc::RequestVerb::put;
  if (!is_access || request.bytes == 0 || (request.flags & ipc::by_key) != 0) return;
  const bool has_rendezvous =
      request.interface == ipc::Interface::libfabric || request.interface == ipc::Interface::apelib;
  Field(rank, "request", "flags", request.flags).one_of(has_rendezvous && !is_get, "by_key on this access");
}

// Only a put names memory of its target that may be in a GPU. The CPU writes no payload of a GPU to the card.
void check_gpu_flags(std::uint32_t rank, const ipc::Request& request) {
  const Field flags(rank, "request", "flags", request.flags);
  const bool to_gpu = (request.flags & ipc::remote_gpu) != 0;
  const bool from_gpu = (request.flags & ipc::local_gpu) != 0;
  flags.one_of(!(from_gpu && (request.flags & ipc::from_cpu) != 0), "from_cpu or local_gpu, not both");
  flags.one_of(!to_gpu || request.verb == ipc::RequestVerb::put, "remote_gpu on a put only");
}

// Beside a send's: the payload of a put that the CPU writes, and the operands of a lock.
void check_inline_payload(std::uint32_t rank, const ipc::Request& request) {
  const Field length(rank, "request", "inline_length", request.inline_length);
  const bool is_put_by_cpu = request.verb == ipc::RequestVerb::put && (request.flags & ipc::from_cpu) != 0;
  if ((request.flags & ipc::lock) != 0) {
    constexpr std::uint8_t wanted = ipc::lock | ipc::by_key;
    Field(rank, "request", "flags", request.flags)
        .one_of(request.verb == ipc::RequestVerb::get && (request.flags & wanted) == wanted,
                "lock on a get by key only");
    length.between(message::lock_bytes, message::lock_bytes);
    Field(rank, "request", "bytes", request.bytes).between(message::lock_bytes, message::lock_bytes);
  } else if (is_put_by_cpu && request.inline_length > 0) {
    length.between(request.bytes, request.bytes);
  } else if (request.verb != ipc::RequestVerb::send) {
    length.at_most(0);
  }
}

void check_payload(std::uint32_t rank, const ipc::Request& request) {
  const auto field = [rank](const char* name, std::int64_t value) {
    return Field(rank, "request", name, value);
  };
  const bool is_send = request.verb == ipc::RequestVerb::send;
  if (request.verb == ipc::RequestVerb::socket) {  // IpNetwork::is_valid() checks the rest
    field("slot", request.slot).one_of(request.slot == ipc::no_slot, "none, because nothing is sent");
    field("slot_length", request.slot_length).at_most(0);
    return;
  }
  if (request.slot == ipc::no_slot) {
    field("slot_length", request.slot_length).at_most(0);
  } else {
    field("slot", request.slot).one_of(is_send, "none, because nothing is sent");
    field("slot", request.slot).below(ipc::slots_per_process, " slots of a process");
    field("slot_length", request.slot_length).at_most(ipc::slot_bytes);
  }
  check_inline_payload(rank, request);
  const std::int64_t payload = std::int64_t{request.inline_length} + request.slot_length;
  if (payload > request.bytes)
    refuse(rank, "request", "bytes", request.bytes, "at least its payload of " + std::to_string(payload));
}

}  // namespace

void refuse(std::uint32_t rank, const char* what, const char* field, std::int64_t value,
            const std::string& expected) {
  throw RankError(rank, std::string("wrote an invalid ") + what + ": " + field + " = " +
                            std::to_string(value) + ", expected " + expected);
}

std::optional<RankInput> input_of(ipc::Wait wait) {
  switch (wait) {
    case ipc::Wait::for_event:
      return RankInput::reports_event_wait;
    case ipc::Wait::until:
      return RankInput::reports_time_wait;
    case ipc::Wait::computes:
      return RankInput::reports_compute;
    case ipc::Wait::flush:
      return RankInput::reports_flush;
    case ipc::Wait::start:
      return RankInput::reports_start;
    case ipc::Wait::finished:
      return RankInput::reports_leave;
    case ipc::Wait::running:
      break;
  }
  return {};
}

WaitReport wait_report(std::uint32_t rank, const ipc::Block& block, std::int64_t clock_seen_ps) {
  const ipc::Wait wait = block.grant.wait;
  WaitReport report;
  report.clock_ps = block.clock.now_ps();
  const std::int64_t deadline_ps = block.grant.deadline_ps;
  const std::uint32_t least_events = block.grant.least_events;
  finish_copy();
  const auto reason = static_cast<std::uint32_t>(wait);
  Field(rank, "state", "wait", reason)
      .between(static_cast<std::uint32_t>(ipc::Wait::for_event),
               static_cast<std::uint32_t>(ipc::Wait::finished));
  check_clock(rank, report.clock_ps, clock_seen_ps);
  // A process that has left keeps running and never waits.
  if (wait == ipc::Wait::finished && block.grant.run != ipc::Run::may_run)
    refuse(rank, "state", "wait", reason, "the reason of a process that waits");
  const bool waits_for_event = wait == ipc::Wait::for_event;
  const bool has_deadline =
      wait == ipc::Wait::until || wait == ipc::Wait::computes || (waits_for_event && deadline_ps != 0);
  if (has_deadline) {
    Field(rank, "state", "deadline_ps", deadline_ps).between(clock_seen_ps, ipc::end_of_time_ps);
    report.deadline_ps = deadline_ps;
  }
  if (waits_for_event) {
    Field(rank, "state", "least_events", least_events).between(1, ipc::event_ring);
    report.least_events = least_events;
  }
  report.input = *input_of(wait);
  return report;
}

std::int64_t clock_ps(std::uint32_t rank, const ipc::Block& block, std::int64_t clock_seen_ps) {
  const std::int64_t clock_ps = block.clock.now_ps();
  finish_copy();
  check_clock(rank, clock_ps, clock_seen_ps);
  return clock_ps;
}

void request(std::uint32_t rank, const ipc::Request& shared, std::int64_t earliest_ps, std::int64_t latest_ps,
             RunSize size, ipc::Request& to) {
  std::memcpy(static_cast<void*>(&to), &shared, offsetof(ipc::Request, inline_data));
  finish_copy();
  const auto field = [rank](const char* name, std::int64_t value) {
    return Field(rank, "request", name, value);
  };
  field("inline_length", to.inline_length).at_most(ipc::inline_bytes);
  std::memcpy(to.inline_data, shared.inline_data, to.inline_length);
  field("verb", static_cast<std::uint8_t>(to.verb))
      .at_most(static_cast<std::uint8_t>(ipc::RequestVerb::socket));
  field("flags", to.flags).at_most(all_flags);
  field("target", to.target).below(size.process_count, " processes");
  field("rail", to.rail).below(size.rail_count, " rails of a node");
  const auto interface = static_cast<std::uint8_t>(to.interface);
  field("interface", interface).below(ipc::interface_count, " interfaces");
  field("interface", interface)
      .one_of(to.verb != ipc::RequestVerb::release || message::keeps_places(to.interface),
              "one whose library releases messages");
  field("bytes", to.bytes).between(0, most_bytes);
  check_gpu_flags(rank, to);
  field("time_ps", to.time_ps).between(earliest_ps, latest_ps);
  field("no_reply", to.no_reply).at_most(1);
  check_payload(rank, to);
  check_key(rank, to);
  if (to.verb == ipc::RequestVerb::signal)
    field("immediate", static_cast<std::int64_t>(to.immediate)).between(1, ipc::most_signal);
}

std::uint32_t added(std::uint32_t rank, const char* name, std::uint32_t count, std::uint32_t seen,
                    std::uint32_t most) {
  const std::uint32_t more = count - seen;  // counters wrap around
  if (more > most) {
    refuse(rank, "ring", name, count,
           "at most " + std::to_string(most) + " beyond the " + std::to_string(seen) + " seen before");
  }
  return more;
}

std::int64_t taken_ps(std::uint32_t rank, const ipc::Event& shared, std::int64_t visible_ps,
                      std::int64_t clock_ps) {
  const std::int64_t taken = shared.time_ps;
  finish_copy();
  Field(rank, "event", "time_ps", taken).between(visible_ps, clock_ps);
  return taken;
}

Returned returned(std::uint32_t rank, const std::uint32_t (&shared)[2], std::uint32_t process_count) {
  const Returned slot{.owner = shared[0], .slot = shared[1]};
  finish_copy();
  Field(rank, "returned slot", "owner", slot.owner).below(process_count, " processes");
  Field(rank, "returned slot", "slot", slot.slot).below(ipc::slots_per_process, " slots of a process");
  return slot;
}

std::string printable(std::string_view text, bool has_lines) {
  if (!has_lines) return one_line(text);
  std::string lines;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    lines += one_line(text.substr(0, end)) + '\n';
    text.remove_prefix(end + 1);
  }
  return lines + one_line(text);
}

std::string library(const ipc::Identity& identity) {
  return printable(text_of(identity.library));
}

std::string unfollowed(const ipc::Identity& identity) {
  return printable(text_of(identity.unfollowed));
}

std::string refusal(const ipc::Identity& identity) {
  return identity.refused != 0 ? printable(text_of(identity.refusal), true) : std::string{};
}

}  // namespace apenet::validation
