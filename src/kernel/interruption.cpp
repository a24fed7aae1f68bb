#include "kernel/interruption.hpp"

#include <atomic>

namespace apenet {
namespace {

std::atomic<InterruptionLook>& process_look() {
  static std::atomic<InterruptionLook> value{nullptr};
  return value;
}

}  // namespace

void set_interruption_look(InterruptionLook look) {
  process_look().store(look);
}

void look_for_interruption() {
  if (const InterruptionLook look = process_look().load(); look != nullptr) look();
}

}  // namespace apenet
