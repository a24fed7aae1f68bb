#include "api/libfabric/unsupported.hpp"

namespace apenet::libfabric {

// Collectives are the MPI library's, over messages.
const fi_ops_collective unsupported_collective = {
    .size = sizeof(fi_ops_collective),
    .barrier = unsupported,
    .broadcast = unsupported,
    .alltoall = unsupported,
    .allreduce = unsupported,
    .allgather = unsupported,
    .reduce_scatter = unsupported,
    .reduce = unsupported,
    .scatter = unsupported,
    .gather = unsupported,
    .msg = unsupported,
    .barrier2 = unsupported,
};

}  // namespace apenet::libfabric
