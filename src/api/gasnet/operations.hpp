// Operations: the extended interface over the conduit's puts and gets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "api/gasnet/library.hpp"
#include "api/gasnet/reference_access.hpp"

// What a gasnet_handle_t points to.
struct gasneti_operation {
  apenet::gasnet::Pending pending;
};

namespace apenet::gasnet {

// A thread's implicit operations, and its access region. Operations may outlive the thread, so the
// state of a thread is never freed.
struct Implicit {
  Pending puts;
  Pending gets;
  gasneti_operation* region = nullptr;
};
[[nodiscard]] Implicit& implicit();
// The operations to which an implicit one of this thread belongs.
[[nodiscard]] Pending& implicit_puts();
[[nodiscard]] Pending& implicit_gets();

// Call once, before any other function here.
void begin_operations(Library& library);

// keeps_source: does not return before the source may change.
void put(std::string_view call, const Remote& destination, std::span<const std::byte> source,
         bool keeps_source, Pending& pending);
void get(std::string_view call, std::span<std::byte> destination, const Remote& source, Pending& pending);
void set_memory(std::string_view call, const Remote& destination, int value, std::size_t bytes,
                Pending& pending);

// Waits, and runs handlers meanwhile.
void wait_for(std::string_view call, const Pending& pending);
// Polls once, and says whether all is finished.
[[nodiscard]] bool is_finished(std::string_view call, const Pending& pending);

}  // namespace apenet::gasnet
