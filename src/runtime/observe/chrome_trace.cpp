#include "runtime/observe/chrome_trace.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <utility>

#include "kernel/refuse.hpp"
#include "network/network_trace.hpp"
#include "nic/messages.hpp"
#include "runtime/observe/process_trace.hpp"

namespace apenet {
namespace {

// The groups of tracks, called "processes" in the format.
enum Group : int { ranks = 1, messages = 2, links = 3 };

constexpr std::uint32_t most_lanes = 1000;  // that have a position of their own, of one process

// Microseconds, as the format requires, with picosecond resolution.
struct Microseconds {
  long long whole;
  long long fraction;  // millionths
};

Microseconds microseconds(Time time) {
  return {static_cast<long long>(time.ps() / 1'000'000), static_cast<long long>(time.ps() % 1'000'000)};
}

const char* verb_name(std::uint64_t verb) {
  switch (static_cast<Verb>(verb)) {
    case Verb::send:
      return "send";
    case Verb::put:
      return "put";
    case Verb::get:
    case Verb::credit:  // never recorded as landed
      break;
  }
  return "get";
}

}  // namespace

ChromeTrace::ChromeTrace(const std::string& path, std::vector<std::uint32_t> node_of_process,
                         std::vector<std::string> link_names, Options options)
    : file_(std::fopen(path.c_str(), "we")),
      options_(std::move(options)),
      link_names_(std::move(link_names)),
      is_named_(link_names_.size()),
      rows_(link_names_.size()),
      lane_ends_(node_of_process.size()),
      landings_(node_of_process.size()),
      process_count_(static_cast<std::uint32_t>(node_of_process.size())) {
  if (file_ == nullptr) {
    refuse_value("trace", path, std::string("a file that can be written (") + std::strerror(errno) + ")");
  }
  if (!options_.filter.ranks.empty()) {
    chosen_nodes_.resize(1 + *std::max_element(node_of_process.begin(), node_of_process.end()));
    for (std::uint32_t process = 0; process < process_count_; ++process) {
      if (is_chosen(process)) chosen_nodes_[node_of_process[process]] = true;
    }
  }
  // The Python side recognises by this line a file that it may overwrite.
  std::fputs("{\"displayTimeUnit\": \"ns\", \"otherData\": {\"writer\": \"apenet\"}, \"traceEvents\": [\n",
             file_.get());
  std::fputs("{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"ranks\"}}", file_.get());
  name_group(messages, "messages");
  name_group(links, "links");
  for (std::uint32_t rank = 0; rank < process_count_; ++rank) {
    if (is_chosen(rank)) name_track(Group::ranks, rank, "rank " + std::to_string(rank), rank);
  }
}

ChromeTrace::~ChromeTrace() {
  finish();
}

bool ChromeTrace::finish() {
  if (is_finished_) return is_whole_;
  for (std::uint32_t link = 0; link < rows_.size(); ++link) write_row(link);
  is_finished_ = true;
  if (dropped_ > 0) {
    const Microseconds at = microseconds(last_);
    std::fprintf(file_.get(),
                 ",\n{\"ph\":\"i\",\"s\":\"g\",\"pid\":1,\"tid\":0,\"ts\":%lld.%06lld,\"name\":"
                 "\"the file is full: %llu events left out\"}",
                 at.whole, at.fraction, static_cast<unsigned long long>(dropped_));
  }
  std::fputs("\n]}\n", file_.get());
  is_whole_ = std::fflush(file_.get()) == 0 && std::ferror(file_.get()) == 0;
  return is_whole_;
}

void ChromeTrace::begin(Time now) {
  epoch_ = now;
  has_begun_ = true;
}

void ChromeTrace::record(const TraceRecord& record) {
  if (!has_begun_ || is_finished_ || record.time < epoch_) return;
  last_ = record.time - epoch_;
  switch (record.kind) {
    case EventKind::link:
      if (static_cast<NetworkTrace>(record.what) == NetworkTrace::crossed && has_room())
        record_packet(record);
      break;
    case EventKind::nic:
      if (static_cast<CardTrace>(record.what) == CardTrace::landed && has_room()) record_message(record);
      break;
    case EventKind::process:
      if (static_cast<ProcessTrace>(record.what) == ProcessTrace::waited && has_room()) record_wait(record);
      break;
    default:
      break;
  }
}

// Counts an event for which there is none.
bool ChromeTrace::has_room() {
  if (written_bytes_ < options_.limit_bytes) return true;
  ++dropped_;
  return false;
}

bool ChromeTrace::is_within(Time from, Time until) const {
  const TraceFilter& filter = options_.filter;
  return until - epoch_ >= filter.from && (!filter.to || from - epoch_ <= *filter.to);
}

bool ChromeTrace::is_chosen(std::uint32_t process) const {
  const std::vector<bool>& chosen = options_.filter.ranks;
  return chosen.empty() || (process < chosen.size() && chosen[process]);
}

void ChromeTrace::record_packet(const TraceRecord& record) {
  if (!is_within(record.time, record.until)) return;
  if (!chosen_nodes_.empty() && (record.other >= chosen_nodes_.size() || !chosen_nodes_[record.other]))
    return;
  Row& row = rows_[record.place];
  const bool is_next = row.packets > 0 && row.message == record.a && row.from_node == record.other &&
                       record.time - row.until <= row.last_packet * longest_pause_packets;
  if (!is_next) {
    write_row(record.place);
    row = {.from = record.time, .message = record.a, .from_node = record.other};
  }
  row.until = record.until;
  row.last_packet = record.until - record.time;
  row.busy += row.last_packet;
  row.wire_bytes += record.b & 0xffffffffU;
  ++row.packets;
}

void ChromeTrace::write_row(std::uint32_t link) {
  const Row row = std::exchange(rows_[link], {});
  if (row.packets == 0 || row.wire_bytes < options_.filter.least_bytes) return;
  if (!is_named_[link]) {
    is_named_[link] = true;
    name_track(Group::links, link, link_names_[link], link);
  }
  const Microseconds at = microseconds(row.from - epoch_);
  const Microseconds duration = microseconds(row.until - row.from);
  const Microseconds busy = microseconds(row.busy);
  write(
      "{\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"ts\":%lld.%06lld,\"dur\":%lld.%06lld,\"name\":\"packets\","
      "\"args\":"
      "{\"packets\":%u,\"from node\":%u,\"wire bytes\":%llu,\"busy us\":%lld.%06lld}}",
      Group::links, link, at.whole, at.fraction, duration.whole, duration.fraction, row.packets,
      row.from_node, static_cast<unsigned long long>(row.wire_bytes), busy.whole, busy.fraction);
}

// The track of its source on which a message overlaps none before it. Messages come in the order in which
// they end.
std::uint32_t ChromeTrace::lane_of(std::uint32_t source, Time from, Time until) {
  std::vector<Time>& ends = lane_ends_[source];
  const auto found = std::find_if(ends.begin(), ends.end(), [from](Time end) { return end <= from; });
  const auto lane = static_cast<std::uint32_t>(found - ends.begin());
  const std::uint32_t track = lane * process_count_ + source;
  if (found == ends.end()) {
    ends.push_back(until);
    const std::string number = lane == 0 ? "" : " (" + std::to_string(lane + 1) + ")";
    name_track(Group::messages, track, "from rank " + std::to_string(source) + number,
               source * most_lanes + std::min(lane, most_lanes - 1));
  } else {
    *found = until;
  }
  return track;
}

void ChromeTrace::record_message(const TraceRecord& record) {
  const std::uint64_t bytes = record.b >> 2;
  const bool is_wanted = bytes >= options_.filter.least_bytes && is_within(record.time, record.until) &&
                         (is_chosen(record.place) || is_chosen(record.other));
  if (!is_wanted) return;
  const std::uint32_t track = lane_of(record.place, record.time, record.until);
  const Microseconds at = microseconds(record.time - epoch_);
  const Microseconds duration = microseconds(record.until - record.time);
  const bool is_written = write(
      "{\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"ts\":%lld.%06lld,\"dur\":%lld.%06lld,\"name\":\"%s to "
      "%u\",\"args\":"
      "{\"bytes\":%llu}}",
      Group::messages, track, at.whole, at.fraction, duration.whole, duration.fraction,
      verb_name(record.b & 3U), record.other, static_cast<unsigned long long>(bytes));
  if (!is_written) return;
  // A get ends at its source.
  const bool is_get = static_cast<Verb>(record.b & 3U) == Verb::get;
  const auto [receiver, peer] =
      is_get ? std::pair(record.place, record.other) : std::pair(record.other, record.place);
  Landings& last = landings_[receiver];
  if (last.at != record.until) last = {.at = record.until, .messages = {}};
  last.messages.push_back({.began = record.time, .bytes = bytes, .peer = peer, .track = track});
}

void ChromeTrace::record_wait(const TraceRecord& record) {
  if (!is_chosen(record.place) || !is_within(record.time, record.until)) return;
  const Microseconds at = microseconds(record.time - epoch_);
  const Microseconds duration = microseconds(record.until - record.time);
  const bool is_known = record.a > 0 && record.a < options_.call_names.size();
  const char* name = is_known ? options_.call_names[record.a].c_str() : "wait";
  Landings& last = landings_[record.place];
  if (last.at != record.until || last.messages.empty()) {
    write(
        "{\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"ts\":%lld.%06lld,\"dur\":%lld.%06lld,\"cat\":\"wait\","
        "\"name\":\"%s\"}",
        Group::ranks, record.place, at.whole, at.fraction, duration.whole, duration.fraction, name);
    return;
  }
  const Landing message = last.messages.front();
  last.messages.erase(last.messages.begin());
  const bool is_written = write(
      "{\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"ts\":%lld.%06lld,\"dur\":%lld.%06lld,\"cat\":\"wait\",\"name\":"
      "\"%s\","
      "\"args\":{\"ended by rank\":%u,\"bytes\":%llu}}",
      Group::ranks, record.place, at.whole, at.fraction, duration.whole, duration.fraction, name,
      message.peer, static_cast<unsigned long long>(message.bytes));
  if (!is_written) return;
  // Viewers bind the end of an arrow to the slice around it, and count whole nanoseconds.
  const Time end =
      record.until - Time::from_ns(1) > record.time ? record.until - Time::from_ns(1) : record.time;
  const Microseconds from = microseconds(message.began - epoch_);
  const Microseconds to = microseconds(end - epoch_);
  const auto id = static_cast<unsigned long long>(arrows_++);
  write("{\"ph\":\"s\",\"cat\":\"m\",\"name\":\"m\",\"id\":%llu,\"pid\":%d,\"tid\":%u,\"ts\":%lld.%06lld}",
        id, Group::messages, message.track, from.whole, from.fraction);
  write(
      "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"m\",\"name\":\"m\",\"id\":%llu,\"pid\":%d,\"tid\":%u,\"ts\":%lld."
      "%06lld}",
      id, Group::ranks, record.place, to.whole, to.fraction);
}

void ChromeTrace::name_group(int group, const char* name) {
  write("{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}}", group, name);
}

void ChromeTrace::name_track(int group, std::uint32_t track, const std::string& name,
                             std::uint32_t position) {
  write("{\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}", group,
        track, name.c_str());
  write("{\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%u}}",
        group, track, position);
}

// Writes one event after a comma. The constructor has written the first event.
bool ChromeTrace::write(const char* format, ...) {
  if (!has_room()) return false;
  std::array<char, 512> text{};
  va_list arguments;
  va_start(arguments, format);
  const int wanted = std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  std::fputs(",\n", file_.get());
  const std::size_t length = std::min(static_cast<std::size_t>(wanted), text.size() - 1);
  std::fwrite(text.data(), 1, length, file_.get());
  written_bytes_ += length + 2;
  return true;
}

}  // namespace apenet
