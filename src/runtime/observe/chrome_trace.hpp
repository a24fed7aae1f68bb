// ChromeTrace: writes a run to a file for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "kernel/time.hpp"
#include "kernel/trace.hpp"

namespace apenet {

// Writes the JSON form of the Trace Event Format (Google, "Trace Event Format", 2016) during the run. Three
// groups of tracks: the waits of each process, its messages from doorbell to last byte, and the packets on
// each link. Events beyond the size limit are omitted and counted.
class ChromeTrace final : public TraceSink {
 public:
  static constexpr std::uint64_t default_limit_bytes = std::uint64_t{64} << 20U;

  // Throws std::invalid_argument if the file cannot be written.
  ChromeTrace(const std::string& path, std::uint32_t process_count, std::vector<std::string> link_names,
              std::uint64_t limit_bytes = default_limit_bytes);
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

  void record_network(const TraceRecord& record);
  void record_message(const TraceRecord& record);
  void record_wait(const TraceRecord& record);
  void name_track(int group, std::uint32_t track, const std::string& name);
  [[gnu::format(printf, 2, 3)]] void write(const char* format, ...);

  std::unique_ptr<std::FILE, Close> file_;
  std::vector<std::string> link_names_;
  std::vector<bool> is_named_;  // per link: whether its track has been named
  std::uint64_t limit_bytes_;
  std::uint64_t written_bytes_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t messages_ = 0;
  bool has_begun_ = false;
  bool is_finished_ = false;
  bool is_whole_ = true;
  Time epoch_;
  Time last_;
};

}  // namespace apenet
