// What the C edges of the machines' own libraries share: an exception inside is a status outside.
#pragma once

#include <new>
#include <string_view>
#include <type_traits>

#include "api/native/card.hpp"

namespace apenet::native {

// Thrown inside a library.
template <typename Status>
class Failure {
 public:
  explicit Failure(Status status) : status_(status) {}
  [[nodiscard]] Status status() const { return status_; }

 private:
  Status status_;
};

// Runs a call inside the process's lock, and turns what it throws into a status. The library of `layer`
// drives the first card, or there is no network.
template <typename Status, typename Call>
[[gnu::always_inline]] inline Status entered(std::string_view layer, Status no_network, Status no_memory,
                                             const Call& call) noexcept {
  try {
    const ipc::Header* machine = ipc::Client::machine();
    const bool is_driven = machine != nullptr && machine->rails[0].has_layer(layer);
    ipc::Client* client = is_driven ? ipc::Client::instance() : nullptr;
    if (client == nullptr) return no_network;
    const Inside inside(*client);
    return call(*client);
  } catch (const Failure<Status>& failure) {
    return failure.status();
  } catch (const std::bad_alloc&) {
    return no_memory;
  }
}

// For results that the program may leave out.
template <typename Value>
void store(Value* to, const std::type_identity_t<Value>& value) {
  if (to != nullptr) *to = value;
}

}  // namespace apenet::native
