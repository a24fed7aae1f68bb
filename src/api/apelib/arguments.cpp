#include "api/apelib/arguments.hpp"

#include "api/apelib/error.hpp"

namespace apenet::apelib {

std::string number(std::int64_t value) {
  return std::to_string(value);
}

void require(bool holds, ape_error code, std::string_view call, const std::string& what) {
  if (!holds) throw Error(code, std::string(call) + ": " + what);
}

std::uint32_t checked_rank(const Library& library, std::string_view call, int rank) {
  require(rank >= 0 && static_cast<std::uint32_t>(rank) < library.size(), APE_ERR_RANK, call,
          "rank " + number(rank) + ": expected 0 to " + number(library.size() - 1));
  return static_cast<std::uint32_t>(rank);
}

std::uint32_t checked_direction(const Library& library, std::string_view call, int direction) {
  const std::uint32_t directions = 2 * library.torus().dimensions();
  require(direction >= 0 && static_cast<std::uint32_t>(direction) < directions, APE_ERR_DIRECTION, call,
          "direction " + number(direction) + ": expected 0 to " + number(directions - 1));
  return static_cast<std::uint32_t>(direction);
}

std::uint64_t checked_tag(std::string_view call, int tag) {
  require(tag >= 0, APE_ERR_TAG, call, "tag " + number(tag) + ": expected 0 or more");
  return network_tag(Purpose::program, static_cast<std::uint32_t>(tag));
}

How checked_how(std::string_view call, int how) {
  switch (how) {
    case APE_AUTO:
      return How::automatic;
    case APE_ZERO_COPY:
      return How::zero_copy;
    case APE_COPIED:
      return How::copied;
    default:
      throw Error(APE_ERR_HOW, std::string(call) + ": how " + number(how) +
                                   ": expected APE_AUTO, APE_ZERO_COPY or APE_COPIED");
  }
}

void check_bytes(Library& library, std::string_view call, const void* memory, std::uint64_t bytes) {
  require(memory != nullptr || bytes == 0, APE_ERR_ARGUMENT, call, "a null pointer");
  const std::uint64_t most = library.transport().most_bytes();
  require(bytes <= most, APE_ERR_OVERSIZE, call,
          std::to_string(bytes) + " bytes: this network carries at most " + std::to_string(most));
}

std::span<const std::byte> checked_out(Library& library, std::string_view call, const void* memory,
                                       std::size_t bytes) {
  check_bytes(library, call, memory, bytes);
  return {static_cast<const std::byte*>(memory), bytes};
}

std::span<std::byte> checked_in(Library& library, std::string_view call, void* memory, std::size_t bytes) {
  check_bytes(library, call, memory, bytes);
  return {static_cast<std::byte*>(memory), bytes};
}

}  // namespace apenet::apelib
