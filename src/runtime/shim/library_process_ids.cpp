// The process id that MPICH and Intel MPI write into the name of the file of a shared file pointer. A rank
// sends this name to all others in MPI_File_open, so the id has the same number of digits in each run.
#include "runtime/shim/library_process_ids.hpp"

#include <dlfcn.h>
#include <sys/types.h>

#include <atomic>
#include <string_view>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// Larger than any process id, so that the sum has ten digits, and different ones for different processes.
constexpr pid_t first_id = 1'000'000'000;

// The notes of calls lie in memory that its forks do not have.
constinit std::atomic<pid_t> rank_process{0};

bool is_mpi_library(const void* code) {
  Dl_info found{};
  if (dladdr(code, &found) == 0 || found.dli_fname == nullptr) return false;
  const std::string_view path = found.dli_fname;
  return path.substr(path.rfind('/') + 1).starts_with("libmpi");
}

bool names_file(const void* caller) {
  return is_in_call() && own_note->call.get() == ipc::MpiCall::MPI_File_open && is_mpi_library(caller);
}

}  // namespace

void note_rank_process() {
  rank_process = ipc::host_call(SYS_getpid, 0, 0);
}

APENET_EXPORT pid_t getpid() noexcept {
  const pid_t own = ipc::host_call(SYS_getpid, 0, 0);
  return own == rank_process && names_file(__builtin_return_address(0)) ? first_id + own : own;
}

}  // namespace apenet::shim
