// How the shim answers system calls that do not come by the C library's function of their name: those by
// syscall() and those that the program's code makes itself.
#pragma once

#include <array>
#include <cstdint>

namespace apenet::shim {

// The assembler of syscall() knows the values.
enum Way : std::uint8_t {
  passes = 0,
  is_named = 1,      // apenet_named_call()
  ends_image = 2,    // apenet_start_call(): executes a program, or exits
  starts = 3,        // starts a process or thread
  starts_flags = 4,  // the same, with flags in its first argument
  of_sockets = 5     // apenet_socket_way()
};

[[nodiscard]] Way way_of_call(long number);

// When virtual time begins: ends waits with a limit in the host's time, by futexes of this process.
void end_early_waits();

}  // namespace apenet::shim

// libapenet-sockets.so defines it, if it is loaded: whether it has answered the call, as syscall() does.
extern "C" __attribute__((weak)) bool apenet_socket_call(long number, const std::array<long, 6>& words,
                                                         long& result);
// As the C library's syscall().
extern "C" __attribute__((visibility("hidden"))) long apenet_named_call(long number, long first, long second,
                                                                        long third, long fourth, long fifth,
                                                                        long sixth);
extern "C" __attribute__((visibility("hidden"))) long apenet_socket_way(long number, long first, long second,
                                                                        long third, long fourth, long fifth,
                                                                        long sixth);
extern "C" __attribute__((visibility("hidden"))) long apenet_start_call(long number, long first, long second,
                                                                        long third, long fourth, long fifth);
