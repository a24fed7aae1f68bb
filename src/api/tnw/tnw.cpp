// The C edge of the TNW library.
#include "api/tnw/tnw.h"

#include <array>
#include <memory>

#include "api/tnw/links.hpp"

namespace apenet::tnw_api {
namespace {

// The functions take no handle: a process has one TNW. Touched under the process's lock only.
std::unique_ptr<Links>& open_links() {
  static auto& links = *new std::unique_ptr<Links>;
  return links;
}

template <typename Call>
[[gnu::always_inline]] inline tnw_status enter(Call call) noexcept {
  return native::entered("tnw", TNW_NO_NETWORK, TNW_NO_MEMORY, call);
}

template <typename Call>
[[gnu::always_inline]] inline tnw_status with_links(Call call) noexcept {
  return enter([&](ipc::Client&) {
    Links* links = open_links().get();
    if (links == nullptr) return TNW_NOT_OPEN;
    return links->card().has_left() ? TNW_ENDED : call(*links);
  });
}

tnw_status report(const Links::Taken& taken, std::size_t* bytes) {
  if (bytes != nullptr) *bytes = taken.sent;
  return taken.sent > taken.room ? TNW_TRUNCATED : TNW_OK;
}

}  // namespace
}  // namespace apenet::tnw_api

using apenet::native::store;
using apenet::tnw_api::enter;
using apenet::tnw_api::Links;
using apenet::tnw_api::open_links;
using apenet::tnw_api::report;
using apenet::tnw_api::with_links;

tnw_status tnw_open() {
  return enter([](apenet::ipc::Client& client) {
    if (open_links() != nullptr) return TNW_IS_OPEN;
    open_links() = std::make_unique<Links>(client);
    return TNW_OK;
  });
}

tnw_status tnw_close() {
  return enter([](apenet::ipc::Client&) {
    Links* links = open_links().get();
    if (links == nullptr) return TNW_NOT_OPEN;
    const bool has_left = links->card().has_left();
    if (!has_left) links->wait_all_puts();
    open_links().reset();
    return has_left ? TNW_ENDED : TNW_OK;
  });
}

tnw_status tnw_rank(int* rank, int* size) {
  return with_links([=](Links& links) {
    store(rank, static_cast<int>(links.card().rank()));
    store(size, static_cast<int>(links.card().rank_count()));
    return TNW_OK;
  });
}

tnw_status tnw_coordinates(int coordinates[3], int extents[3]) {
  return with_links([=](Links& links) {
    apenet::native::Card& card = links.card();
    const auto at = links.torus().coordinates(card.client().node_of(card.rank()));
    for (std::uint32_t dimension = 0; dimension < 3; ++dimension) {
      if (coordinates != nullptr) coordinates[dimension] = static_cast<int>(at[dimension]);
      if (extents != nullptr) extents[dimension] = static_cast<int>(links.torus().extent(dimension));
    }
    return TNW_OK;
  });
}

tnw_status tnw_neighbour(tnw_link link, int* rank) {
  return with_links([=](Links& links) {
    store(rank, static_cast<int>(links.neighbour(link)));
    return TNW_OK;
  });
}

tnw_status tnw_channels(int* channels) {
  return with_links([=](Links& links) {
    store(channels, static_cast<int>(links.channels()));
    return TNW_OK;
  });
}

tnw_status tnw_max_bytes(size_t* bytes) {
  return with_links([=](Links& links) {
    store(bytes, links.max_bytes());
    return TNW_OK;
  });
}

tnw_status tnw_put(tnw_link link, int channel, const void* buffer, size_t bytes) {
  return with_links([=](Links& links) {
    links.put(link, channel, buffer, bytes);
    return TNW_OK;
  });
}

tnw_status tnw_wait_put(tnw_link link, int channel) {
  return with_links([=](Links& links) {
    links.wait_put(link, channel);
    return TNW_OK;
  });
}

tnw_status tnw_poll_put(tnw_link link, int channel) {
  return with_links([=](Links& links) { return links.poll_put(link, channel) ? TNW_OK : TNW_NOT_YET; });
}

tnw_status tnw_credit(tnw_link link, int channel, void* buffer, size_t bytes) {
  return with_links([=](Links& links) {
    links.credit(link, channel, buffer, bytes);
    return TNW_OK;
  });
}

tnw_status tnw_wait(tnw_link link, int channel, size_t* bytes) {
  return with_links([=](Links& links) { return report(links.wait(link, channel), bytes); });
}

tnw_status tnw_poll(tnw_link link, int channel, size_t* bytes) {
  return with_links([=](Links& links) {
    Links::Taken taken;
    return links.poll(link, channel, taken) ? report(taken, bytes) : TNW_NOT_YET;
  });
}

tnw_status tnw_time_us(double* time_us) {
  return with_links([=](Links& links) {
    apenet::ipc::Client& client = links.card().client();
    store(time_us, static_cast<double>(client.clock_ps()) / 1e6);
    client.charge_clock_read();
    return TNW_OK;
  });
}

const char* tnw_strerror(tnw_status status) {
  static constexpr std::array<const char*, TNW_NO_MEMORY + 1> texts = {
      "success",
      "not finished yet",
      "this process does not run under `apenet run`, or the machine's card is no TNW",
      "this process has left the simulation (MPI_Finalize)",
      "tnw_open() was called before",
      "tnw_open() has not been called, or tnw_close() has",
      "no such link: expected TNW_X_PLUS to TNW_Z_MINUS, and a dimension that the network has",
      "nobody is at the other end of this link",
      "no such channel: expected one below tnw_channels()",
      "too long: expected at most tnw_max_bytes()",
      "the buffer is NULL",
      "no put on this link and channel is left to wait for",
      "no credit was given for a message on this link and channel",
      "the message was longer than the buffer of its credit",
      "out of memory"};
  const auto number = static_cast<std::size_t>(status);
  return number < texts.size() ? texts[number] : "no status of this library";
}
