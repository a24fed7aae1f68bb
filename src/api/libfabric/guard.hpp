// The C edge: every entry point of the provider runs inside enter(), which holds the process's lock, charges
// what the program computed since it last left the library, and turns exceptions into negative error numbers.
#pragma once

#include <rdma/fi_errno.h>

#include <string>
#include <type_traits>
#include <utility>

#include "runtime/ipc/inside.hpp"

namespace apenet::libfabric {

// An error with the number that libfabric gives it.
class FabricError {
 public:
  FabricError(int code, std::string message) : code_(code), message_(std::move(message)) {}
  [[nodiscard]] int code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  int code_;  // FI_E..., positive
  std::string message_;
};

// Logs the exception being handled and returns its negative error number.
int report_exception() noexcept;

// For calls that touch nothing shared. A call that returns nothing has succeeded: 0.
template <typename Call>
auto enter(Call&& call) noexcept {
  using Result = decltype(call());
  using Answer = std::conditional_t<std::is_void_v<Result>, int, Result>;
  try {
    if constexpr (std::is_void_v<Result>) {
      call();
      return 0;
    } else {
      return call();
    }
  } catch (...) {
    return Answer{report_exception()};
  }
}

template <typename Call>
[[gnu::always_inline]] inline auto enter(ipc::Client& client, Call&& call) noexcept {
  const void* const caller =
      client.block().identity.initialised != 0 ? nullptr : __builtin_return_address(0);  // nullptr: MPI
  return enter([&] {
    const ipc::Inside inside(client, caller);
    return call();
  });
}

// Function tables are constant; libfabric's structures point to them without const, and nobody writes through
// them.
template <typename Table>
Table* table(const Table& constant) {
  return const_cast<Table*>(&constant);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

}  // namespace apenet::libfabric
