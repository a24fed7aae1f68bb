// Dynamic windows of Open MPI's releases whose implementation for them waits for itself.
#pragma once

#include "runtime/ipc/client.hpp"
#include "runtime/shim/mpi_library.hpp"

namespace apenet::shim {

// Lasts as long as a call of MPI_Win_create_dynamic. Before Open MPI 4.1.5, each access to such a window
// waits for ever in osc/rdma: it takes a lock, and then the same lock again (open-mpi/ompi, pull request
// 10518). So another implementation of the library serves these windows: osc/pt2pt, by messages.
class MakesDynamicWindow {
 public:
  explicit MakesDynamicWindow(ipc::Client* client, Word first = 0, Word second = 0);
  ~MakesDynamicWindow();
  MakesDynamicWindow(const MakesDynamicWindow&) = delete;
  MakesDynamicWindow& operator=(const MakesDynamicWindow&) = delete;

 private:
  int* priority_ = nullptr;  // the variable of osc/rdma; nullptr: this release needs no help
  int before_ = 0;
};

}  // namespace apenet::shim
