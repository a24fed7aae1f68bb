// Unfollowed programs: those into which the loader loads no shim. What they start belongs to the run only if
// they pass their environment on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace apenet::ipc {

inline constexpr std::size_t unfollowed_bytes = 256;

// Why the loader will not load the shim into this program, as the end of a sentence that begins with its
// name: "is linked statically". nullptr if it will, or if the file cannot be read. An interpreter decides for
// its script. Makes only system calls.
[[nodiscard]] const char* why_unfollowed(const char* path);

// Likewise, of a program that a process starts in virtual time: of one that traces others, too.
[[nodiscard]] const char* why_unfollowed_child(const char* path);
[[nodiscard]] bool is_tracer(const char* path);

// Writes the path and the reason, as much as there is room for.
void describe_unfollowed(char (&text)[unfollowed_bytes], const char* path, const char* why);

// Writes the text into the block of a rank that no process has claimed yet. A process does so before it
// starts such a program. Makes only system calls: the caller may be the child of a vfork, or a fork, which
// cannot write to what its parent has mapped.
void note_unfollowed(const char* mapping, std::uint32_t rank, const char (&text)[unfollowed_bytes]);

}  // namespace apenet::ipc
