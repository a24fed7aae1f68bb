#include "runtime/shim/dynamic_windows.hpp"

#include <array>
#include <cstdio>
#include <tuple>

namespace apenet::shim {
namespace {

bool waits_for_itself() {
  static void* const get_version = profiling_symbol("PMPI_Get_library_version");
  std::array<char, 1024> text{};  // MPI_MAX_LIBRARY_VERSION_STRING is 256 in Open MPI, and larger in others
  int length = 0;
  int major = 0;
  int minor = 0;
  int release = 0;
  return abi() == Abi::openmpi && call(get_version, text.data(), &length) == 0 &&
         std::sscanf(text.data(), "Open MPI v%d.%d.%d", &major, &minor, &release) == 3 &&
         std::tuple(major, minor, release) < std::tuple(4, 1, 5);
}

// The library's own variable for its parameter osc_rdma_priority: where it stores the value.
int* find_priority() {
  void* const find = find_profiling_symbol("mca_base_var_find");
  void* const get_value = find_profiling_symbol("mca_base_var_get_value");
  if (find == nullptr || get_value == nullptr) return nullptr;
  const int variable = call(find, "ompi", "osc", "rdma", "priority");
  int* storage = nullptr;
  return variable >= 0 && call(get_value, Word{variable}, &storage, nullptr, nullptr) == 0 ? storage
                                                                                           : nullptr;
}

}  // namespace

MakesDynamicWindow::MakesDynamicWindow(ipc::Client* client, Word /*first*/, Word /*second*/) {
  if (client == nullptr || !waits_for_itself()) return;
  priority_ = find_priority();
  if (priority_ == nullptr) return;
  before_ = *priority_;
  *priority_ = 0;
}

MakesDynamicWindow::~MakesDynamicWindow() {
  if (priority_ != nullptr) *priority_ = before_;
}

}  // namespace apenet::shim
