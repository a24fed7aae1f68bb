// Direct code: code that makes system calls itself, by the instruction `syscall`, and not by functions of the
// C library. Runtimes do (Go), assembly, inline functions of headers, and libraries with a C library of their
// own inside.
//
// An object has direct code if one of its `syscall` instructions is preceded by the number of a call on which
// virtual time depends, or followed by the check of its result that wrappers for any number have. A byte
// pattern cannot decide this with certainty. In 3,700 programs and libraries it found Go, static programs,
// Chromium, and the runtimes of OpenMP and of sanitizers. What is wrongly taken for direct costs time only.
#pragma once

#include <cstdint>

namespace apenet::shim {

// Scans the objects that the loader has added since the last scan. Returns whether any object so far has
// direct code. has_namespaces: the program has loaded libraries into a namespace of their own (dlmopen). They
// have a C library of their own there, without the shim before it, so all their calls are direct ones.
bool find_direct_code(bool has_namespaces);
// Whether this C library's loader shows such namespaces (glibc 2.35 or later).
[[nodiscard]] bool shows_namespaces();
// The name of the first such object; empty: none.
[[nodiscard]] const char* direct_object();

// Whether the calls there are none of the program's: those of the loader and of parts of the C library beside
// it, of the runtimes of OpenMP (they wait for each other as their threads are ordered, by reading memory)
// and of sanitizers, of a GPU's driver, and of the kernel's own code in the process. Safe in a signal
// handler.
[[nodiscard]] bool is_passed_code(std::uint64_t address);

}  // namespace apenet::shim
