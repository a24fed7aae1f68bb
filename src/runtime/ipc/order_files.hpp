// Files without a name that processes of a rank's order have made, and that others of them may inherit.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace apenet::ipc {

enum class FileKind : std::uint8_t { none, pipe, socket, eventfd };

// What the host calls a file.
struct FileName {
  FileKind kind = FileKind::none;
  std::uint64_t device = 0;
  std::uint64_t number = 0;
};

// One that a process has made. A reader sees `kind` last.
struct MadeFile {
  std::atomic<FileKind> kind{FileKind::none};
  std::atomic<std::uint64_t> device{0};
  std::atomic<std::uint64_t> number{0};
  std::atomic<std::uint64_t> other{0};      // number of the other socket of a pair; 0: there is none
  std::atomic<std::int64_t> made_ticks{0};  // since the host's start

  [[nodiscard]] bool is(const FileName& name) const {
    return kind == name.kind && number == name.number && device == name.device;
  }
  void copy(const MadeFile& from) {
    kind = FileKind::none;
    device = from.device.load();
    number = from.number.load();
    other = from.other.load();
    made_ticks = from.made_ticks.load();
    kind = from.kind.load();
  }
};

struct OrderFile {
  MadeFile made;
  // OrderTable::process_changes when only processes of the order held it, plus 1; 0: not known.
  std::atomic<std::uint32_t> checked_at{0};
};

// The newest of them; what is older is no longer known, and is the host's matter.
struct OrderFiles {
  static constexpr std::size_t most_kept = 1024;
  std::array<OrderFile, most_kept> files{};
  std::atomic<std::uint32_t> made{0};
};

}  // namespace apenet::ipc
