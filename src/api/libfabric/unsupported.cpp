#include "api/libfabric/unsupported.hpp"

namespace apenet::libfabric {

// The card has no atomics; MPI libraries fall back to active messages, which are exact.
const fi_ops_atomic unsupported_atomic = {
    .size = sizeof(fi_ops_atomic),
    .write = unsupported,
    .writev = unsupported,
    .writemsg = unsupported,
    .inject = unsupported,
    .readwrite = unsupported,
    .readwritev = unsupported,
    .readwritemsg = unsupported,
    .compwrite = unsupported,
    .compwritev = unsupported,
    .compwritemsg = unsupported,
    .writevalid = unsupported,
    .readwritevalid = unsupported,
    .compwritevalid = unsupported,
};

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
