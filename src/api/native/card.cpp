#include "api/native/card.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "kernel/rate.hpp"
#include "runtime/ipc/recording.hpp"

namespace apenet::native {

Card::Card(ipc::Client& client, ipc::Interface interface, Consumer& consumer, std::uint8_t rail)
    : client_(client), interface_(interface), rail_(rail) {
  const auto take = [](void* library, const ipc::Event& event) noexcept {
    static_cast<Consumer*>(library)->take(event);
  };
  client.set_consumer(interface, {take, &consumer});
  client.regions().set_domain(region_endpoint(), ipc::domain_of(interface));
}

Time Card::copy_time(std::uint64_t bytes) const {
  const std::int64_t rate = costs().copy_bytes_per_second;
  return rate == 0 ? Time::zero()
                   : DataRate::bytes_per_second(rate).duration(static_cast<std::int64_t>(bytes));
}

void Card::set_payload(ipc::Request& request, std::span<const std::byte> payload) {
  if (payload.empty()) return;
  if (payload.size() <= ipc::inline_bytes) {
    request.inline_length = static_cast<std::uint32_t>(payload.size());
    std::memcpy(request.inline_data, payload.data(), payload.size());
    return;
  }
  while (!client_.frees_slots(1)) poll();
  request.slot = client_.take_slot();
  request.slot_length = static_cast<std::uint32_t>(payload.size());
  std::memcpy(client_.slot_data(client_.rank(), request.slot), payload.data(), payload.size());
}

std::uint64_t Card::post(ipc::Request& request) {
  request.interface = interface_;
  request.rail = rail_;
  if (!std::exchange(has_posted_, true)) tell_recording();
  return client_.post(request);
}

// A trace of MPI's messages alone would pass for the whole run.
void Card::tell_recording() const {
  const char* path = std::getenv(ipc::recording_variable);
  if (path == nullptr) return;
  const ipc::RecordingEntry entry{.kind = ipc::RecordingKind::unrecorded,
                                  .value = static_cast<std::int64_t>(interface_)};
  const int fd = ipc::open_recording(path);
  if (fd < 0) ipc::Client::refuse(ipc::recording_failure());
  if (ipc::RecordingChunk* chunk = ipc::append_chunk(fd, client_.rank(), sizeof entry); chunk != nullptr) {
    std::memcpy(ipc::content_of(chunk), &entry, sizeof entry);
    chunk->entries = 1;
    munmap(chunk, chunk->bytes);
  } else if (!ipc::note_failure(fd, client_.rank(), errno)) {
    ipc::Client::refuse(ipc::recording_failure());
  }
  ::close(fd);
}

void Card::read_payload(const ipc::Event& event, std::span<std::byte> to) {
  const std::byte* payload = client_.payload_of(event);
  const bool is_inline = payload == nullptr;
  const std::byte* from = is_inline ? event.inline_data : payload;
  const std::size_t bytes = is_inline ? event.inline_length : event.slot_length;
  if (!to.empty()) std::memcpy(to.data(), from, std::min(bytes, to.size()));
  if (!is_inline) client_.return_slot(event.source, event.slot);
}

bool Card::open_region(std::uint64_t key, std::span<std::byte> memory, std::uint64_t begin,
                       std::uint32_t access) {
  const auto address = reinterpret_cast<std::uint64_t>(memory.data());
  return client_.regions().insert({key, address, memory.size(), begin, ipc::domain_of(interface_), access});
}

void Card::close_region(std::uint64_t key) {
  client_.regions().erase(ipc::domain_of(interface_), key);
}

bool Card::dispatch(const ipc::Event* event) {
  if (event == nullptr) return false;
  client_.dispatch(*event);
  return true;
}

bool Card::poll(Time cost) {
  // A program may wait in a loop of polls, and polls may be free: a long row of them advances the clock.
  client_.progress().begin_call();
  return poll_again(cost);
}

bool Card::poll_again(Time cost) {
  const ipc::Testing testing(client_.progress());
  pay();
  return dispatch(client_.poll(cost));
}

void Card::begin_wait(std::string_view call) {
  ipc::WaitNote& note = client_.block().note;
  const std::size_t length = call.copy(note.call, sizeof note.call - 1);
  note.call[length] = '\0';
  client_.forget_polls();
}

void Card::end_wait() {
  client_.block().note.call[0] = '\0';
}

}  // namespace apenet::native
