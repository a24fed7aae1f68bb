// The functions of apelib.h for the torus: persistent halo exchanges and routes.
#include <vector>

#include "api/apelib/apelib.h"
#include "api/apelib/arguments.hpp"
#include "api/apelib/error.hpp"
#include "api/apelib/process.hpp"

using namespace apenet::apelib;

namespace {

Halo& checked_halo(Library& library, std::string_view call, ape_halo halo) {
  Halo* found = library.halos().find(halo);
  require(found != nullptr, APE_ERR_HALO, call, "not a halo: never created, or already freed");
  return *found;
}

}  // namespace

int ape_halo_create(ape_halo* halo) {
  return entered("ape_halo_create", [&](Library& library) {
    require_memory("ape_halo_create", halo);
    *halo = library.halos().add();
  });
}

int ape_halo_face(ape_halo halo, int direction, const void* out, void* in, size_t bytes) {
  constexpr std::string_view call = "ape_halo_face";
  return entered(call, [&](Library& library) {
    Halo& found = checked_halo(library, call, halo);
    require(!found.is_started, APE_ERR_BUSY, call, "the halo is in progress");
    const std::uint32_t towards = checked_direction(library, call, direction);
    const Face face{towards, checked_out(library, call, out, bytes), checked_in(library, call, in, bytes)};
    found.faces.push_back(face);
    library.transport().prepare(face.out);
    library.transport().prepare(face.in);
  });
}

int ape_halo_start(ape_halo halo) {
  constexpr std::string_view call = "ape_halo_start";
  return entered(call, [&](Library& library) {
    Halo& found = checked_halo(library, call, halo);
    require(!found.is_started, APE_ERR_BUSY, call, "the halo is in progress");
    library.start(found);
  });
}

int ape_halo_wait(ape_halo halo) {
  constexpr std::string_view call = "ape_halo_wait";
  return entered(call, [&](Library& library) {
    Halo& found = checked_halo(library, call, halo);
    require(found.is_started, APE_ERR_IDLE, call, "the halo has not been started");
    library.finish(call, found);
  });
}

int ape_halo_test(ape_halo halo, int* done) {
  constexpr std::string_view call = "ape_halo_test";
  return entered(call, [&](Library& library) {
    require_memory(call, done);
    Halo& found = checked_halo(library, call, halo);
    require(found.is_started, APE_ERR_IDLE, call, "the halo has not been started");
    if (!Library::is_done(found)) library.transport().poll();
    *done = Library::is_done(found) ? 1 : 0;
    if (*done != 0) library.finish(call, found);
  });
}

int ape_halo_free(ape_halo* halo) {
  constexpr std::string_view call = "ape_halo_free";
  return entered(call, [&](Library& library) {
    require_memory(call, halo);
    require(!checked_halo(library, call, *halo).is_started, APE_ERR_BUSY, call, "the halo is in progress");
    library.halos().remove(*halo);
    *halo = APE_NO_HALO;
  });
}

int ape_route_get(int from, int to, int room, int directions[], int* hops) {
  constexpr std::string_view call = "ape_route_get";
  return entered(call, [&](Library& library) {
    require_memory(call, hops);
    require(room >= 0, APE_ERR_ARGUMENT, call, "room " + number(room) + ": expected 0 or more");
    if (room > 0) require_memory(call, directions);
    const std::uint32_t begin = checked_rank(library, call, from);
    const std::vector<std::uint32_t> route =
        read_route(library, call, begin, checked_rank(library, call, to));
    *hops = static_cast<int>(route.size());
    for (std::size_t hop = 0; hop < route.size() && hop < static_cast<std::size_t>(room); ++hop)
      directions[hop] = static_cast<int>(route[hop]);
  });
}

int ape_route_add(int from, int to, int hops, const int directions[]) {
  constexpr std::string_view call = "ape_route_add";
  return entered(call, [&](Library& library) {
    const std::uint32_t begin = checked_rank(library, call, from);
    const std::uint32_t end = checked_rank(library, call, to);
    require(begin != end, APE_ERR_ROUTE, call, "from rank " + number(from) + " to itself");
    require(hops > 0, APE_ERR_ROUTE, call, number(hops) + " hops: expected 1 or more");
    require_memory(call, directions);
    std::vector<std::uint32_t> path;
    for (int hop = 0; hop < hops; ++hop) {
      require(directions[hop] >= 0 && directions[hop] < 2 * APE_MAX_DIMS, APE_ERR_DIRECTION, call,
              "direction " + number(directions[hop]) + ": expected 0 to " + number(2 * APE_MAX_DIMS - 1));
      path.push_back(static_cast<std::uint32_t>(directions[hop]));
    }
    library.declared_routes().add(begin, end, path);
  });
}

int ape_route_apply(void) {
  return entered("ape_route_apply", [](Library& library) { take_routes(library, "ape_route_apply"); });
}
