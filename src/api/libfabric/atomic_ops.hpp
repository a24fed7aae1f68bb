// What the atomic operations of libfabric do to memory, one element after the other.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>

namespace apenet::libfabric {

enum class AtomicForm : std::uint8_t {
  write,    // changes the target
  fetch,    // and returns the old value
  compare,  // changes it depending on a comparison, and returns the old value
};

struct AtomicOperation {
  AtomicForm form = AtomicForm::write;
  fi_datatype type = FI_INT8;
  fi_op op = FI_MIN;
};

// 0: no datatype of a point-to-point operation.
[[nodiscard]] std::size_t bytes_of(fi_datatype type);
// Whether it exists: orders and bits only where a type has them, comparisons only in the form with a
// comparand.
[[nodiscard]] bool is_valid(const AtomicOperation& operation);
// The same for numbers that came from elsewhere.
[[nodiscard]] bool is_valid(std::uint8_t form, std::uint8_t type, std::uint8_t op);

// Memory of a valid operation on `count` elements, which need no alignment. Not used, and may be null: the
// operands of FI_ATOMIC_READ, the comparands where nothing is compared, the results of AtomicForm::write.
struct AtomicMemory {
  std::byte* target = nullptr;
  const std::byte* operands = nullptr;
  const std::byte* comparands = nullptr;
  std::byte* results = nullptr;
};
void apply(const AtomicOperation& operation, const AtomicMemory& memory, std::size_t count);

}  // namespace apenet::libfabric
