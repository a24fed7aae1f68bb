#include "api/qmp/messages.hpp"

#include <cstring>
#include <string>

#include "api/qmp/failure.hpp"

namespace apenet::qmp {

void Shape::add(std::ptrdiff_t offset, std::size_t bytes) {
  if (bytes == 0) return;
  bytes_ += bytes;
  if (!pieces_.empty() &&
      pieces_.back().offset + static_cast<std::ptrdiff_t>(pieces_.back().bytes) == offset) {
    pieces_.back().bytes += bytes;
  } else {
    pieces_.push_back({offset, bytes});
  }
}

// Applies the action to each of the single messages.
template <typename Action>
void Handle::for_each(const Action& action) {
  if (is_single_) {
    action(*this);
  } else {
    for (const auto& member : members_) member->for_each(action);
  }
}

// Receives first: what arrives then finds its memory.
void Handle::start() {
  require(!is_started_, QMP_INVALID_OP, "the message is in progress");
  is_started_ = true;
  error_ = QMP_SUCCESS;
  for (const Way way : {Way::in, Way::out}) {
    for_each([way](Handle& each) { each.begin(way); });
  }
}

void Handle::wait() {
  if (is_started_) {
    for_each([](Handle& each) {
      if (each.request_ != APE_NO_REQUEST) each.end(ape_wait(&each.request_, nullptr));
    });
    finish();
  }
  require(error_ == QMP_SUCCESS, error_, "a transfer failed");
}

bool Handle::is_complete() {
  if (!is_started_) return true;
  bool all = true;
  for_each([&all](Handle& each) {
    if (!all || each.request_ == APE_NO_REQUEST) return;
    int done = 0;
    const int code = ape_test(&each.request_, &done, nullptr);
    // A transfer that failed has ended, too.
    if (each.request_ == APE_NO_REQUEST) {
      each.end(code);
    } else {
      all = false;
    }
  });
  if (all) finish();
  return all;
}

// All transfers have ended.
void Handle::finish() {
  QMP_status_t first = QMP_SUCCESS;
  for_each([&first](const Handle& each) {
    if (first == QMP_SUCCESS) first = each.error_;
  });
  is_started_ = false;
  error_ = first;
}

void Handle::move_to(void* base) {
  require(is_single_, QMP_INVALID_OP, "several messages: use QMP_change_address_multiple");
  require(!is_started_, QMP_INVALID_OP, "the message is in progress");
  require(base != nullptr || memory_.shape->bytes() == 0, QMP_BAD_MEMORY, "a null pointer");
  memory_.base = static_cast<std::byte*>(base);
}

void Handle::move_to(std::span<void* const> bases) {
  require(!is_single_, QMP_INVALID_OP, "one message: use QMP_change_address");
  require(!is_started_, QMP_INVALID_OP, "the messages are in progress");
  require(bases.size() == members_.size(), QMP_INVALID_ARG,
          std::to_string(bases.size()) + " addresses: expected " + std::to_string(members_.size()));
  for (std::size_t i = 0; i < bases.size(); ++i) members_[i]->move_to(bases[i]);
}

void Handle::begin(Way way) {
  if (way_ != way) return;
  error_ = QMP_SUCCESS;
  const std::size_t bytes = memory_.shape->bytes();
  const int how = is_contiguous() ? APE_ZERO_COPY : APE_COPIED;
  if (way == Way::out) {
    pack();
    check(ape_isend(data(), bytes, rank_, tag_, how, &request_));
  } else {
    check(ape_irecv(data(), bytes, rank_, tag_, how, &request_));
  }
}

void Handle::end(int ape_code) {
  error_ = status_of(ape_code);
  if (way_ == Way::in && error_ == QMP_SUCCESS) unpack();
}

std::byte* Handle::data() {
  const auto& pieces = memory_.shape->pieces();
  if (pieces.empty()) return nullptr;
  if (is_contiguous()) return memory_.base + pieces.front().offset;
  packed_.resize(memory_.shape->bytes());
  return packed_.data();
}

void Handle::pack() {
  if (is_contiguous()) return;
  std::byte* to = data();
  for (const Shape::Piece& piece : memory_.shape->pieces()) {
    std::memcpy(to, memory_.base + piece.offset, piece.bytes);
    to += piece.bytes;
  }
}

void Handle::unpack() {
  if (is_contiguous()) return;
  const std::byte* from = data();
  for (const Shape::Piece& piece : memory_.shape->pieces()) {
    std::memcpy(memory_.base + piece.offset, from, piece.bytes);
    from += piece.bytes;
  }
}

}  // namespace apenet::qmp
