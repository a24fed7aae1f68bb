// Acts of a process after which the run cannot continue. Each ends the run and names the rank.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace apenet {

// A process violated the protocol.
class RankError : public std::runtime_error {
 public:
  // deed: a predicate such as "wrote an invalid request: ...", appended to the rank's name.
  RankError(std::uint32_t rank, const std::string& deed)
      : std::runtime_error("rank " + std::to_string(rank) + " " + deed), rank_(rank), deed_(deed) {}
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] const std::string& deed() const { return deed_; }

 private:
  std::uint32_t rank_;
  std::string deed_;
};

// A process's clock, or what it has posted, has reached ipc::end_of_time_ps.
class EndOfTime : public std::runtime_error {
 public:
  explicit EndOfTime(std::uint32_t rank)
      : std::runtime_error("rank " + std::to_string(rank) +
                           " has reached the end of virtual time, 104 days") {}
};

}  // namespace apenet
