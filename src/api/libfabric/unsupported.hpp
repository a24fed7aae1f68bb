// What the provider does not do: every such entry of a function table says so here and answers -FI_ENOSYS.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstdint>

namespace apenet::libfabric {

// Stands for a call of any signature.
struct Unsupported {
  template <typename Result, typename... Arguments>
  using Call = Result (*)(Arguments...);

  template <typename Result, typename... Arguments>
  constexpr operator Call<Result, Arguments...>() const {  // NOLINT(google-explicit-constructor)
    return [](Arguments...) -> Result { return static_cast<Result>(-FI_ENOSYS); };
  }
};
inline constexpr Unsupported unsupported;

extern const fi_ops_collective unsupported_collective;

// Every object has fi_ops; most do no more than close.
constexpr fi_ops object_ops(int (*close)(fid*), int (*bind)(fid*, fid*, std::uint64_t) = unsupported,
                            int (*control)(fid*, int, void*) = unsupported) {
  return {.size = sizeof(fi_ops),
          .close = close,
          .bind = bind,
          .control = control,
          .ops_open = unsupported,
          .tostr = unsupported,
          .ops_set = unsupported};
}

}  // namespace apenet::libfabric
