// The paths of a simulation's memory, found without mapping it.
#pragma once

#include <array>
#include <cstdint>

namespace apenet::ipc {

struct SimulationPaths {
  using Path = std::array<char, 64>;

  std::uint32_t process_count = 0;  // 0: there is no such simulation, or of another version
  Path parts{};                     // path of the ranks' memory
  Path images{};                    // path of the records of images
};

// mapping: the path of the header. Makes only system calls.
[[nodiscard]] SimulationPaths find_simulation(const char* mapping);

}  // namespace apenet::ipc
