// Processes that a rank, or one that it has started, starts: their threads act in the rank's order
// (ipc/thread_order.hpp), with clocks and sleeps in virtual time (docs/internals/threads.md).
//
// A process is left to the host if no shim can be loaded into its program, if virtual time has not begun, or
// if the table of the order has no room for it.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <cstdio>

#include "runtime/ipc/client.hpp"

// libapenet-sockets.so defines them, if it is loaded. Called before a process is started; within that action,
// with the place of the process in the order, and its id, SocketBoard::Process::not_started, or 0: it has not
// been; and before this process ends.
extern "C" __attribute__((weak)) void apenet_socket_process_begins();
extern "C" __attribute__((weak)) void apenet_socket_process_started(std::uint32_t place,
                                                                    std::uint32_t process);
extern "C" __attribute__((weak)) void apenet_socket_process_ends();

namespace apenet::shim {

// The start of a process by the calling thread: an action.
class NewProcess {
 public:
  // is_followed: the process will have a shim.
  explicit NewProcess(bool is_followed = true);
  ~NewProcess();
  NewProcess(const NewProcess&) = delete;
  NewProcess& operator=(const NewProcess&) = delete;
  // In the calling process: that one has been started; -1: it has not.
  void note(pid_t child);
  // In a child that is a copy of the calling process.
  void become();
  // It is left to the host.
  void leave_to_host();

 private:
  void tell_sockets(std::uint32_t process) const;

  ipc::OrderTable* table_ = nullptr;
  ipc::OrderedThread* own_ = nullptr;
  ipc::OrderedThread* entry_ = nullptr;
};

// The process, or the child of a vfork, becomes a program without a shim: the host's matter.
void leave_order_for_program();

// The calling thread is about to change its mask of signals, and may let one in that stops the process.
void note_mask_change(int how, const sigset_t& set);

// Returns when the processes of the order that have been stopped have stopped in the host.
void await_stops();

// A signal of the calling thread to processes, or a check of one: an action, if processes act in its order.
class SignalAction {
 public:
  // A signal that stops this process, too, is sent after the action: the others go on. One that continues
  // another is sent when that one has stopped in the host.
  SignalAction(pid_t process, int signal);
  ~SignalAction();
  SignalAction(const SignalAction&) = delete;
  SignalAction& operator=(const SignalAction&) = delete;
  // The signal has been sent, as by kill(). Returns when the processes that it ends or stops have ended or
  // stopped.
  void note_sent(pid_t process, int signal) const;
  [[nodiscard]] bool is_of_order(pid_t process) const;

 private:
  [[nodiscard]] bool is_for_first_thread() const;
  // Whether the host will tell this process of a child that the signal stops, or lets go on.
  [[nodiscard]] bool tells_own_process(int signal) const;

  ipc::OrderedThread* own_;
  pid_t process_;
  bool holds_child_signal_ = false;  // until the end of the action
  sigset_t blocked_before_{};
};

// The C library's starts of a shell, for programs whose shells act in no order.
int host_system(const char* command);
FILE* host_popen(const char* command, const char* mode);

}  // namespace apenet::shim
