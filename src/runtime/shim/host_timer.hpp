// A timer of the process in the host, which stands for a virtual one while it runs there.
#pragma once

#include <csignal>

#include "runtime/shim/virtual_timer.hpp"

namespace apenet::shim {

// Sets it; zero stops it. Returns how it was set.
TimerSetting set_host_timer(const VirtualTimer& timer, const TimerSetting& setting);
[[nodiscard]] TimerSetting get_host_timer(const VirtualTimer& timer);
// Tells the simulator that the timer of alarm() runs in the host, and may interrupt a thread that sleeps
// there.
void note_host_alarm(const TimerSetting& setting);
// Sends the timer's signal, or tells whoever is to be told. Call with all signals blocked; `blocked` are
// those that the thread is to block afterwards.
void tell_end(VirtualTimer& timer, const sigset_t& blocked);
// Likewise, sends itself the signal of another rank.
void tell_sent(const ipc::SentSignal& sent, const sigset_t& blocked);

}  // namespace apenet::shim
