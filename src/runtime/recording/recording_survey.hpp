// RecordingSurvey: what must be known about all ranks of a recording before the first is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/recording/recording.hpp"

namespace apenet {

// A message queue of MPI: its messages are matched in the order in which they were sent.
using Channel = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // target, source, tag

struct ChannelState {
  std::int64_t balance = 0;  // unmatched sends if positive, unmatched receives if negative
  std::int64_t last_bytes = 0;
  std::uint8_t rail = 0;
};

// A remote access, recorded for its target.
struct Access {
  std::uint32_t source = 0;
  bool is_get = false;
  std::int64_t bytes = 0;
  std::uint64_t address = 0;  // in the target's memory
  std::uint8_t rail = 0;
};

// Numbers tags in the order of first use. The tags of remote accesses follow.
class TagNumbers {
 public:
  void see(const ipc::RecordingEntry& entry) {
    numbers_.try_emplace({entry.tagged != 0, entry.tag}, static_cast<std::uint32_t>(numbers_.size()));
  }
  [[nodiscard]] std::uint32_t of(const ipc::RecordingEntry& entry) const {
    return numbers_.at({entry.tagged != 0, entry.tag});
  }
  [[nodiscard]] std::uint32_t put() const { return static_cast<std::uint32_t>(numbers_.size()); }
  [[nodiscard]] std::uint32_t request() const { return put() + 1; }
  [[nodiscard]] std::uint32_t answer() const { return put() + 2; }

 private:
  std::map<std::pair<bool, std::uint64_t>, std::uint32_t> numbers_;
};

// A place in the code from which ranks call MPI.
struct CallSite {
  std::string file;
  std::uint64_t address = 0;
  std::string line;  // empty: not known
};

struct RecordingSurvey {
  explicit RecordingSurvey(std::size_t ranks) : accesses(ranks), sites(ranks), last_operations(ranks) {}

  TagNumbers tags;
  std::map<Channel, ChannelState> channels;
  std::vector<std::vector<Access>> accesses;   // by target, in rank order of their sources
  std::vector<std::vector<CallSite>> sites;    // by rank and number, from 1
  std::vector<std::uint32_t> last_operations;  // by rank: its highest number
  std::uint64_t puts = 0;
  std::uint64_t gets = 0;
  std::uint32_t unclosed = 0;           // ranks that ended without closing their endpoint
  std::vector<std::string> unrecorded;  // libraries whose messages are not in the recording
};

// Throws std::runtime_error for an invalid recording.
RecordingSurvey survey_recording(const Recording& recording);

}  // namespace apenet
