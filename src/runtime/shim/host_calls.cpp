// Calls that may wait in the host for something that the simulator does not know. Timers of the process run
// in the host meanwhile, and their signals end the calls as on Linux (virtual_timers.hpp).
#include <mqueue.h>
#include <stdio.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>

#include "runtime/shim/real.hpp"
#include "runtime/shim/virtual_timers.hpp"

#define APENET_HOST_WAIT(result, name, parameters, arguments)                 \
  APENET_EXPORT result name parameters {                                      \
    static const auto real = apenet::shim::next<result(*) parameters>(#name); \
    const apenet::shim::HostPace pace(apenet::shim::pacing_client());         \
    return real arguments;                                                    \
  }

APENET_HOST_WAIT(ssize_t, write, (int file, const void* bytes, std::size_t count), (file, bytes, count))
APENET_HOST_WAIT(ssize_t, writev, (int file, const iovec* parts, int count), (file, parts, count))
APENET_HOST_WAIT(ssize_t, readv, (int file, const iovec* parts, int count), (file, parts, count))
APENET_HOST_WAIT(ssize_t, send, (int socket, const void* bytes, std::size_t count, int flags),
                 (socket, bytes, count, flags))
APENET_HOST_WAIT(ssize_t, sendto,
                 (int socket, const void* bytes, std::size_t count, int flags, const sockaddr* address,
                  socklen_t length),
                 (socket, bytes, count, flags, address, length))
APENET_HOST_WAIT(ssize_t, msgrcv, (int queue, void* message, std::size_t bytes, long type, int flags),
                 (queue, message, bytes, type, flags))
APENET_HOST_WAIT(int, msgsnd, (int queue, const void* message, std::size_t bytes, int flags),
                 (queue, message, bytes, flags))
APENET_HOST_WAIT(ssize_t, mq_receive, (mqd_t queue, char* message, std::size_t bytes, unsigned* priority),
                 (queue, message, bytes, priority))
APENET_HOST_WAIT(int, mq_send, (mqd_t queue, const char* message, std::size_t bytes, unsigned priority),
                 (queue, message, bytes, priority))
APENET_HOST_WAIT(int, pclose, (FILE * stream), (stream))
