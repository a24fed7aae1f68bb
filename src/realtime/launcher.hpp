// Launcher: what the ranks of a run in real time have in common: the program that started them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace apenet::apelib {

// A process that no launcher has started is rank 0 of 1. Each function throws Error(APE_ERR_ENVIRONMENT).
class Launcher {
 public:
  Launcher() = default;
  virtual ~Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  [[nodiscard]] virtual std::uint32_t rank() const { return 0; }
  [[nodiscard]] virtual std::uint32_t size() const { return 1; }

  // Keys and values are words of letters, digits and '-'.
  virtual void put(std::string_view /*key*/, std::string_view /*value*/) {}
  // The value of rank `owner`, which has put it before the last barrier.
  [[nodiscard]] virtual std::string get(std::uint32_t owner, std::string_view key);
  // Waits for all ranks; what they put before it is there afterwards.
  virtual void barrier() {}
  // Ends the connection, unless MPI uses it too.
  virtual void finalize() {}
};

// Finds the launcher by the environment: PMI-1 and PMI-2 over PMI_FD, PMIx by its library. Throws for others.
[[nodiscard]] std::unique_ptr<Launcher> find_launcher();

// Whether MPI, which may talk to the launcher on the same connection, has been initialised in this process.
[[nodiscard]] bool mpi_is_initialized();
// What an `int NAME()` of a library of this process returns. 0: there is none.
[[nodiscard]] int answer_of(const char* name);

}  // namespace apenet::apelib
