#include "kernel/interruption.hpp"

#include <atomic>

namespace apenet {
namespace {

std::atomic<InterruptionCheck>& process_check() {
  static std::atomic<InterruptionCheck> value{nullptr};
  return value;
}

}  // namespace

void set_interruption_check(InterruptionCheck check) {
  process_check().store(check);
}

void check_for_interruption() {
  if (const InterruptionCheck check = process_check().load(); check != nullptr) check();
}

}  // namespace apenet
