// The stack of each thread on which direct calls are answered: the program's may be one for signals that has
// room for the kernel's frames only.
#pragma once

#include <signal.h>

namespace apenet::shim {

// Gives the calling thread its stack. Without memory or a free key of threads'
// own data, answers stay on the program's stack.
void make_answer_stack();
// Whether the thread has one.
[[nodiscard]] bool has_answer_stack();
// Whether it runs on it now.
[[nodiscard]] bool is_on_answer_stack();

}  // namespace apenet::shim

extern "C" {
// Whether the kernel catches the calls of this thread that it watches (direct_calls.hpp). Not while it
// answers.
extern constinit thread_local char apenet_catches_calls
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
// Whether it does so again when the handler returns.
extern constinit thread_local bool apenet_catches_on
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
}

// The handler of a held signal. It changes to that stack, unless the thread has none or is on it.
extern "C" __attribute__((visibility("hidden"))) void apenet_enter_answer(int number, siginfo_t* info,
                                                                          void* context);
