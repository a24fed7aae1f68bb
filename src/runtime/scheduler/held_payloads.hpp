// HeldPayloads: payloads of sends that the simulator holds because their sender needs its slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/scheduler/spill_file.hpp"

namespace apenet {

// One payload. Empty: it lies in the slot of the request or event, or there is none.
struct HeldPayload {
  std::uint32_t bytes = 0;
  std::unique_ptr<std::byte[]> memory;  // nullptr: in the file
  std::uint64_t place = 0;              // in the file

  [[nodiscard]] bool is_held() const { return bytes > 0; }
};

// The first ones lie in memory, up to a limit, the others in a file.
class HeldPayloads {
 public:
  explicit HeldPayloads(std::size_t most_in_memory = std::size_t{256} << 20)
      : most_in_memory_(most_in_memory) {}

  // Throws RankError if the host has no room. Requires a payload that is not empty.
  [[nodiscard]] HeldPayload keep(std::uint32_t rank, std::span<const std::byte> payload);
  // Writes the payload there and forgets it. `rank`: its sender.
  void take(std::uint32_t rank, HeldPayload& payload, std::byte* to);
  void drop(HeldPayload& payload);

 private:
  std::size_t most_in_memory_;
  std::size_t in_memory_ = 0;
  SpillFile file_;
};

}  // namespace apenet
