// The entry point by which libfabric finds the provider.
#include <rdma/providers/fi_prov.h>

#include "api/libfabric/domain.hpp"
#include "api/libfabric/info.hpp"

namespace {

void clean_up() {}

}  // namespace

extern "C" FI_EXT_INI {
  // Not constant: libfabric keeps a note of its own in `context`. It announces the version of the MPI wheels'
  // libfabric, which takes no older provider; what it uses of the interface has not changed since 1.17.
  static fi_provider provider = {
      .version = FI_VERSION(0, 1),
      .fi_version = FI_VERSION(2, 5),
      .context = {},
      .name = "apenet",
      .getinfo = apenet::libfabric::get_info,
      .fabric = apenet::libfabric::open_fabric,
      .cleanup = clean_up,
  };
  return &provider;
}
