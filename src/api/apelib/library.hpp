// Library: what a process has after ape_init(): its transport, its torus, its requests and halos.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "api/apelib/handles.hpp"
#include "api/apelib/routes.hpp"
#include "api/apelib/torus.hpp"
#include "api/apelib/transport.hpp"

namespace apenet::apelib {

// A tag of the network: what a message is for, and the number that belongs to that.
enum class Purpose : std::uint8_t { program, collective, halo };
[[nodiscard]] constexpr std::uint64_t network_tag(Purpose purpose, std::uint32_t number) {
  return std::uint64_t{static_cast<std::uint8_t>(purpose)} << 32 | number;
}

struct Face {
  std::uint32_t direction = 0;
  std::span<const std::byte> out;
  std::span<std::byte> in;
};

struct Halo {
  bool is_started = false;
  std::vector<Face> faces;
  std::deque<Operation> operations;
};

// The C edge checks the arguments; the methods require valid ones.
class Library {
 public:
  Library(Transport& transport, Torus torus) : transport_(transport), torus_(std::move(torus)) {}

  [[nodiscard]] Transport& transport() { return transport_; }
  [[nodiscard]] const Torus& torus() const { return torus_; }
  [[nodiscard]] std::uint32_t rank() const { return transport_.rank(); }
  [[nodiscard]] std::uint32_t size() const { return transport_.size(); }
  [[nodiscard]] Handles<Operation>& requests() { return requests_; }
  [[nodiscard]] Handles<Halo>& halos() { return halos_; }
  [[nodiscard]] DeclaredRoutes& declared_routes() { return declared_routes_; }

  // Waits for all of them; throws the error of the first that failed.
  void wait_for(std::string_view call, std::span<Operation* const> operations);
  // Throws if the transport has failed.
  void require_transport() const;

  void send(std::string_view call, std::span<const std::byte> data, std::uint32_t to, std::uint64_t tag,
            How how = How::automatic);
  void receive(std::string_view call, std::span<std::byte> into, std::uint32_t from, std::uint64_t tag,
               How how = How::automatic);
  void exchange(std::string_view call, std::span<const std::byte> out, std::uint32_t to,
                std::span<std::byte> in, std::uint32_t from, std::uint64_t tag, How how = How::automatic);

  void start(Halo& halo);
  [[nodiscard]] static bool is_done(const Halo& halo);
  void finish(std::string_view call, Halo& halo);

 private:
  Transport& transport_;
  Torus torus_;
  Handles<Operation> requests_;
  Handles<Halo> halos_;
  DeclaredRoutes declared_routes_;
};

}  // namespace apenet::apelib
