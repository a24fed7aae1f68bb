// ChromeTrace: writes a run to a file for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernel/time.hpp"
#include "kernel/trace.hpp"

namespace apenet {

// What of a run is written.
struct TraceFilter {
  std::vector<bool> ranks{};  // waits of these, messages from or to them, packets of their nodes; empty: all
  Time from{};                // what ends before this is not written
  std::optional<Time> to{};   // nor is what begins after this
  std::uint64_t least_bytes = 0;  // smallest message, and smallest sum of consecutive packets
};

// Writes the JSON form of the Trace Event Format (Google, "Trace Event Format", 2016) during the run. Three
// groups of tracks: the waits of each process, its messages from doorbell to last byte, and the packets on
// each link. Packets of one message that follow each other on a link are one slice. An arrow leads from a
// message to the wait that it ended. Events beyond the size limit are omitted and counted.
class ChromeTrace final : public TraceSink {
 public:
  static constexpr std::uint64_t default_limit_bytes = std::uint64_t{64} << 20U;
  // A pause on a link as long as this many packets ends a row of packets.
  static constexpr std::int64_t longest_pause_packets = 4;

  struct Options {
    std::uint64_t limit_bytes = default_limit_bytes;
    TraceFilter filter{};
    std::vector<std::string> call_names{};  // by the number in records of waits; 0: not known
  };

  // node_of_process: of each process. Throws std::invalid_argument if the file cannot be written.
  ChromeTrace(const std::string& path, std::vector<std::uint32_t> node_of_process,
              std::vector<std::string> link_names, Options options);
  ~ChromeTrace();
  ChromeTrace(const ChromeTrace&) = delete;
  ChromeTrace& operator=(const ChromeTrace&) = delete;

  void record(const TraceRecord& record) override;
  void begin(Time now);  // events before this are not written
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
  // Completes the file; later records are ignored. Returns false if part of the file could not be written.
  bool finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  // Packets of one message on one link, one behind the other.
  struct Row {
    Time from{};
    Time until{};
    Time busy{};
    Time last_packet{};
    std::uint64_t message = 0;
    std::uint64_t wire_bytes = 0;
    std::uint32_t packets = 0;  // 0: none
    std::uint32_t from_node = 0;
  };
  // A message whose last byte has reached a process.
  struct Landing {
    Time began{};
    std::uint64_t bytes = 0;
    std::uint32_t peer = 0;
    std::uint32_t track = 0;
  };
  struct Landings {
    Time at{};
    std::vector<Landing> messages;
  };

  [[nodiscard]] bool has_room();
  void record_packet(const TraceRecord& record);
  void record_message(const TraceRecord& record);
  void record_wait(const TraceRecord& record);
  void write_row(std::uint32_t link);
  [[nodiscard]] std::uint32_t lane_of(std::uint32_t source, Time from, Time until);
  [[nodiscard]] bool is_within(Time from, Time until) const;
  [[nodiscard]] bool is_chosen(std::uint32_t process) const;
  void name_group(int group, const char* name);
  void name_track(int group, std::uint32_t track, const std::string& name, std::uint32_t position);
  // Writes an event if the file has room for it. Returns whether it has.
  [[gnu::format(printf, 2, 3)]] bool write(const char* format, ...);

  std::unique_ptr<std::FILE, Close> file_;
  Options options_;
  std::vector<bool> chosen_nodes_;  // empty: all
  std::vector<std::string> link_names_;
  std::vector<bool> is_named_;                // per link: whether its track has been named
  std::vector<Row> rows_;                     // per link
  std::vector<std::vector<Time>> lane_ends_;  // per process: when the last message of each of its tracks ends
  std::vector<Landings> landings_;            // per process: the last
  std::uint32_t process_count_;
  std::uint64_t written_bytes_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t arrows_ = 0;
  bool has_begun_ = false;
  bool is_finished_ = false;
  bool is_whole_ = true;
  Time epoch_;
  Time last_;
};

}  // namespace apenet
