#include "runtime/shim/own_probes.hpp"

#include <array>
#include <cstddef>

namespace apenet::shim {
namespace {

// A request that does not complete: each test of it makes progress.
class OpenRequest {
 public:
  OpenRequest() {
    const auto query = [](void*, void*) { return 0; };
    const auto free = [](void*) { return 0; };
    const auto cancel = [](void*, int) { return 0; };
    call(profiling_symbol("PMPI_Grequest_start"), +query, +free, +cancel, Word{0}, &request_);
  }
  ~OpenRequest() {
    call(profiling_symbol("PMPI_Grequest_complete"), request_);
    call(profiling_symbol("PMPI_Wait"), &request_, status_.data());
  }
  OpenRequest(const OpenRequest&) = delete;
  OpenRequest& operator=(const OpenRequest&) = delete;

  void test() {
    static void* const original = profiling_symbol("PMPI_Test");
    int is_done = 0;
    call(original, &request_, &is_done, status_.data());
  }

 private:
  Word request_ = 0;  // a library with shorter handles uses the lower half
  alignas(std::max_align_t) std::array<std::byte, 256> status_{};  // longer than any library's
};

// ask(is_there): the library's call that does not wait.
template <typename Ask>
int wait_for_own(ipc::Client& client, Ask ask) {
  int is_there = 0;
  int result = ask(&is_there);
  if (result != 0 || is_there != 0) return result;
  const ipc::Waiting waiting(client.calls());
  OpenRequest open;
  while (result == 0 && is_there == 0) {
    open.test();
    if (client.progress().is_granted()) client.progress().moved();  // one poll is all that it needs
    result = ask(&is_there);
  }
  return result;
}

}  // namespace

bool spins_at(Word communicator) {
  static void* const size_of = profiling_symbol("PMPI_Comm_size");
  static void* const test_inter = profiling_symbol("PMPI_Comm_test_inter");
  int size = 0;
  int is_inter = 1;
  if (abi() == Abi::openmpi) return false;  // it makes progress
  return call(size_of, communicator, &size) == 0 && size == 1 &&
         call(test_inter, communicator, &is_inter) == 0 && is_inter == 0;
}

int probe_own(ipc::Client& client, Word source, Word tag, Word communicator, Word status) {
  static void* const original = profiling_symbol("PMPI_Iprobe");
  return wait_for_own(
      client, [&](int* is_there) { return call(original, source, tag, communicator, is_there, status); });
}

int probe_own(ipc::Client& client, Word source, Word tag, Word communicator, Word message, Word status) {
  static void* const original = profiling_symbol("PMPI_Improbe");
  return wait_for_own(client, [&](int* is_there) {
    return call(original, source, tag, communicator, is_there, message, status);
  });
}

}  // namespace apenet::shim
