// Process: the library's state in this process, and the guard of every call of the program.
#pragma once

#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>

#include "api/apelib/error.hpp"
#include "api/apelib/library.hpp"
#include "runtime/ipc/program_call.hpp"

namespace apenet::apelib {

class Process {
 public:
  // Lives as long as the process: the network below may call it in exit handlers.
  static Process& instance();

  void open();
  void close();
  // Throws unless ape_init() has been called, and ape_finalize() has not.
  [[nodiscard]] Library& library(std::string_view call);
  [[nodiscard]] std::mutex& mutex() { return mutex_; }

  static std::string& last_error();  // last error of the calling thread

 private:
  std::mutex mutex_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Library> library_;
  bool is_closed_ = false;
};

// Call around what a transport does for the program.
class Inside {
 public:
  explicit Inside(Transport& transport) : transport_(transport) { transport_.enter(); }
  ~Inside() { transport_.leave(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Transport& transport_;
};

// Runs a function of the library and turns exceptions into codes.
template <typename Call>
[[gnu::always_inline]] inline int guarded(std::string_view name, Call call) noexcept {
  const ipc::ProgramCall program_call(__builtin_return_address(0));
  try {
    try {
      const std::lock_guard<std::mutex> guard(Process::instance().mutex());
      call();
      return APE_OK;
    } catch (const Error& error) {
      Process::last_error() = error.why();
      return error.code();
    } catch (const std::bad_alloc&) {
      Process::last_error() = std::string(name) + ": no memory is left";
      return APE_ERR_MEMORY;
    } catch (const std::exception& error) {
      Process::last_error() = std::string(name) + ": " + error.what();
      return APE_ERR_NETWORK;
    }
  } catch (...) {
    return APE_ERR_MEMORY;
  }
}

// As guarded(), for all functions but ape_init(): call(Library&).
template <typename Call>
[[gnu::always_inline]] inline int entered(std::string_view name, Call call) noexcept {
  return guarded(name, [&] {
    Library& library = Process::instance().library(name);
    const Inside inside(library.transport());
    library.require_transport();
    call(library);
  });
}

}  // namespace apenet::apelib
