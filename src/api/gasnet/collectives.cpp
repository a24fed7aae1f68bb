// The C edge of GASNet's collectives.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "api/gasnet/interface.hpp"
#include "api/gasnet/library.hpp"
#include "api/gasnet/tree.hpp"
// After interface.hpp, which names the mode.
#include "api/gasnet/gasnet_coll.h"

namespace {

using apenet::gasnet::Argument;
using apenet::gasnet::Incoming;
using apenet::gasnet::Library;
using apenet::native::Inside;

// What has come of a broadcast; another one may come before this process has called the first.
struct Broadcast {
  std::vector<std::byte> data;
  std::size_t known_bytes = 0;
};

struct Collectives {
  bool is_open = false;
  std::uint32_t broadcasts_ended = 0;
  std::map<std::uint32_t, Broadcast> broadcasts;
};

Collectives& collectives() {
  static Collectives* const state = new Collectives;
  return *state;
}

constexpr auto own_number = apenet::gasnet::handler_of(apenet::gasnet::Own::broadcast);

// Arguments: number of the broadcast, the whole size, and the offset of the payload.
void take_part(const Incoming& message) {
  const auto word = [&](std::size_t i) { return static_cast<std::uint32_t>(message.arguments[i]); };
  Broadcast& broadcast = collectives().broadcasts[word(0)];
  broadcast.data.resize(word(1));
  std::ranges::copy(message.payload, broadcast.data.begin() + word(2));
  broadcast.known_bytes += message.payload.size();
}

void send_parts(Library& library, std::uint32_t root, std::uint32_t sequence,
                std::span<const std::byte> data) {
  for (const std::uint32_t child : apenet::gasnet::children(library.rank(), library.rank_count(), root)) {
    for (std::size_t begin = 0; begin < data.size(); begin += apenet::gasnet::max_medium_bytes) {
      const std::size_t bytes = std::min(apenet::gasnet::max_medium_bytes, data.size() - begin);
      const std::array<Argument, 3> words{static_cast<Argument>(sequence), static_cast<Argument>(data.size()),
                                          static_cast<Argument>(begin)};
      library.signal(child, own_number, words, data.subspan(begin, bytes));
    }
  }
}

}  // namespace

extern "C" {

void gasnet_coll_init(const gasnet_image_t images[], gasnet_image_t /*my_image*/,
                      gasnet_coll_fn_entry_t /*functions*/[], size_t /*function_count*/, int /*flags*/) {
  Library& library = Library::instance();
  library.require_no_handler("gasnet_coll_init");
  for (std::uint32_t rank = 0; images != nullptr && rank < library.rank_count(); ++rank) {
    if (images[rank] != 1)
      library.fatal("gasnet_coll_init", std::to_string(images[rank]) + " images on a node: expected 1");
  }
  const Inside inside(library.conduit().card().client());
  if (collectives().is_open) library.fatal("gasnet_coll_init", "called twice");
  collectives().is_open = true;
  library.set_handler(own_number, take_part);
}

void gasnet_coll_broadcast(gasnet_team_handle_t team, void* destination, gasnet_image_t root, void* source,
                           size_t bytes, int /*flags*/) {
  Library& library = Library::instance();
  library.require_no_handler("gasnet_coll_broadcast");
  if (!collectives().is_open) library.fatal("gasnet_coll_broadcast", "called before gasnet_coll_init");
  if (team != nullptr) library.fatal("gasnet_coll_broadcast", "there is no team but GASNET_TEAM_ALL");
  if (root >= library.rank_count() || bytes > INT32_MAX)
    library.fatal("gasnet_coll_broadcast", "the root is no node, or the size is above 2^31 - 1");
  gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS);
  const std::uint32_t sequence = collectives().broadcasts_ended++;
  if (library.rank() == root) {
    const Inside inside(library.conduit().card().client());
    send_parts(library, root, sequence, {static_cast<const std::byte*>(source), bytes});
    std::memmove(destination, source, bytes);
  } else if (bytes > 0) {
    Broadcast& broadcast = collectives().broadcasts[sequence];
    library.wait("gasnet_coll_broadcast", [&] { return broadcast.known_bytes == bytes; });
    const Inside inside(library.conduit().card().client());
    send_parts(library, root, sequence, broadcast.data);
    library.conduit().card().charge_copy(bytes);
    std::ranges::copy(broadcast.data, static_cast<std::byte*>(destination));
    collectives().broadcasts.erase(sequence);
  }
  gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS);
}

}  // extern "C"
