// The functions of apelib.h in which all ranks take part.
#include <limits>

#include "api/apelib/apelib.h"
#include "api/apelib/arguments.hpp"
#include "api/apelib/collectives.hpp"
#include "api/apelib/error.hpp"
#include "api/apelib/process.hpp"

using namespace apenet::apelib;

namespace {

ape_type checked_type(std::string_view call, int type) {
  require(type >= APE_DOUBLE && type <= APE_DOUBLE_COMPLEX, APE_ERR_TYPE, call,
          "type " + number(type) + ": expected APE_DOUBLE, APE_FLOAT, APE_INT64 or APE_DOUBLE_COMPLEX");
  return static_cast<ape_type>(type);
}

int combined(std::string_view call, void* values, std::size_t count, int type, Operator with) {
  return entered(call, [&](Library& library) {
    const ape_type of = checked_type(call, type);
    require(count <= std::numeric_limits<std::size_t>::max() / bytes_of(of), APE_ERR_OVERSIZE, call,
            std::to_string(count) + " values");
    check_bytes(library, call, values, count * bytes_of(of));
    combine(library, call, values, count, of, with);
  });
}

}  // namespace

int ape_barrier(void) {
  return entered("ape_barrier", [](Library& library) { barrier(library, "ape_barrier"); });
}

int ape_broadcast(void* data, size_t bytes, int root) {
  constexpr std::string_view call = "ape_broadcast";
  return entered(call, [&](Library& library) {
    const std::uint32_t from = checked_rank(library, call, root);
    broadcast(library, checked_in(library, call, data, bytes), from);
  });
}

int ape_sum(void* values, size_t count, int type) {
  return combined("ape_sum", values, count, type, Operator::sum);
}

int ape_min(void* values, size_t count, int type) {
  return combined("ape_min", values, count, type, Operator::minimum);
}

int ape_max(void* values, size_t count, int type) {
  return combined("ape_max", values, count, type, Operator::maximum);
}

int ape_gather(const void* mine, size_t bytes, void* all, int root) {
  constexpr std::string_view call = "ape_gather";
  return entered(call, [&](Library& library) {
    const std::uint32_t to = checked_rank(library, call, root);
    const auto out = checked_out(library, call, mine, bytes);
    if (library.rank() == to) check_bytes(library, call, all, bytes);
    gather(library, out, static_cast<std::byte*>(all), to);
  });
}
