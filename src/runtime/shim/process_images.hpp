// Records which programs the processes of the run execute; see ipc/image_records.hpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "runtime/ipc/image_records.hpp"

namespace apenet::shim {

// The rank to which this process belongs; UINT32_MAX if it does not know.
[[nodiscard]] std::uint32_t own_rank();

// The C library starts a process for this one.
void note_library_start();

// The record of a program that is started by this path.
[[nodiscard]] ipc::ImageRecord describe_image(const char* path);
// The process is about to become such a program, or is it already.
void record_image(ipc::ImageRecord& image, std::uint32_t process_id, ipc::ImageState state);
// The process starts such a program, which traces processes.
void note_tracer(const ipc::ImageRecord& image);
// This process goes on as it is.
void record_own_image();
// The same after it could not become another program; also in the child of a vfork.
void restore_own_image();
// Whether the record says that the timer of alarm() runs in the host.
[[nodiscard]] bool has_recorded_alarm();
// This process brings an MPI of its own (own_mpi.hpp).
void note_own_mpi();

// The process has made or removed a segment of shared memory, or a semaphore. Only names that Python's
// multiprocessing draws are recorded.
enum class NamedObject : std::uint8_t { segment, semaphore };
void note_made(NamedObject kind, std::string_view name);
void note_removed(NamedObject kind, std::string_view name);

// Ends the calling thread, by its system call.
[[noreturn]] void leave_thread(int status);

// Call when this process has waited for a child that has ended, by itself or by a signal. flags: of the wait.
void note_reaped(pid_t child, int flags, bool has_exited);

// The status with which the loader ends a program whose libraries it does not find, before any code of ours.
inline constexpr int loader_failed = 127;

}  // namespace apenet::shim
