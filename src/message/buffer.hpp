// Buffer: scattered memory of a process, and copies into and out of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "message/wire.hpp"

namespace apenet::message {

struct Buffer {
  std::array<Segment, segment_limit> pieces;  // only the first `count` mean anything
  std::uint32_t count = 0;
  std::uint32_t gpu_pieces = 0;  // one bit a piece: it lies in the memory of the GPU
  std::uint64_t length = 0;

  [[nodiscard]] bool is_in_gpu(std::uint32_t piece) const { return (gpu_pieces >> piece & 1) != 0; }
  [[nodiscard]] std::uint64_t gpu_bytes() const {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; gpu_pieces != 0 && i < count; ++i) {
      if (is_in_gpu(i)) bytes += pieces[i].length;
    }
    return bytes;
  }
};

[[nodiscard]] inline Buffer one_piece(std::uint64_t address, std::uint64_t length) {
  Buffer buffer;
  buffer.pieces[0] = {address, length};
  buffer.count = 1;
  buffer.length = length;
  return buffer;
}

[[nodiscard]] inline std::uint64_t address_of(const void* memory) {
  return reinterpret_cast<std::uint64_t>(memory);
}
[[nodiscard]] inline std::byte* memory_at(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr): of this process
}

// Copies the pieces, one after the other.
inline void gather(std::byte* to, const Buffer& from) {
  for (std::uint32_t i = 0; i < from.count; ++i) {
    const Segment& piece = from.pieces[i];
    if (piece.length > 0) std::memcpy(to, memory_at(piece.address), piece.length);
    to += piece.length;
  }
}

// `length` bytes of it, from `offset` on.
[[nodiscard]] inline Buffer part_of(const Buffer& whole, std::uint64_t offset, std::uint64_t length) {
  Buffer part;
  part.length = length;
  for (std::uint32_t i = 0; i < whole.count && length > 0; ++i) {
    const Segment& piece = whole.pieces[i];
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    const std::uint64_t taken = std::min(length, piece.length - offset);
    if (whole.is_in_gpu(i)) part.gpu_pieces |= 1U << part.count;
    part.pieces[part.count++] = {piece.address + offset, taken};
    length -= taken;
    offset = 0;
  }
  return part;
}

// Into the pieces from `offset` on, as far as there is room.
inline void scatter(const Buffer& to, std::uint64_t offset, const std::byte* from, std::uint64_t bytes) {
  for (std::uint32_t i = 0; i < to.count && bytes > 0; ++i) {
    const Segment& piece = to.pieces[i];
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    const std::uint64_t part = std::min(bytes, piece.length - offset);
    std::memcpy(memory_at(piece.address + offset), from, part);
    from += part;
    bytes -= part;
    offset = 0;
  }
}

}  // namespace apenet::message
