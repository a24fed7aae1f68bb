// The epoll sets of this process that have simulated sockets.
#pragma once

namespace apenet::sockets {

// The descriptor is being closed: it is in no set any more.
void forget_in_epoll_sets(int file);
// The same of a descriptor that may be a set.
void forget_epoll_set(int epoll);

}  // namespace apenet::sockets
