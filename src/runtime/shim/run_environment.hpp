// What a run depends on in the environment of its processes, and the environment in which a program that one
// of them starts finds it again, whatever the process passes on: a user's `env -i`, a script with an
// environment of its own, another LD_PRELOAD.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace apenet::shim {

// Call at the begin of the process, and when it knows its rank. Keeps each value that it did not know.
// Returns whether the process belongs to a run.
bool learn_environment();

// The values with which this process has begun, or which it got as a rank. nullptr: it does not belong to a
// run, or has no such variable.
[[nodiscard]] const char* kept_value(std::string_view name);

// The variables for one program: those given, with what the run depends on added or replaced. The same array
// if nothing is missing, which takes no memory. Makes no call but system calls, because the caller may be the
// child of a vfork, or of a fork of a process with threads, or a signal handler.
class RunEnvironment {
 public:
  // given: ends with a null pointer, or is one. Must outlive this object.
  explicit RunEnvironment(char* const* given);
  ~RunEnvironment() = default;
  RunEnvironment(const RunEnvironment&) = delete;
  RunEnvironment& operator=(const RunEnvironment&) = delete;

  [[nodiscard]] char* const* get() const { return result_; }
  // The program is not to belong to the run (APENET_OUTSIDE), or is not run at all.
  [[nodiscard]] bool is_outside() const { return is_outside_; }

 private:
  static constexpr std::size_t own_words = 256;

  char* const* result_;
  bool is_outside_ = false;
  std::uintptr_t own_[own_words];
};

// As long as it lives, the process's own environment is such a one, for functions of the C library that start
// programs with it. Threads of the process may read the environment meanwhile, or change it, which ends this.
class OwnRunEnvironment {
 public:
  OwnRunEnvironment();
  ~OwnRunEnvironment();
  OwnRunEnvironment(const OwnRunEnvironment&) = delete;
  OwnRunEnvironment& operator=(const OwnRunEnvironment&) = delete;
};

}  // namespace apenet::shim
