#include "runtime/observe/chrome_trace.hpp"

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

ChromeTrace::ChromeTrace(const std::string& path, std::uint32_t process_count,
                         std::vector<std::string> link_names, std::uint64_t limit_bytes)
    : file_(std::fopen(path.c_str(), "we")),
      link_names_(std::move(link_names)),
      is_named_(link_names_.size()),
      limit_bytes_(limit_bytes) {
  if (file_ == nullptr) {
    refuse_value("trace", path, std::string("a file that can be written (") + std::strerror(errno) + ")");
  }
  // The Python side recognises by this line a file that it may overwrite.
  std::fputs("{\"displayTimeUnit\": \"ns\", \"otherData\": {\"writer\": \"apenet\"}, \"traceEvents\": [\n",
             file_.get());
  std::fputs("{\"ph\": \"M\", \"pid\": 1, \"name\": \"process_name\", \"args\": {\"name\": \"ranks\"}}",
             file_.get());
  write("{\"ph\": \"M\", \"pid\": %d, \"name\": \"process_name\", \"args\": {\"name\": \"messages\"}}",
        messages);
  write("{\"ph\": \"M\", \"pid\": %d, \"name\": \"process_name\", \"args\": {\"name\": \"links\"}}", links);
  for (std::uint32_t rank = 0; rank < process_count; ++rank) {
    name_track(Group::ranks, rank, "rank " + std::to_string(rank));
    name_track(Group::messages, rank, "from rank " + std::to_string(rank));
  }
}

ChromeTrace::~ChromeTrace() {
  finish();
}

bool ChromeTrace::finish() {
  if (is_finished_) return is_whole_;
  is_finished_ = true;
  if (dropped_ > 0) {
    const Microseconds at = microseconds(last_);
    std::fprintf(file_.get(),
                 ",\n{\"ph\": \"i\", \"s\": \"g\", \"pid\": 1, \"tid\": 0, \"ts\": %lld.%06lld, \"name\": "
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
  if (written_bytes_ >= limit_bytes_) {
    ++dropped_;
    return;
  }
  last_ = record.time - epoch_;
  if (record.kind == EventKind::link) record_network(record);
  if (record.kind == EventKind::nic) record_message(record);
  if (record.kind == EventKind::process) record_wait(record);
}

void ChromeTrace::record_network(const TraceRecord& record) {
  if (static_cast<NetworkTrace>(record.what) != NetworkTrace::crossed) return;
  if (!is_named_[record.place]) {
    is_named_[record.place] = true;
    name_track(Group::links, record.place, link_names_[record.place]);
  }
  const Microseconds at = microseconds(record.time - epoch_);
  const Microseconds duration = microseconds(record.until - record.time);
  write(
      "{\"ph\": \"X\", \"pid\": %d, \"tid\": %u, \"ts\": %lld.%06lld, \"dur\": %lld.%06lld, \"name\": "
      "\"packet\", \"args\": {\"message\": %llu, \"sequence\": %llu, \"from node\": %u, \"wire bytes\": "
      "%llu}}",
      Group::links, record.place, at.whole, at.fraction, duration.whole, duration.fraction,
      static_cast<unsigned long long>(record.a), static_cast<unsigned long long>(record.b >> 32),
      record.other, static_cast<unsigned long long>(record.b & 0xffffffffU));
}

void ChromeTrace::record_wait(const TraceRecord& record) {
  if (static_cast<ProcessTrace>(record.what) != ProcessTrace::waited) return;
  const Microseconds at = microseconds(record.time - epoch_);
  const Microseconds duration = microseconds(record.until - record.time);
  write(
      "{\"ph\": \"X\", \"pid\": %d, \"tid\": %u, \"ts\": %lld.%06lld, \"dur\": %lld.%06lld, \"name\": "
      "\"wait\"}",
      Group::ranks, record.place, at.whole, at.fraction, duration.whole, duration.fraction);
}

// Messages of one rank overlap, so each is an asynchronous begin/end pair.
void ChromeTrace::record_message(const TraceRecord& record) {
  if (static_cast<CardTrace>(record.what) != CardTrace::landed) return;
  const char* verb = verb_name(record.b & 3U);
  const auto id = static_cast<unsigned long long>(messages_++);
  for (const bool is_end : {false, true}) {
    const Microseconds at = microseconds((is_end ? record.until : record.time) - epoch_);
    write(
        "{\"ph\": \"%s\", \"cat\": \"message\", \"id\": %llu, \"pid\": %d, \"tid\": %u, \"ts\": "
        "%lld.%06lld, \"name\": \"%s to %u\", \"args\": {\"bytes\": %llu}}",
        is_end ? "e" : "b", id, Group::messages, record.place, at.whole, at.fraction, verb, record.other,
        static_cast<unsigned long long>(record.b >> 2));
  }
}

void ChromeTrace::name_track(int group, std::uint32_t track, const std::string& name) {
  write("{\"ph\": \"M\", \"pid\": %d, \"tid\": %u, \"name\": \"thread_name\", \"args\": {\"name\": \"%s\"}}",
        group, track, name.c_str());
  write(
      "{\"ph\": \"M\", \"pid\": %d, \"tid\": %u, \"name\": \"thread_sort_index\", \"args\": {\"sort_index\": "
      "%u}}",
      group, track, track);
}

// Writes one event after a comma. The constructor has written the first event.
void ChromeTrace::write(const char* format, ...) {
  std::array<char, 512> text{};
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  std::fputs(",\n", file_.get());
  std::fwrite(text.data(), 1, static_cast<std::size_t>(length), file_.get());
  written_bytes_ += static_cast<std::uint64_t>(length) + 2;
}

}  // namespace apenet
