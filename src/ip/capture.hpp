// PacketCapture: writes the packets that pass the interfaces of the nodes to a file for Wireshark and
// tcpdump.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "kernel/time.hpp"

namespace apenet::ip {

// The format is pcapng (IETF draft-ietf-opsawg-pcapng), with one interface for each node, and times in
// nanoseconds.
class PacketCapture {
 public:
  struct Interface {
    std::uint32_t address = 0;
    std::string host_name;
  };
  enum class Direction : std::uint8_t { in = 1, out = 2 };  // as epb_flags has them

  // date_s: seconds since 1970 at time zero. Throws std::invalid_argument if the file cannot be written.
  PacketCapture(const std::string& path, const std::vector<Interface>& interfaces, std::int64_t date_s);
  ~PacketCapture();
  PacketCapture(const PacketCapture&) = delete;
  PacketCapture& operator=(const PacketCapture&) = delete;

  // `at` may be later than `now`; the packets stand in the order of their times. No `now` is before another.
  void see(std::uint32_t interface, Direction direction, Time at, Time now,
           std::span<const std::byte> packet);
  // Writes what is left, and the end.
  void finish();

 private:
  struct Seen {
    Time at;
    std::uint64_t number = 0;
    std::vector<std::byte> block;
  };
  struct IsLater {
    bool operator()(const Seen& one, const Seen& other) const {
      return one.at != other.at ? one.at > other.at : one.number > other.number;
    }
  };
  struct Closing {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void write(const std::vector<std::byte>& block);
  void write_until(Time time);

  std::unique_ptr<std::FILE, Closing> file_;
  std::int64_t date_s_;
  std::priority_queue<Seen, std::vector<Seen>, IsLater> seen_;
  std::uint64_t next_number_ = 0;
  bool is_finished_ = false;
};

}  // namespace apenet::ip
