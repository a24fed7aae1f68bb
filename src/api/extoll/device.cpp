#include "api/extoll/device.hpp"

#include <atomic>
#include <mutex>

namespace apenet::extoll_api {
namespace {

std::atomic<Device*> process_device{nullptr};
std::mutex making;

}  // namespace

std::optional<std::uint8_t> Device::rail_of(const ipc::Header& header) {
  for (std::uint8_t rail = 0; rail < header.rail_count; ++rail) {
    if (header.rails[rail].has_layer("velo")) return rail;
  }
  return std::nullopt;
}

Device::Device(ipc::Client& client, std::uint8_t rail)
    : card_(client, ipc::Interface::extoll, *this, rail),
      peers_(client),
      velo_(card_, peers_),
      rma_(card_, peers_) {}

Device* Device::make() {
  const std::lock_guard lock(making);
  if (process_device == nullptr && missing() == Missing::nothing) {
    ipc::Client& client = *ipc::Client::instance();
    process_device = new Device(client, *rail_of(client.header()));
  }
  return process_device;
}

Device* Device::made() {
  return process_device;
}

Device::Missing Device::missing() {
  const ipc::Client* client = ipc::Client::instance();
  if (client == nullptr) return Missing::simulation;
  return rail_of(client->header()) ? Missing::nothing : Missing::card;
}

void Device::take(const ipc::Event& event) noexcept {
  if (Label::is_label(event.immediate)) {
    rma_.take(event);
  } else if (event.kind == ipc::EventKind::arrived) {
    velo_.arrived(event);
  } else if (event.kind == ipc::EventKind::sent) {
    velo_.sent();
  }
}

}  // namespace apenet::extoll_api
