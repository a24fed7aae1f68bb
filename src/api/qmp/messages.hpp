// Messages that a program declares once and starts many times: their memory, and their handles.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "api/apelib/apelib.h"
#include "api/qmp/communicator.hpp"
#include "api/qmp/qmp.h"

namespace apenet::qmp {

// What distinguishes messages of the same two nodes: messages match within a channel, in the order of their
// starts.
constexpr int node_channel = 0;
constexpr int collective_channel = 1;
constexpr int most_axes = 64;
// A channel of its own for each axis and direction: in an extent of 2 both neighbours are the same node.
// `up`: as the sender sees the direction.
constexpr int relative_channel(int axis, bool up) {
  return 2 + 2 * axis + (up ? 1 : 0);
}
constexpr int channels = 2 + 2 * most_axes;
[[nodiscard]] inline int tag_of(const Communicator& comm, int channel) {
  return comm.context() * channels + channel;
}

// The pieces of a message, relative to its base; neighbouring ones become one.
class Shape {
 public:
  struct Piece {
    std::ptrdiff_t offset;
    std::size_t bytes;
  };

  void add(std::ptrdiff_t offset, std::size_t bytes);
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::vector<Piece> pieces_;
  std::size_t bytes_ = 0;
};

struct Memory {
  std::byte* base = nullptr;
  std::shared_ptr<const Shape> shape;
};

// One message, or several that are started and waited for as one.
class Handle {
 public:
  enum class Way { out, in };

  Handle(Way way, Memory memory, int rank, int tag)
      : way_(way), memory_(std::move(memory)), rank_(rank), tag_(tag) {}
  // Takes the members over.
  explicit Handle(std::vector<std::unique_ptr<Handle>> members)
      : is_single_(false), members_(std::move(members)) {}

  void start();
  // Throws if a transfer has failed since the last start.
  void wait();
  // Also if a transfer has failed.
  [[nodiscard]] bool is_complete();
  [[nodiscard]] bool is_started() const { return is_started_; }

  void move_to(void* base);
  void move_to(std::span<void* const> bases);

  [[nodiscard]] QMP_status_t error() const { return error_; }

 private:
  [[nodiscard]] bool is_contiguous() const { return memory_.shape->pieces().size() <= 1; }
  template <typename Action>
  void for_each(const Action& action);
  void begin(Way way);
  void end(int ape_code);
  void finish();
  // The memory that apelib reads or writes: the message's own, or the buffer of its packed pieces.
  [[nodiscard]] std::byte* data();
  void pack();
  void unpack();

  Way way_ = Way::out;
  Memory memory_;
  int rank_ = 0;
  int tag_ = 0;
  bool is_single_ = true;
  std::vector<std::unique_ptr<Handle>> members_;
  std::vector<std::byte> packed_;
  ape_request request_ = APE_NO_REQUEST;
  bool is_started_ = false;
  QMP_status_t error_ = QMP_SUCCESS;
};

}  // namespace apenet::qmp
