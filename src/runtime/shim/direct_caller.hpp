// A thread whose direct call (direct_calls.hpp) was caught: its registers, by which a handler answers the
// call or lets the thread make it.
#pragma once

#include <sys/ucontext.h>

#include <array>
#include <cstdint>

namespace apenet::shim {

// The registers of a thread that has made a call.
class DirectCaller {
 public:
  // `library_call` is the address of an instruction `syscall` of the C library that returns. is_watched: the
  // thread's calls are caught again once this one has been answered or made.
  DirectCaller(ucontext_t& context, std::uint64_t library_call, bool is_watched = false)
      : registers_(context.uc_mcontext.gregs), library_call_(library_call), is_watched_(is_watched) {}

  [[nodiscard]] long number() const { return registers_[REG_RAX]; }
  [[nodiscard]] std::uint64_t place() const { return word(REG_RIP); }
  [[nodiscard]] std::array<long, 6> arguments() const {
    return {registers_[REG_RDI], registers_[REG_RSI], registers_[REG_RDX],
            registers_[REG_R10], registers_[REG_R8],  registers_[REG_R9]};
  }
  // To where a function without a frame, as that of diverted clocks, returns.
  [[nodiscard]] std::uint64_t returns_to() const { return *at<std::uint64_t>(word(REG_RSP)); }
  void answer(long result);

  // The thread makes the call itself once the handler has returned, so that it may wait, and be interrupted,
  // as any.
  void pass();
  // The same for a call that starts a thread or process.
  void pass_start();
  // The thread makes the call again, where it was caught. Requires that it is not caught there any more.
  void repeat();

 private:
  template <typename Type>
  static Type* at(std::uint64_t address) {
    return reinterpret_cast<Type*>(address);  // NOLINT(performance-no-int-to-ptr)
  }
  [[nodiscard]] std::uint64_t word(int which) const { return static_cast<std::uint64_t>(registers_[which]); }

  void push(std::uint64_t back, std::uint64_t first);
  // On the stack of the child. Returns its new end.
  [[nodiscard]] std::uint64_t push_child(std::uint64_t end) const;
  void pass_clone();
  void pass_clone3();

  gregset_t& registers_;
  std::uint64_t library_call_;
  bool is_watched_;
};

}  // namespace apenet::shim
