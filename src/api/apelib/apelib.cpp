// The functions of apelib.h that open the library, tell ranks and coordinates, and send and receive.
#include "api/apelib/apelib.h"

#include "api/apelib/arguments.hpp"
#include "api/apelib/process.hpp"

using namespace apenet::apelib;

const char* ape_strerror(int code) {
  return apenet::apelib::meaning_of(code);
}

const char* ape_last_error(void) {
  return Process::last_error().c_str();
}

int ape_init(void) {
  return guarded("ape_init", [] { Process::instance().open(); });
}

int ape_finalize(void) {
  return guarded("ape_finalize", [] { Process::instance().close(); });
}

int ape_rank(int* rank) {
  return entered("ape_rank", [&](Library& library) {
    require_memory("ape_rank", rank);
    *rank = static_cast<int>(library.rank());
  });
}

int ape_size(int* size) {
  return entered("ape_size", [&](Library& library) {
    require_memory("ape_size", size);
    *size = static_cast<int>(library.size());
  });
}

int ape_dims(int* count, int dims[APE_MAX_DIMS]) {
  return entered("ape_dims", [&](Library& library) {
    require_memory("ape_dims", count, dims);
    *count = static_cast<int>(library.torus().dimensions());
    for (std::size_t d = 0; d < APE_MAX_DIMS; ++d) dims[d] = static_cast<int>(library.torus().extents()[d]);
  });
}

int ape_coords(int rank, int coords[APE_MAX_DIMS]) {
  return entered("ape_coords", [&](Library& library) {
    require_memory("ape_coords", coords);
    const Coordinates at = library.torus().coordinates(checked_rank(library, "ape_coords", rank));
    for (std::size_t d = 0; d < APE_MAX_DIMS; ++d) coords[d] = static_cast<int>(at[d]);
  });
}

int ape_rank_at(const int coords[APE_MAX_DIMS], int* rank) {
  return entered("ape_rank_at", [&](Library& library) {
    require_memory("ape_rank_at", coords, rank);
    const Torus& torus = library.torus();
    Coordinates at{};
    for (std::uint32_t d = 0; d < torus.dimensions(); ++d) {
      require(coords[d] >= 0 && static_cast<std::uint32_t>(coords[d]) < torus.extents()[d],
              APE_ERR_COORDINATES, "ape_rank_at",
              "coordinate " + number(d) + " = " + number(coords[d]) + ": expected 0 to " +
                  number(torus.extents()[d] - 1));
      at[d] = static_cast<std::uint32_t>(coords[d]);
    }
    *rank = static_cast<int>(torus.rank_at(at));
  });
}

int ape_neighbor(int direction, int* rank) {
  return entered("ape_neighbor", [&](Library& library) {
    require_memory("ape_neighbor", rank);
    const std::uint32_t towards = checked_direction(library, "ape_neighbor", direction);
    *rank = static_cast<int>(library.torus().neighbor(library.rank(), towards));
  });
}

int ape_send(const void* data, size_t bytes, int to, int tag, int how) {
  constexpr std::string_view call = "ape_send";
  return entered(call, [&](Library& library) {
    const std::uint32_t target = checked_rank(library, call, to);
    const std::uint64_t number = checked_tag(call, tag);
    const How mode = checked_how(call, how);
    library.send(call, checked_out(library, call, data, bytes), target, number, mode);
  });
}

int ape_recv(void* data, size_t bytes, int from, int tag, int how) {
  constexpr std::string_view call = "ape_recv";
  return entered(call, [&](Library& library) {
    const std::uint32_t source = checked_rank(library, call, from);
    const std::uint64_t number = checked_tag(call, tag);
    const How mode = checked_how(call, how);
    library.receive(call, checked_in(library, call, data, bytes), source, number, mode);
  });
}

int ape_sendrecv(const void* out, size_t out_bytes, int to, void* in, size_t in_bytes, int from, int tag,
                 int how) {
  constexpr std::string_view call = "ape_sendrecv";
  return entered(call, [&](Library& library) {
    const std::uint32_t target = checked_rank(library, call, to);
    const std::uint32_t source = checked_rank(library, call, from);
    const std::uint64_t number = checked_tag(call, tag);
    const How mode = checked_how(call, how);
    const auto data = checked_out(library, call, out, out_bytes);
    library.exchange(call, data, target, checked_in(library, call, in, in_bytes), source, number, mode);
  });
}
