// Memory that a program names in its calls: it may be none, for which the kernel says EFAULT.
#pragma once

#include <cstddef>

namespace apenet::ipc {

// False: the program's memory cannot be accessed. Keep errno.
[[nodiscard]] bool copy_in(void* to, const void* from_program, std::size_t bytes);
[[nodiscard]] bool copy_out(void* to_program, const void* from, std::size_t bytes);
// Checks the begin and the end.
[[nodiscard]] bool is_readable(const void* program, std::size_t bytes);

// For what a call may leave out: nothing is there, or it can be accessed.
template <typename Object>
[[nodiscard]] bool is_readable_or_none(const Object* object) {
  return object == nullptr || is_readable(object, sizeof *object);
}
template <typename Object>
[[nodiscard]] bool copy_out_if_wanted(Object* to_program, const Object& from) {
  return to_program == nullptr || copy_out(to_program, &from, sizeof from);
}

}  // namespace apenet::ipc
