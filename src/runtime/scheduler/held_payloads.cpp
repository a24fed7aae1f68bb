#include "runtime/scheduler/held_payloads.hpp"

#include <cstring>

#include "runtime/scheduler/rank_error.hpp"

namespace apenet {

HeldPayload HeldPayloads::keep(std::uint32_t rank, std::span<const std::byte> payload) {
  HeldPayload held;
  held.bytes = static_cast<std::uint32_t>(payload.size());
  if (in_memory_ + payload.size() <= most_in_memory_) {
    held.memory = std::make_unique_for_overwrite<std::byte[]>(payload.size());
    std::memcpy(held.memory.get(), payload.data(), payload.size());
    in_memory_ += payload.size();
    return held;
  }
  const auto place = file_.keep(payload);
  if (!place)
    throw RankError(rank, "has sent more messages than their receivers have taken, and " +
                              SpillFile::folder() + " has no room for them: name another folder by TMPDIR");
  held.place = *place;
  return held;
}

void HeldPayloads::take(std::uint32_t rank, HeldPayload& payload, std::byte* to) {
  if (payload.memory != nullptr) {
    std::memcpy(to, payload.memory.get(), payload.bytes);
  } else if (!file_.read(payload.place, {to, payload.bytes})) {
    throw RankError(rank, "has sent bytes that cannot be read back from a file in " + SpillFile::folder());
  }
  drop(payload);
}

void HeldPayloads::drop(HeldPayload& payload) {
  if (!payload.is_held()) return;
  if (payload.memory != nullptr) {
    in_memory_ -= payload.bytes;
  } else {
    file_.release(payload.bytes);
  }
  payload = {};
}

}  // namespace apenet
