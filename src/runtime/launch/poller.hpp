// Poller: waits for the descriptors through which the host reports on the processes of a run.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>

namespace apenet {

// Owns no descriptor that is added. A descriptor leaves the poller when it is closed or removed.
class Poller {
 public:
  enum class Source : std::uint32_t { pmi, manager, output, error, child, supervisor };

  Poller();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Ignores a negative descriptor. `index` tells descriptors of one source apart.
  void add(int fd, Source source, std::size_t index = 0);
  void remove(int fd);
  // Waits at most timeout_ms for a readable descriptor, and calls serve(source, index) for each that is
  // readable. Returns true if more of them may be.
  template <typename Serve>
  bool wait(int timeout_ms, Serve serve) {
    std::array<epoll_event, 64> ready{};
    const int count = epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), timeout_ms);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t data = ready[static_cast<std::size_t>(i)].data.u64;
      serve(static_cast<Source>(data >> 32), std::size_t{static_cast<std::uint32_t>(data)});
    }
    return count == static_cast<int>(ready.size());
  }

 private:
  int epoll_;
};

}  // namespace apenet
