// The functions of apelib.h: each checks its arguments, and calls the library.
#include "api/apelib/apelib.h"

#include <array>
#include <limits>
#include <string>

#include "api/apelib/collectives.hpp"
#include "api/apelib/process.hpp"

namespace {

using namespace apenet::apelib;

std::string number(std::int64_t value) {
  return std::to_string(value);
}

void require(bool holds, ape_error code, std::string_view call, const std::string& what) {
  if (!holds) throw Error(code, std::string(call) + ": " + what);
}

template <typename... Pointers>
void require_memory(std::string_view call, const Pointers*... pointers) {
  const bool missing = (... || (pointers == nullptr));
  if (missing) throw Error(APE_ERR_ARGUMENT, std::string(call) + ": a null pointer");
}

// Of a rank.
std::uint32_t checked_rank(const Library& library, std::string_view call, int rank) {
  require(rank >= 0 && static_cast<std::uint32_t>(rank) < library.size(), APE_ERR_RANK, call,
          "rank " + number(rank) + ": expected 0 to " + number(library.size() - 1));
  return static_cast<std::uint32_t>(rank);
}

std::uint32_t checked_direction(const Library& library, std::string_view call, int direction) {
  const std::uint32_t directions = 2 * library.torus().dimensions();
  require(direction >= 0 && static_cast<std::uint32_t>(direction) < directions, APE_ERR_DIRECTION, call,
          "direction " + number(direction) + ": expected 0 to " + number(directions - 1));
  return static_cast<std::uint32_t>(direction);
}

std::uint64_t checked_tag(std::string_view call, int tag) {
  require(tag >= 0, APE_ERR_TAG, call, "tag " + number(tag) + ": expected 0 or more");
  return network_tag(Purpose::program, static_cast<std::uint32_t>(tag));
}

How checked_how(std::string_view call, int how) {
  switch (how) {
    case APE_AUTO:
      return How::automatic;
    case APE_ZERO_COPY:
      return How::zero_copy;
    case APE_COPIED:
      return How::copied;
    default:
      throw Error(APE_ERR_HOW, std::string(call) + ": how " + number(how) +
                                   ": expected APE_AUTO, APE_ZERO_COPY or APE_COPIED");
  }
}

void check_bytes(Library& library, std::string_view call, const void* memory, std::uint64_t bytes) {
  require(memory != nullptr || bytes == 0, APE_ERR_ARGUMENT, call, "a null pointer");
  const std::uint64_t most = library.transport().most_bytes();
  require(bytes <= most, APE_ERR_OVERSIZE, call,
          std::to_string(bytes) + " bytes: this network carries at most " + std::to_string(most));
}

std::span<const std::byte> checked_out(Library& library, std::string_view call, const void* memory,
                                       std::size_t bytes) {
  check_bytes(library, call, memory, bytes);
  return {static_cast<const std::byte*>(memory), bytes};
}

std::span<std::byte> checked_in(Library& library, std::string_view call, void* memory, std::size_t bytes) {
  check_bytes(library, call, memory, bytes);
  return {static_cast<std::byte*>(memory), bytes};
}

Halo& checked_halo(Library& library, std::string_view call, ape_halo halo) {
  Halo* found = library.halos().find(halo);
  require(found != nullptr, APE_ERR_HALO, call, "not a halo: never created, or already freed");
  return *found;
}

Operation& checked_request(Library& library, std::string_view call, ape_request request) {
  Operation* found = library.requests().find(request);
  require(found != nullptr, APE_ERR_REQUEST, call,
          "not a request in progress: never begun, or already waited for");
  return *found;
}

// The requests of an array; nullptr for APE_NO_REQUEST. A number that stands twice is waited for twice.
std::vector<Operation*> checked_requests(Library& library, std::string_view call, int count,
                                         const ape_request* requests) {
  require(count >= 0, APE_ERR_ARGUMENT, call, "count " + number(count) + ": expected 0 or more");
  if (count > 0) require_memory(call, requests);
  std::vector<Operation*> operations;
  for (int i = 0; i < count; ++i) {
    const bool is_none = requests[i] == APE_NO_REQUEST;
    operations.push_back(is_none ? nullptr : &checked_request(library, call, requests[i]));
  }
  return operations;
}

// A request whose operation begin() has begun. A begin that throws leaves none.
template <typename Begin>
ape_request begun(Library& library, Begin begin) {
  const ape_request added = library.requests().add();
  try {
    begin(*library.requests().find(added));
  } catch (...) {
    library.requests().remove(added);
    throw;
  }
  return added;
}

// Ends a request whose operation is done, and returns its error.
ape_error end_request(Library& library, ape_request* request, std::size_t* received) {
  const Operation& operation = *library.requests().find(*request);
  const ape_error error = operation.error;
  if (received != nullptr) *received = operation.received;
  library.requests().remove(*request);
  *request = APE_NO_REQUEST;
  return error;
}

void throw_error(std::string_view call, ape_error error) {
  if (error != APE_OK) throw Error(error, std::string(call) + ": " + meaning_of(error));
}

// The first that is done, or -1.
int first_done(std::span<Operation* const> operations) {
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (operations[i] != nullptr && operations[i]->is_done) return static_cast<int>(i);
  }
  return -1;
}

