// Transport: what the library needs of the network below it. There are two: the card of a simulated machine,
// in virtual time, and libfabric, in real time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/apelib/apelib.h"
#include "api/apelib/torus.hpp"

namespace apenet::apelib {

// How the data of an operation gets from or to the program's memory: ape_how, and
enum class How : std::uint8_t {
  automatic,
  zero_copy,
  copied,
  // zero_copy, with memory that Transport::prepare() knows. The program has at most one such message under
  // way for each receive, so that it needs no handshake: it goes into a spare buffer if the receive is late.
  prepared,
};

// One send or receive. Stays where it is until it is done.
struct Operation {
  bool is_done = false;
  ape_error error = APE_OK;
  std::uint32_t parts = 0;            // messages of the network that it still consists of
  std::uint64_t received = 0;         // bytes
  std::span<std::byte> into;          // receive: the program's memory
  std::unique_ptr<std::byte[]> copy;  // How::copied: what the network reads or writes in its place

  void end(ape_error how, std::uint64_t bytes) {
    error = how;
    received = bytes;
    is_done = true;
  }
};

class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  [[nodiscard]] virtual std::uint32_t size() const = 0;
  [[nodiscard]] virtual std::uint64_t most_bytes() const = 0;  // largest message
  // What the machine says of the ranks' torus; none: it has none that they fill.
  [[nodiscard]] virtual std::optional<Torus> torus() const = 0;

  // Call around each call of the program.
  virtual void enter() = 0;
  virtual void leave() noexcept = 0;

  // Both begin an operation, of at most most_bytes().
  virtual void send(Operation& operation, std::span<const std::byte> data, std::uint32_t to,
                    std::uint64_t tag, How how) = 0;
  virtual void receive(Operation& operation, std::span<std::byte> into, std::uint32_t from, std::uint64_t tag,
                       How how) = 0;
  // Memory that many operations of How::prepared will use.
  virtual void prepare(std::span<const std::byte> memory) = 0;

  // Makes progress once; does not wait.
  virtual void poll() = 0;
  // Makes progress until done(). `call`: what the program has called.
  virtual void wait_until(std::string_view call, const std::function<bool()>& done) = 0;
  // Gives the network an order about routes, and returns the words of its answer: ipc/route_order.hpp. Throws
  // Error if it is refused.
  virtual std::vector<std::uint32_t> order_routes(std::string_view call,
                                                  std::span<const std::uint32_t> order) = 0;
  // What went wrong for good, so that nothing ends any more; empty: nothing.
  [[nodiscard]] virtual const std::string& failure() const = 0;
  // All ranks have called ape_finalize().
  virtual void close() = 0;
};

// The one in real time, which `realtime` defines: one libfabric endpoint with reliable, tagged messages. It
// is described by the environment: APELIB_PROVIDER, APELIB_LIBFABRIC and the launcher's variables. Throws
// Error(APE_ERR_ENVIRONMENT).
[[nodiscard]] std::unique_ptr<Transport> make_fabric_transport();

}  // namespace apenet::apelib
