// The stack of each thread on which direct calls are answered: the program's may be one for signals that has
// room for the kernel's frames only.
#pragma once

#include <signal.h>

namespace apenet::shim {

// Gives the calling thread its stack. Without memory, answers stay on the program's stack.
void make_answer_stack();

}  // namespace apenet::shim

// The handler of a held signal. It changes to that stack, unless the thread has none or is on it.
extern "C" __attribute__((visibility("hidden"))) void apenet_enter_answer(int number, siginfo_t* info,
                                                                          void* context);
