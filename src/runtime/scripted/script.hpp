// Script: the program of a CardProcess, a coroutine.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace apenet {

// A coroutine that starts when it is awaited, or when the run that owns it begins. When it ends, control and
// its exception return to the awaiting coroutine. Parameters must be passed by value or outlive the run.
class [[nodiscard]] Script {
 public:
  struct promise_type {
    std::coroutine_handle<> continuation = std::noop_coroutine();
    std::exception_ptr error;

    Script get_return_object() { return Script{Handle::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct Final {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) noexcept {
        return ended.promise().continuation;
      }
      void await_resume() noexcept {}
    };
    Final final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };
  using Handle = std::coroutine_handle<promise_type>;

  Script() = default;
  Script(Script&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Script& operator=(Script&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Script() {
    if (handle_) handle_.destroy();
  }

  // Called by the run that owns it.
  void start() { handle_.resume(); }
  [[nodiscard]] bool is_done() const { return !handle_ || handle_.done(); }
  void rethrow() const {
    if (handle_ && handle_.promise().error) std::rethrow_exception(handle_.promise().error);
  }

  // Awaits a script inside a script: co_await receive_all(...).
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
    handle_.promise().continuation = awaiting;
    return handle_;
  }
  void await_resume() const { rethrow(); }

 private:
  explicit Script(Handle handle) : handle_(handle) {}
  Handle handle_;
};

}  // namespace apenet
