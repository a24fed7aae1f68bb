// CoreClaim: marks a core of this host as the home of one run, so that other runs choose other cores.
#pragma once

#include <cstddef>
#include <optional>

namespace apenet {

// A name in the host's abstract namespace of Unix sockets. The kernel frees it when its owner ends, however
// it ends, so a claim needs no file and outlives nobody. Runs in different network namespaces (containers) do
// not see each other's claims. A claim is advice: a run that gets none shares a core.
class CoreClaim {
 public:
  // Claims the core, or returns nothing if another run has it or the host has no such sockets.
  static std::optional<CoreClaim> take(std::size_t core);
  // Whether some run has claimed the core.
  [[nodiscard]] static bool is_taken(std::size_t core);

  CoreClaim(CoreClaim&& other) noexcept;
  CoreClaim& operator=(CoreClaim&& other) noexcept;
  CoreClaim(const CoreClaim&) = delete;
  CoreClaim& operator=(const CoreClaim&) = delete;
  ~CoreClaim();

  [[nodiscard]] std::size_t core() const { return core_; }

 private:
  CoreClaim(std::size_t core, int socket) : core_(core), socket_(socket) {}

  std::size_t core_;
  int socket_;
};

}  // namespace apenet
