// The checks of sockets that a library of MPI makes in a loop while it waits.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "api/sockets/calls.hpp"

namespace apenet::sockets {

// From where the thread's current call has come.
class CalledFrom {
 public:
  explicit CalledFrom(const void* place) : before_(std::exchange(own(), place)) {}
  ~CalledFrom() { own() = before_; }
  CalledFrom(const CalledFrom&) = delete;
  CalledFrom& operator=(const CalledFrom&) = delete;

  // Open MPI, or the library of events that it uses.
  static bool is_library() {
    struct Answer {
      const void* place = nullptr;
      bool is_library = false;
    };
    static thread_local Answer value;
    if (value.place != own()) value = {.place = own(), .is_library = lies_in_library(own())};
    return value.is_library;
  }

 private:
  static const void*& own() {
    static thread_local const void* place = nullptr;
    return place;
  }
  static bool lies_in_library(const void* place) {
    Dl_info info{};
    if (place == nullptr || dladdr(place, &info) == 0 || info.dli_fname == nullptr) return false;
    const std::string_view path = info.dli_fname;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    constexpr auto libraries =
        std::to_array<std::string_view>({"libevent", "libopen-pal", "libmpi", "mca_btl_tcp"});
    return std::any_of(libraries.begin(), libraries.end(),
                       [name](std::string_view library) { return name.starts_with(library); });
  }

  const void* before_;
};

// Open MPI over sockets checks them in a loop, each time without waiting.
//  - In a call that waits, the checks wait after some that have found nothing: for a socket, for another
//    thread's action, or until all ranks wait and the network is empty, because what the call waits for may
//    come from elsewhere. If it does not come for long, a deadlock shall be found.
//  - In MPI_Finalize it checks for as long as its process manager takes. So the first check waits until all
//    ranks wait and the network is empty, and after that none asks.
class LibraryChecks {
 public:
  LibraryChecks(ipc::Client& client, std::int64_t most_ps)
      : client_(client), grants_before_(client.progress().grants()) {
    const bool asks = most_ps == 0 && apenet_waiting_mpi_call != nullptr && CalledFrom::is_library();
    const std::uint64_t call = asks ? apenet_waiting_mpi_call() : 0;
    leaves_ = call == ipc::finalising_mpi_call;
    if (std::exchange(checked().call, call) != call) checked() = {.call = call};
    waits_ = leaves_ ? !checked().has_settled : call != 0 && checked().empty >= checks_before_waiting;
  }
  [[nodiscard]] bool waits() const { return waits_; }
  // Whether this check finds nothing, whatever has come.
  [[nodiscard]] bool is_needless() const { return leaves_ && !waits_; }
  // While it waits.
  [[nodiscard]] bool is_over() {
    if (!waits_) return false;
    if (!order_progress_) order_progress_ = progress();  // its own request is posted
    const bool may_end = leaves_ || checked().empty < most_granted;
    const bool is_granted = may_end && client_.progress().grants() != grants_before_;
    if (leaves_ && is_granted) checked().has_settled = true;
    return is_granted || (!leaves_ && progress() != *order_progress_);
  }
  static void note_result(std::int64_t ready) { checked().empty = ready == 0 ? checked().empty + 1 : 0; }

 private:
  static constexpr std::uint32_t checks_before_waiting = 16;  // as polls of a card, ipc/progress.cpp
  static constexpr std::uint32_t most_granted = 1024;         // likewise
  struct Checked {
    std::uint64_t call = 0;
    std::uint32_t empty = 0;  // in a row, in this call
    bool has_settled = false;
  };
  static Checked& checked() {
    static thread_local Checked value;
    return value;
  }
  // What other threads have done.
  [[nodiscard]] std::uint64_t progress() const {
    return client_.order() == nullptr || !client_.order()->in_use() ? 0 : client_.order()->progress();
  }

  ipc::Client& client_;
  std::uint32_t grants_before_;
  bool leaves_ = false;
  bool waits_ = false;
  std::optional<std::uint64_t> order_progress_;
};

}  // namespace apenet::sockets
