#include "api/gasnet/choose_conduit.hpp"

#include <cstdlib>
#include <string_view>

#include "api/gasnet/extoll_conduit.hpp"

namespace apenet::gasnet {
namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view(value);
}

std::unique_ptr<Conduit> make_extoll(std::string& why) {
  const std::string_view chosen = environment("GASNET_EXTOLL_AM");
  if (!chosen.empty() && chosen != "first" && chosen != "improved") {
    why = "GASNET_EXTOLL_AM=" + std::string(chosen) + ": expected first or improved";
    return nullptr;
  }
  extoll_api::Device* const device = extoll_api::Device::make();
  if (device == nullptr) {
    why = "the machine has no EXTOLL card";
    return nullptr;
  }
  native::Card& card = device->card();
  for (std::uint32_t rank = 0; rank < card.rank_count(); ++rank) {
    if (device->peers().has_address(rank)) continue;
    why = "EXTOLL's addresses are not enough for rank " + std::to_string(rank);
    return nullptr;
  }
  if (device->velo().is_open() || device->rma().is_open() || !card.open() ||
      !device->rma().open(device->next_id())) {
    why = "the ports of VELO or RMA are in use by this process, or it has left the simulation";
    return nullptr;
  }
  device->velo().open(device->next_id());
  using Implementation = ExtollConduit::Implementation;
  return std::make_unique<ExtollConduit>(
      *device, chosen == "first" ? Implementation::first : Implementation::improved);
}

}  // namespace

std::unique_ptr<Conduit> choose_conduit(const ipc::Header& header, std::string& why) {
  const std::string_view named = environment("GASNET_CONDUIT");
  const std::string_view wanted = named.empty() ? std::string_view(header.rails[0].kind) : named;
  if (wanted == "extoll") return make_extoll(why);
  why = named.empty() ? "there is no conduit for the machine's card, " + std::string(wanted)
                      : "GASNET_CONDUIT=" + std::string(named) + ": expected extoll";
  return nullptr;
}

}  // namespace apenet::gasnet
