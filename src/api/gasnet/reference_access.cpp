#include "api/gasnet/reference_access.hpp"

#include <algorithm>
#include <array>

namespace apenet::gasnet {
namespace {

using native::Inside;

// Arguments of a put: address, and the origin's Pending.
constexpr std::size_t put_words = 4;
// A get's address, size, the origin's address, and its Pending.
constexpr std::size_t get_words = 7;

std::uint64_t address_of(const void* memory) {
  return reinterpret_cast<std::uint64_t>(memory);
}

std::byte* memory_at(Argument low_half, Argument high_half) {
  return reinterpret_cast<std::byte*>(number(low_half, high_half));  // NOLINT(performance-no-int-to-ptr)
}

void request(Library& library, std::uint32_t target, Own own, std::span<const Argument> words,
             std::span<const std::byte> payload, Pending& pending) {
  {
    const Inside inside(library.conduit().card().client());
    ++pending.accesses;
  }
  const Header header{.category = payload.empty() ? Category::short_message : Category::medium,
                      .argument_count = static_cast<std::uint8_t>(words.size()),
                      .handler = handler_of(own),
                      .payload_bytes = static_cast<std::uint32_t>(payload.size())};
  library.request(target, {.header = header, .arguments = words, .payload = payload});
}

void take_put(Library& library, const Incoming& message) {
  const auto& words = message.arguments;
  library.conduit().card().charge_copy(message.payload.size());
  std::ranges::copy(message.payload, memory_at(words[0], words[1]));
  library.signal(message.source, handler_of(Own::accessed), std::array{words[2], words[3]});
}

void answer_get(Library& library, const Incoming& message) {
  const auto& words = message.arguments;
  const std::span<const std::byte> data(memory_at(words[0], words[1]), static_cast<std::uint32_t>(words[2]));
  library.signal(message.source, handler_of(Own::got), std::array{words[3], words[4], words[5], words[6]},
                 data);
}

void take_got(Library& library, const Incoming& message) {
  const auto& words = message.arguments;
  library.conduit().card().charge_copy(message.payload.size());
  std::ranges::copy(message.payload, memory_at(words[0], words[1]));
  --reinterpret_cast<Pending*>(memory_at(words[2], words[3]))->accesses;
}

}  // namespace

void begin_reference_access(Library& library) {
  const auto set = [&library](Own own, void (*take)(Library&, const Incoming&)) {
    library.set_handler(handler_of(own),
                        [&library, take](const Incoming& message) { take(library, message); });
  };
  set(Own::put, take_put);
  set(Own::get, answer_get);
  set(Own::got, take_got);
}

void reference_put(Library& library, const Remote& destination, std::span<const std::byte> source,
                   Pending& pending) {
  const std::size_t most = library.conduit().reference_bytes(put_words);
  for (std::size_t begin = 0; begin < source.size(); begin += most) {
    const auto part = source.subspan(begin, std::min(most, source.size() - begin));
    const std::uint64_t address = address_of(destination.address) + begin;
    const std::uint64_t done = address_of(&pending);
    const std::array<Argument, put_words> words{low(address), high(address), low(done), high(done)};
    request(library, destination.rank, Own::put, words, part, pending);
  }
}

void reference_get(Library& library, std::span<std::byte> destination, const Remote& source,
                   Pending& pending) {
  const std::size_t most = library.conduit().reference_bytes(put_words);  // most bytes of the answer
  for (std::size_t begin = 0; begin < destination.size(); begin += most) {
    const std::size_t bytes = std::min(most, destination.size() - begin);
    const std::uint64_t from = address_of(source.address) + begin;
    const std::uint64_t to = address_of(destination.data()) + begin;
    const std::uint64_t done = address_of(&pending);
    const std::array<Argument, get_words> words{
        low(from), high(from), static_cast<Argument>(bytes), low(to), high(to), low(done), high(done)};
    request(library, source.rank, Own::get, words, {}, pending);
  }
}

}  // namespace apenet::gasnet