bool all_done(std::span<Operation* const> operations) {
  for (const Operation* operation : operations) {
    if (operation != nullptr && !operation->is_done) return false;
  }
  return true;
}

bool any(std::span<Operation* const> operations) {
  for (const Operation* operation : operations) {
    if (operation != nullptr) return true;
  }
  return false;
}

// A number may stand twice in the array.
void end_all(Library& library, std::string_view call, std::span<ape_request> requests) {
  ape_error first = APE_OK;
  for (ape_request& request : requests) {
    if (library.requests().find(request) == nullptr) {
      request = APE_NO_REQUEST;
      continue;
    }
    const ape_error error = end_request(library, &request, nullptr);
    if (first == APE_OK) first = error;
  }
  throw_error(call, first);
}

void any_request(Library& library, std::string_view call, int count, ape_request* requests, int* which,
                 std::size_t* received, bool waits) {
  require_memory(call, which);
  const std::vector<Operation*> operations = checked_requests(library, call, count, requests);
  *which = -1;
  if (received != nullptr) *received = 0;
  if (!any(operations)) return;
  *which = first_done(operations);
  if (*which < 0) {
    if (waits) {
      library.transport().wait_until(call, [&] { return first_done(operations) >= 0; });
    } else {
      library.transport().look();
    }
    *which = first_done(operations);
  }
  if (*which < 0) library.require_transport();
  if (*which < 0) return;
  throw_error(call, end_request(library, &requests[*which], received));
}

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

int ape_isend(const void* data, size_t bytes, int to, int tag, int how, ape_request* request) {
  constexpr std::string_view call = "ape_isend";
  return entered(call, [&](Library& library) {
    require_memory(call, request);
    const std::uint32_t target = checked_rank(library, call, to);
    const std::uint64_t number = checked_tag(call, tag);
    const How mode = checked_how(call, how);
    const auto out = checked_out(library, call, data, bytes);
    *request = begun(library, [&](Operation& operation) {
      library.transport().send(operation, out, target, number, mode);
    });
  });
}

int ape_irecv(void* data, size_t bytes, int from, int tag, int how, ape_request* request) {
  constexpr std::string_view call = "ape_irecv";
  return entered(call, [&](Library& library) {
    require_memory(call, request);
    const std::uint32_t source = checked_rank(library, call, from);
    const std::uint64_t number = checked_tag(call, tag);
    const How mode = checked_how(call, how);
    const auto in = checked_in(library, call, data, bytes);
    *request = begun(library, [&](Operation& operation) {
      library.transport().receive(operation, in, source, number, mode);
    });
  });
}

int ape_wait(ape_request* request, size_t* received) {
  constexpr std::string_view call = "ape_wait";
  return entered(call, [&](Library& library) {
    require_memory(call, request);
    const Operation& operation = checked_request(library, call, *request);
    library.transport().wait_until(call, [&] { return operation.is_done; });
    if (!operation.is_done) library.require_transport();
    throw_error(call, end_request(library, request, received));
  });
}

int ape_test(ape_request* request, int* done, size_t* received) {
  constexpr std::string_view call = "ape_test";
  return entered(call, [&](Library& library) {
    require_memory(call, request, done);
    const Operation& operation = checked_request(library, call, *request);
    if (!operation.is_done) library.transport().look();
    *done = operation.is_done ? 1 : 0;
    if (operation.is_done) throw_error(call, end_request(library, request, received));
  });
}

int ape_wait_any(int count, ape_request requests[], int* which, size_t* received) {
  return entered("ape_wait_any", [&](Library& library) {
    any_request(library, "ape_wait_any", count, requests, which, received, true);
  });
}

int ape_test_any(int count, ape_request requests[], int* which, size_t* received) {
  return entered("ape_test_any", [&](Library& library) {
    any_request(library, "ape_test_any", count, requests, which, received, false);
  });
}

int ape_wait_all(int count, ape_request requests[]) {
  constexpr std::string_view call = "ape_wait_all";
  return entered(call, [&](Library& library) {
    const std::vector<Operation*> operations = checked_requests(library, call, count, requests);
    library.transport().wait_until(call, [&] { return all_done(operations); });
    if (!all_done(operations)) library.require_transport();
    end_all(library, call, {requests, operations.size()});
  });
}

int ape_test_all(int count, ape_request requests[], int* done) {
  constexpr std::string_view call = "ape_test_all";
  return entered(call, [&](Library& library) {
    require_memory(call, done);
    const std::vector<Operation*> operations = checked_requests(library, call, count, requests);
    if (!all_done(operations)) library.transport().look();
    *done = all_done(operations) ? 1 : 0;
    if (*done != 0) end_all(library, call, {requests, operations.size()});
  });
}

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
    if (!Library::is_done(found)) library.transport().look();
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
