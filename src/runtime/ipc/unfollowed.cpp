#include "runtime/ipc/unfollowed.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/protocol.hpp"
#include "runtime/ipc/simulation_paths.hpp"

namespace apenet::ipc {
namespace {

// The reasons are complete texts, because the caller may have no heap.
#define APENET_NO_PRELOAD(reason) reason ": nothing can be preloaded into it"

constexpr int most_interpreters = 4;  // as in the kernel: a script's interpreter may be a script

class File {
 public:
  explicit File(const char* path, std::uint64_t flags = O_RDONLY)
      : fd_(host_call(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (fd_ >= 0) host_call(SYS_close, fd_, 0);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  // Whether it has so many bytes there.
  bool read(void* to, std::size_t bytes, std::uint64_t at) const { return read_some(to, bytes, at) == bytes; }
  std::size_t read_some(void* to, std::size_t bytes, std::uint64_t at) const {
    const int got = host_call(SYS_pread64, fd_, to, bytes, reinterpret_cast<const void*>(at));
    return got < 0 ? 0 : static_cast<std::size_t>(got);
  }

 private:
  int fd_;
};

// The loader ignores LD_PRELOAD's paths in a process that gets rights which its user lacks.
const char* why_secure(const File& file) {
  struct stat status {};
  if (host_call(SYS_fstat, file.fd(), &status) != 0) return nullptr;
  const auto id = [](long call) { return static_cast<std::uint32_t>(host_call(call, 0, 0)); };
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != id(SYS_getuid))
    return APENET_NO_PRELOAD("runs with the rights of another user (set-user-ID)");
  if ((status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 && status.st_gid != id(SYS_getgid))
    return APENET_NO_PRELOAD("runs with the rights of another group (set-group-ID)");
  std::array<char, 64> capabilities{};
  const bool has_any = host_call(SYS_fgetxattr, file.fd(), "security.capability",
                                 reinterpret_cast<std::uint64_t>(capabilities.data()),
                                 reinterpret_cast<const void*>(capabilities.size())) > 0;
  return has_any && id(SYS_getuid) != 0 ? APENET_NO_PRELOAD("has capabilities of its own (getcap shows them)")
                                        : nullptr;
}

std::string_view name_of(const char* path) {
  const char* last = std::strrchr(path, '/');
  return last == nullptr ? path : last + 1;
}

constexpr const char* of_go =
    "is a Go program: it starts others by system calls of its own, to which nothing can be added";

// The linker of Go names its sections so, whatever else is stripped.
bool is_go(const File& file, const Elf64_Ehdr& header) {
  Elf64_Shdr names{};
  if (!file.read(&names, sizeof names, header.e_shoff + std::uint64_t{header.e_shstrndx} * sizeof names))
    return false;
  std::array<char, 4096> text{};
  const std::size_t bytes =
      file.read_some(text.data(), std::min<std::uint64_t>(text.size(), names.sh_size), names.sh_offset);
  const std::string_view all(text.data(), bytes);
  constexpr std::string_view of_linker(".go.buildinfo", sizeof ".go.buildinfo");
  return all.find(of_linker) != std::string_view::npos;
}

const char* why_unfollowed_elf(const File& file, const Elf64_Ehdr& header, std::string_view name) {
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return APENET_NO_PRELOAD("is a 32-bit program");
  // The loader may be started as a program, and then preloads as for any other.
  if (name.starts_with("ld-linux") || name.starts_with("ld.so")) return nullptr;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    if (!file.read(&part, sizeof part, header.e_phoff + i * header.e_phentsize)) return nullptr;
    if (part.p_type != PT_INTERP) continue;
    std::array<char, 64> loader{};
    if (file.read_some(loader.data(), std::min(loader.size() - 1, part.p_filesz), part.p_offset) > 0 &&
        name_of(loader.data()).starts_with("ld-musl"))
      return APENET_NO_PRELOAD("is a program of the C library musl");
    return is_go(file, header) ? of_go : nullptr;
  }
  return APENET_NO_PRELOAD("is linked statically");
}

// The interpreter of a script, of whose first bytes this is the text; nullptr if there is none.
char* interpreter(std::span<char> text) {
  if (text.size() < 3 || text[0] != '#' || text[1] != '!') return nullptr;
  const auto is_space = [](char letter) { return letter == ' ' || letter == '\t'; };
  const auto is_end = [&](char letter) { return is_space(letter) || letter == '\n' || letter == '\0'; };
  const auto begin = std::find_if_not(text.begin() + 2, text.end(), is_space);
  const auto end = std::find_if(begin, text.end(), is_end);
  if (begin == end || end == text.end()) return nullptr;
  *end = '\0';
  return &*begin;
}

}  // namespace

const char* why_unfollowed(const char* path) {
  std::array<char, 256> head{};
  std::array<char, 256> script{};
  for (int depth = 0; depth <= most_interpreters; ++depth) {
    const File file(path);
    if (file.fd() < 0) return nullptr;
    head.fill('\0');
    const std::size_t bytes = file.read_some(head.data(), head.size() - 1, 0);
    Elf64_Ehdr header{};
    if (bytes >= sizeof header && std::memcmp(head.data(), ELFMAG, SELFMAG) == 0) {
      std::memcpy(&header, head.data(), sizeof header);
      const char* why = why_secure(file);
      return why != nullptr ? why : why_unfollowed_elf(file, header, name_of(path));
    }
    script = head;
    path = interpreter(std::span(script).first(bytes));
    if (path == nullptr) return nullptr;
  }
  return nullptr;
}

// What a tracer traces goes on when it says so, after calls that it makes in the host's time.
bool is_tracer(const char* path) {
  static constexpr std::array<std::string_view, 7> tracers = {"strace", "ltrace",      "gdb", "gdbserver",
                                                              "lldb",   "lldb-server", "rr"};
  return std::find(tracers.begin(), tracers.end(), name_of(path)) != tracers.end() && is_executable(path);
}

const char* why_unfollowed_child(const char* path) {
  const char* const why = why_unfollowed(path);
  return why == nullptr && is_tracer(path) ? "traces processes, which act in the host's time as it does"
                                           : why;
}

void describe_unfollowed(char (&text)[unfollowed_bytes], const char* path, const char* why) {
  // The end of a long path tells more than its beginning.
  const std::size_t room = unfollowed_bytes - 1 - std::strlen(why) - std::strlen("'', which ");
  const std::size_t length = std::strlen(path);
  const char* shown = path + (length > room ? length - room : 0);
  char* at = text;
  const auto append = [&at](const char* part) {
    const std::size_t bytes = std::strlen(part);
    std::memcpy(at, part, bytes);
    at += bytes;
  };
  append("'");
  append(shown);
  append("', which ");
  append(why);
  *at = '\0';
}

void note_unfollowed(const char* mapping, std::uint32_t rank, const char (&text)[unfollowed_bytes]) {
  const SimulationPaths paths = find_simulation(mapping);
  if (rank >= paths.process_count) return;
  const File parts(paths.parts.data(), O_RDWR);
  const Layout layout{paths.process_count};
  const std::size_t begin = layout.block_offset(rank);
  const std::size_t bytes = layout.block_offset(rank + 1) - begin;
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, parts.fd(), static_cast<off_t>(begin));
  if (memory == MAP_FAILED) return;
  Identity& identity = static_cast<Block*>(memory)->identity;
  if (identity.process_id == 0) std::memcpy(identity.unfollowed, text, sizeof identity.unfollowed);
  munmap(memory, bytes);
}

}  // namespace apenet::ipc
