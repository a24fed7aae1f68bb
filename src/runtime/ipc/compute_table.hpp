// The files by which computation goes to and from the ranks: the table that they charge (`--compute FILE`),
// and the report that they write at their ends. The front end writes the one and reads the other
// (python/apenet/compute/exchange.py).
//
// Both are unnamed files of the front end, which disappear with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace apenet::ipc {

// Environment variables that name the files, /proc/PID/fd/N; absent if the run does not need them.
inline constexpr const char* compute_table_variable = "APENET_COMPUTE_TABLE";
inline constexpr const char* compute_report_variable = "APENET_COMPUTE_REPORT";

// The table: a header, the modules, the costs, sorted by (from, to), and the call paths, sorted by number. A
// call site is known by the hash of its text, "module+0xoffset".
struct ComputeTable {
  static constexpr std::uint32_t expected_magic = 0x41504354;  // "APCT"
  std::uint32_t magic = expected_magic;
  std::uint32_t modules = 0;
  std::uint32_t costs = 0;
  std::uint32_t call_paths = 0;
};
static_assert(sizeof(ComputeTable) == 16);

struct ComputeModule {
  std::uint64_t name = 0;      // hash of its file's name
  std::uint64_t identity = 0;  // hash of its identity; see shim/call_sites.hpp
};

struct ComputeCost {
  static constexpr std::int64_t unknown = -1;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::int64_t first_ps = unknown;   // for rank 0
  std::int64_t others_ps = unknown;  // for every other rank
};
static_assert(sizeof(ComputeCost) == 32);

// A call path (shim/call_path.hpp) after which ranks overlap, because every region that is
// known to follow takes long on the host: the least cost of any of them.
struct ComputeCallPath {
  std::uint64_t call_path = 0;
  std::int64_t first_ps = 0;   // for rank 0; 0: it does not overlap
  std::int64_t others_ps = 0;  // for every other rank
};
static_assert(sizeof(ComputeCallPath) == 24);

// FNV-1a; `hash`: of the text before. The front end computes the same.
[[nodiscard]] constexpr std::uint64_t hash_text(std::string_view text,
                                                std::uint64_t hash = 0xcbf29ce484222325U) {
  for (const char c : text) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace apenet::ipc
