#include "api/gasnet/operations.hpp"

#include <cstring>
#include <string>

namespace apenet::gasnet {
namespace {

using native::Inside;

void check(std::string_view call, const Remote& remote, std::size_t bytes) {
  Library& library = Library::instance();
  library.require_no_handler(call);
  if (remote.rank >= library.rank_count())
    library.fatal(call, "there is no node " + std::to_string(remote.rank));
  if (!library.is_in_segment(remote.rank, remote.address, bytes))
    library.fatal(call, "the memory is not in the segment of node " + std::to_string(remote.rank));
}

void set_own_memory(Library& library, const Incoming& message) {
  const auto& words = message.arguments;
  std::memset(reinterpret_cast<void*>(number(words[0], words[1])), words[2], number(words[3], words[4]));
  library.conduit().card().charge_copy(number(words[3], words[4]));
  const std::array<Argument, 2> done{words[5], words[6]};
  library.signal(message.source, handler_of(Own::accessed), done);
}

}  // namespace

Implicit& implicit() {
  static thread_local Implicit* const state = new Implicit;
  return *state;
}

Pending& implicit_puts() {
  Implicit& state = implicit();
  return state.region != nullptr ? state.region->pending : state.puts;
}

Pending& implicit_gets() {
  Implicit& state = implicit();
  return state.region != nullptr ? state.region->pending : state.gets;
}

void begin_operations(Library& library) {
  library.set_handler(handler_of(Own::memset),
                      [&library](const Incoming& message) { set_own_memory(library, message); });
  library.set_handler(handler_of(Own::accessed), [](const Incoming& message) {
    --reinterpret_cast<Pending*>(number(message.arguments[0], message.arguments[1]))->accesses;
  });
  begin_reference_access(library);
}

void put(std::string_view call, const Remote& destination, std::span<const std::byte> source,
         bool keeps_source, Pending& pending) {
  check(call, destination, source.size());
  Library& library = Library::instance();
  Conduit& conduit = library.conduit();
  if (!conduit.has_remote_access()) return reference_put(library, destination, source, pending);
  const Inside inside(conduit.card().client());
  const std::uint32_t sources_before = pending.sources;
  conduit.put(destination.rank, static_cast<std::byte*>(destination.address), source, pending);
  if (keeps_source) conduit.await(call, [&] { return pending.sources <= sources_before; });
}

void get(std::string_view call, std::span<std::byte> destination, const Remote& source, Pending& pending) {
  check(call, source, destination.size());
  Library& library = Library::instance();
  Conduit& conduit = library.conduit();
  if (!conduit.has_remote_access()) return reference_get(library, destination, source, pending);
  const Inside inside(conduit.card().client());
  conduit.get(source.rank, static_cast<const std::byte*>(source.address), destination, pending);
}

void set_memory(std::string_view call, const Remote& destination, int value, std::size_t bytes,
                Pending& pending) {
  check(call, destination, bytes);
  if (bytes == 0) return;
  Library& library = Library::instance();
  const auto address = reinterpret_cast<std::uint64_t>(destination.address);
  const auto done = reinterpret_cast<std::uint64_t>(&pending);
  const std::array<Argument, 7> words{low(address), high(address), value,     low(bytes),
                                      high(bytes),  low(done),     high(done)};
  {
    const Inside inside(library.conduit().card().client());
    ++pending.accesses;
  }
  const Header header{.category = Category::short_message,
                      .argument_count = words.size(),
                      .handler = handler_of(Own::memset)};
  library.request(destination.rank, {.header = header, .arguments = words, .payload = {}});
}

void wait_for(std::string_view call, const Pending& pending) {
  Library& library = Library::instance();
  library.require_no_handler(call);
  library.wait(call, [&pending] { return pending.is_empty(); });
}

bool is_finished(std::string_view call, const Pending& pending) {
  Library& library = Library::instance();
  library.require_no_handler(call);
  library.poll();
  const Inside inside(library.conduit().card().client());
  return pending.is_empty();
}

}  // namespace apenet::gasnet
