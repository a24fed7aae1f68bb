// PmiClient: the process's side of PMI version 1, through which the ranks of a launcher exchange addresses:
// lines of `cmd=NAME key=value ...` over the descriptor that the launcher names in PMI_FD.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace apenet::apelib {

class PmiClient {
 public:
  // From the environment. A process that no launcher has started is rank 0 of 1. Throws
  // Error(APE_ERR_ENVIRONMENT), also for launchers that speak only other protocols.
  PmiClient();
  // Ends the connection, unless MPI uses it too.
  void finalize();

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t size() const { return size_; }

  void put(std::string_view key, std::string_view value);
  [[nodiscard]] std::string get(std::string_view key);
  // Waits for all ranks; what they put before it is there afterwards.
  void barrier();

 private:
  // Sends a line and returns the value of `key` in the answer, which must be the line of command `answer`.
  std::string ask(const std::string& line, std::string_view answer, std::string_view key);
  std::string read_line();

  int fd_ = -1;  // -1: no launcher
  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 1;
  std::string space_;   // the launcher's name for this run's values
  std::string unread_;  // what came after the last line
};

}  // namespace apenet::apelib
