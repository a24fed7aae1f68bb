#include "api/gasnet/mpi_core.hpp"
#include "runtime/ipc/single_threaded.hpp"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

namespace apenet::gasnet {
MpiCore::MpiCore(ipc::Client& client, std::unique_ptr<MpiLibrary> library, bool is_threaded)
    : card_(client, ipc::Interface::gasnet, *this),
      library_(std::move(library)),
      is_threaded_(is_threaded),
      receives_(posted_receives) {
  const ipc::Outside outside(client);
  for (Receive& receive : receives_) {
    receive.buffer.resize(largest_request_bytes(LongPayload::in_message));
    receive.request = library_->receive(receive.buffer);
  }
}

Core::Traits MpiCore::traits() const {
  return {.packet_bytes = largest_request_bytes(LongPayload::in_message),
          .credits = credits_of_peer,
          .slack = credits_kept,
          .long_payload = LongPayload::in_message};
}

void MpiCore::send(std::uint32_t target, std::span<const std::byte> packet, bool /*is_first*/) {
  ++sends_under_way_;
  const ipc::Outside outside(card_.client());
  const std::lock_guard calling(calls_);
  Send& send = sends_.emplace_back();
  send.data.assign(packet.begin(), packet.end());
  send.request = library_->send(send.data, target);
}

bool MpiCore::progress(bool waits) {
  std::optional<MpiLibrary::Completed> ended;
  Received received;
  // Released after the process's lock is back, so that what is received keeps its order.
  std::unique_lock<std::mutex> calling;
  {
    const ipc::Outside outside(card_.client());
    calling = std::unique_lock(calls_);
    Receive& receive = receives_[oldest_receive_];
    std::array watched{receive.request, sends_.empty() ? MpiLibrary::no_request : sends_.front().request};
    ended = waits ? library_->wait(watched) : library_->test(watched);
    if (!ended) return false;
    if (ended->index == 0) {
      received.source = ended->source;
      received.bytes.assign(receive.buffer.begin(),
                            receive.buffer.begin() + static_cast<std::ptrdiff_t>(ended->bytes));
      receive.request = library_->receive(receive.buffer);
      oldest_receive_ = (oldest_receive_ + 1) % posted_receives;
    } else {
      sends_.pop_front();
    }
  }
  if (ended->index == 0) {
    received_.push_back(std::move(received));
  } else {
    --sends_under_way_;
  }
  return true;
}

bool MpiCore::poll() {
  while (received_.empty() && progress(false)) continue;
  return !received_.empty();
}

// A handler works in the buffer of its message: the copy here takes no time.
void MpiCore::take(std::span<std::byte> to) {
  std::ranges::copy(received_.front().bytes, to.begin());
  received_.pop_front();
}

void MpiCore::await(std::string_view /*call*/, const std::function<bool()>& done, std::optional<Time> most) {
  const std::int64_t start_ps = card_.now_ps();
  while (!done()) {
    if (most && card_.now_ps() - start_ps >= most->ps()) return;
    const bool has_threads = is_threaded_ && !ipc::is_single_threaded();
    const bool waits = !has_threads && !most;
    if (!progress(waits) && has_threads) {
      const ipc::Outside outside(card_.client());
      std::this_thread::yield();
    }
  }
}

// A process that ends alone, with code 0, is not missed: as after its last session.
void MpiCore::close(int code, bool is_common) {
  if (code != 0) return;
  while (sends_under_way_ > 0) progress(true);
  if (is_common) {
    const ipc::Outside outside(card_.client());
    library_->close();
  } else {
    card_.client().block().identity.closed = 1;
  }
}

}  // namespace apenet::gasnet
