// HostTime: a call of a library of the host, which gets the host's clocks and sleeps in host time.
#pragma once

// The shim defines it. Adds to the number of such calls that this thread is in.
extern "C" __attribute__((weak)) void apenet_host_time(int change);

namespace apenet::ipc {

// Without the shim no clock is virtual.
class HostTime {
 public:
  HostTime() { change(1); }
  ~HostTime() { change(-1); }
  HostTime(const HostTime&) = delete;
  HostTime& operator=(const HostTime&) = delete;

 private:
  static void change(int by) {
    if (apenet_host_time != nullptr) apenet_host_time(by);
  }
};

}  // namespace apenet::ipc
