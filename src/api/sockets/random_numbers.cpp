// The system's random numbers, which programs of sockets draw for names, pauses and tables: a function of the
// run's seed, the rank, its thread, and what the thread has drawn, so that runs repeat.
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "api/sockets/known_sockets.hpp"
#include "api/sockets/random_numbers.hpp"
#include "api/sockets/simulated_socket.hpp"
#include "kernel/random.hpp"
#include "runtime/ipc/single_threaded.hpp"

namespace apenet::sockets {
namespace {

struct Drawn {
  std::uint64_t count = 0;
  std::int64_t began_ps = 0;  // the time of the first draw: a program that is executed later draws others
  std::uint32_t thread = 0;
};

// nullptr: before the process's sockets begin.
ipc::Client* client_of_rank() {
  if (ipc::Client* const rank = ipc::Client::of_rank()) return rank;  // a process that the rank has started
  Caller* const caller = Caller::known();
  return caller == nullptr ? nullptr : &caller->client();
}

// nullopt: a thread, or a time, of which the order knows nothing. The host answers.
std::optional<SplitMix64> next_numbers() {
  static thread_local Drawn drawn;
  ipc::Client* const client = client_of_rank();
  const ipc::Header* const machine = ipc::Client::header_of_run();
  if (client == nullptr || machine == nullptr) return {};
  const ipc::OrderedThread* const own =
      client->order() == nullptr ? nullptr : client->order()->find(pthread_self());
  if (own == nullptr && !ipc::is_single_threaded()) return {};
  const std::uint32_t thread = own == nullptr ? 0 : own->key.number;
  if (drawn.count == 0 || drawn.thread != thread)
    drawn = {.began_ps = own == nullptr ? client->clock_ps() : own->key.clock_ps, .thread = thread};
  const std::uint64_t place = std::uint64_t{client->rank()} << 32U | thread;
  std::uint64_t state = SplitMix64(machine->seed, place).next();
  state = SplitMix64(state, static_cast<std::uint64_t>(drawn.began_ps)).next();
  return SplitMix64(state, drawn.count++);
}

bool draw(void* to, std::size_t bytes) {
  std::optional<SplitMix64> numbers = next_numbers();
  if (!numbers) return false;
  auto* at = static_cast<std::byte*>(to);
  for (std::size_t left = bytes; left > 0;) {
    const std::uint64_t number = numbers->next();
    const std::size_t part = std::min(left, sizeof number);
    std::memcpy(at, &number, part);
    at += part;
    left -= part;
  }
  return true;
}

}  // namespace

void draw_process_numbers() {
  constexpr std::size_t bytes = 16;
  const auto at = reinterpret_cast<void*>(getauxval(AT_RANDOM));  // NOLINT(performance-no-int-to-ptr)
  if (at != nullptr) draw(at, bytes);
}

APENET_SOCKETS_EXPORT ssize_t getrandom(void* to, std::size_t bytes, unsigned flags) {
  static const auto real = next<decltype(&::getrandom)>("getrandom");
  if (to == nullptr || !draw(to, bytes)) return real(to, bytes, flags);
  return static_cast<ssize_t>(bytes);
}

APENET_SOCKETS_EXPORT int getentropy(void* to, std::size_t bytes) {
  static const auto real = next<decltype(&::getentropy)>("getentropy");
  constexpr std::size_t most_bytes = 256;
  return to == nullptr || bytes > most_bytes || !draw(to, bytes) ? real(to, bytes) : 0;
}

// The C library has these from 2.36 on.
APENET_SOCKETS_EXPORT void arc4random_buf(void* to, std::size_t bytes) noexcept {
  static const auto real = next<void (*)(void*, std::size_t)>("arc4random_buf");
  if (draw(to, bytes)) return;
  if (real != nullptr) return real(to, bytes);
  auto* at = static_cast<std::byte*>(to);
  for (std::size_t left = bytes; left > 0;) {
    const ssize_t part = ::getrandom(at + (bytes - left), left, 0);
    if (part > 0) left -= static_cast<std::size_t>(part);
  }
}

APENET_SOCKETS_EXPORT std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  arc4random_buf(&number, sizeof number);
  return number;
}

APENET_SOCKETS_EXPORT std::uint32_t arc4random_uniform(std::uint32_t bound) noexcept {
  if (bound < 2) return 0;
  // The smallest numbers, of which there is one more for some results than for others, do not count.
  const std::uint32_t least = -bound % bound;
  std::uint32_t number = arc4random();
  while (number < least) number = arc4random();
  return number % bound;
}

}  // namespace apenet::sockets
