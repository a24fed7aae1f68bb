// Messages of the program, as the C edges give them: checked, and sent by the library of this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/gasnet/library.hpp"

namespace apenet::gasnet {

struct Payload {
  const void* source = nullptr;
  std::size_t bytes = 0;
  void* destination = nullptr;  // for a long message
};

struct Message {
  std::string_view call;  // for messages of errors
  Category category = Category::short_message;
  std::uint8_t handler = 0;
  Payload payload;
  const Argument* arguments = nullptr;
  int argument_count = 0;
};

// Results are GASNET_OK or GASNET_ERR_*.
[[nodiscard]] int request(std::uint32_t target, const Message& message);
// Ends the process unless the token is that of a request's handler that runs in this thread and has not
// replied.
[[nodiscard]] int reply(void* token, const Message& message);
// The handler that runs in this thread, and whose token this is; ends the process if it is not.
[[nodiscard]] Running& running(std::string_view call, const void* token);

}  // namespace apenet::gasnet
