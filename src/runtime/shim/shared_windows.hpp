// Windows in memory that ranks of a node share: what the shim knows of those that it has made.
#pragma once

#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/mpi_library.hpp"

namespace apenet::shim {

// Unmaps the memory of a window that has been freed, if it is one of these.
void forget_shared_window(std::uint64_t window);
// Whether ranks share the memory of this window.
bool is_shared_window(std::uint64_t window);

// The window in the first word has been freed.
struct FreesWindow : Effect {
  static void after(ipc::Client& client, ipc::MpiCall call, const Words& words, const Ends& arguments) {
    Frees::after(client, call, words, arguments);
    forget_shared_window(handle(words.at[0]));
  }
};

// The program has synchronised its view of the window in the first word.
struct Synchronises : Effect {
  static void after(ipc::Client& client, ipc::MpiCall call, const Words& words, const Ends& arguments);
};

}  // namespace apenet::shim
