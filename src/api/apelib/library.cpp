#include "api/apelib/library.hpp"

#include <array>
#include <string>

#include "api/apelib/error.hpp"

namespace apenet::apelib {

void Library::require_transport() const {
  if (!transport_.failure().empty()) throw Error(APE_ERR_NETWORK, transport_.failure());
}

void Library::wait_for(std::string_view call, std::span<Operation* const> operations) {
  std::size_t ended = 0;
  transport_.wait_until(call, [&] {
    while (ended < operations.size() && operations[ended]->is_done) ++ended;
    return ended == operations.size();
  });
  if (ended < operations.size()) require_transport();
  for (const Operation* operation : operations) {
    if (operation->error != APE_OK)
      throw Error(operation->error, std::string(call) + ": " + meaning_of(operation->error));
  }
}

void Library::send(std::string_view call, std::span<const std::byte> data, std::uint32_t to,
                   std::uint64_t tag, How how) {
  Operation operation;
  transport_.send(operation, data, to, tag, how);
  wait_for(call, std::array{&operation});
}

void Library::receive(std::string_view call, std::span<std::byte> into, std::uint32_t from, std::uint64_t tag,
                      How how) {
  Operation operation;
  transport_.receive(operation, into, from, tag, how);
  wait_for(call, std::array{&operation});
}

void Library::exchange(std::string_view call, std::span<const std::byte> out, std::uint32_t to,
                       std::span<std::byte> in, std::uint32_t from, std::uint64_t tag, How how) {
  Operation sent;
  Operation received;
  transport_.receive(received, in, from, tag, how);
  transport_.send(sent, out, to, tag, how);
  wait_for(call, std::array{&received, &sent});
}

void Library::start(Halo& halo) {
  halo.operations.clear();
  halo.operations.resize(2 * halo.faces.size());
  auto operation = halo.operations.begin();
  for (const Face& face : halo.faces) {
    const std::uint64_t tag = network_tag(Purpose::halo, face.direction ^ 1U);
    transport_.receive(*operation++, face.in, torus_.neighbor(rank(), face.direction), tag, How::prepared);
  }
  for (const Face& face : halo.faces) {
    const std::uint64_t tag = network_tag(Purpose::halo, face.direction);
    transport_.send(*operation++, face.out, torus_.neighbor(rank(), face.direction), tag, How::prepared);
  }
  halo.is_started = true;
}

bool Library::is_done(const Halo& halo) {
  for (const Operation& operation : halo.operations) {
    if (!operation.is_done) return false;
  }
  return true;
}

void Library::finish(std::string_view call, Halo& halo) {
  std::vector<Operation*> operations;
  operations.reserve(halo.operations.size());
  for (Operation& operation : halo.operations) operations.push_back(&operation);
  transport_.wait_until(call, [&] { return is_done(halo); });
  if (!is_done(halo)) require_transport();
  halo.is_started = false;
  wait_for(call, operations);
}

}  // namespace apenet::apelib
