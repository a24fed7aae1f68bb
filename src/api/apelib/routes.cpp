#include "api/apelib/routes.hpp"

#include <string>
#include <tuple>
#include <utility>

#include "api/apelib/collectives.hpp"
#include "api/apelib/error.hpp"
#include "api/apelib/library.hpp"
#include "runtime/ipc/route_order.hpp"

namespace apenet::apelib {
namespace {

constexpr std::uint32_t route_root = 0;
constexpr std::uint64_t route_tag = network_tag(Purpose::collective, 0);

struct Declared {
  std::uint32_t routes = 0;
  std::uint32_t words = 0;
};

// What the root tells the others, before a text of this length.
struct Verdict {
  std::int32_t code = APE_OK;
  std::uint32_t length = 0;
};

template <typename Value>
std::span<std::byte> writable_bytes_of(Value& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

std::vector<std::uint32_t> order_of(ipc::RouteOrder what, std::uint32_t routes) {
  return {static_cast<std::uint32_t>(what), routes};
}

// The order of all ranks; at the root only.
std::vector<std::uint32_t> collected(Library& library, std::string_view call, const DeclaredRoutes& mine,
                                     std::span<const Declared> declared) {
  std::uint64_t words = ipc::order_words;
  for (const Declared& of_rank : declared) words += of_rank.words;
  std::vector<std::uint32_t> order = order_of(ipc::RouteOrder::replace, 0);
  order.reserve(words);
  for (std::uint32_t rank = 0; rank < library.size(); ++rank) {
    order[1] += declared[rank].routes;
    const std::size_t end = order.size();
    if (rank == library.rank()) {
      order.insert(order.end(), mine.words().begin(), mine.words().end());
    } else if (declared[rank].words > 0) {
      order.resize(end + declared[rank].words);
      library.receive(call, std::as_writable_bytes(std::span(order).subspan(end)), rank, route_tag);
    }
  }
  return order;
}

// Carries out the order. Returns the code and why.
std::pair<ape_error, std::string> result_of(Library& library, std::string_view call,
                                            std::span<const std::uint32_t> order) {
  try {
    if (order.size_bytes() > std::size_t{ipc::most_order_bytes})
      throw Error(APE_ERR_OVERSIZE, std::string(call) + ": more routes than one order can have");
    library.transport().order_routes(call, order);
    return {APE_OK, {}};
  } catch (const Error& error) {
    return {error.code(), error.why()};
  }
}

}  // namespace

void DeclaredRoutes::add(std::uint32_t from, std::uint32_t to, std::span<const std::uint32_t> directions) {
  words_.insert(words_.end(), {from, to, static_cast<std::uint32_t>(directions.size())});
  words_.insert(words_.end(), directions.begin(), directions.end());
  ++count_;
}

std::vector<std::uint32_t> read_route(Library& library, std::string_view call, std::uint32_t from,
                                      std::uint32_t to) {
  std::vector<std::uint32_t> order = order_of(ipc::RouteOrder::read, 1);
  order.insert(order.end(), {from, to, 0});
  return library.transport().order_routes(call, order);
}

// All messages of this call have reached the root before it gives its order, and the others wait for its
// answer. So the network is empty but for what the program itself has begun.
void take_routes(Library& library, std::string_view call) {
  const DeclaredRoutes mine = std::exchange(library.declared_routes(), {});
  const bool is_root = library.rank() == route_root;
  const Declared of_mine{mine.count(), static_cast<std::uint32_t>(mine.words().size())};
  std::vector<Declared> declared(is_root ? library.size() : 0);
  gather(library, std::as_bytes(std::span(&of_mine, 1)), std::as_writable_bytes(std::span(declared)).data(),
         route_root);
  std::string why;
  Verdict verdict;
  if (is_root) {
    const std::vector<std::uint32_t> order = collected(library, call, mine, declared);
    ape_error code = APE_OK;
    std::tie(code, why) = result_of(library, call, order);
    verdict = {code, static_cast<std::uint32_t>(why.size())};
  } else if (!mine.words().empty()) {
    library.send(call, std::as_bytes(mine.words()), route_root, route_tag);
  }
  broadcast(library, writable_bytes_of(verdict), route_root);
  if (verdict.code == APE_OK) return;
  why.resize(verdict.length);
  broadcast(library, std::as_writable_bytes(std::span(why)), route_root);
  throw Error(static_cast<ape_error>(verdict.code), why);
}

}  // namespace apenet::apelib
