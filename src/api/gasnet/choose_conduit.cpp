#include "api/gasnet/choose_conduit.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "api/gasnet/apelink_core.hpp"
#include "api/gasnet/extoll_core.hpp"
#include "api/gasnet/ibv_core.hpp"
#include "api/gasnet/mpi_core.hpp"
#include "api/gasnet/udp_core.hpp"

namespace apenet::gasnet {
namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view(value);
}

// What the makers below need. Each returns nullptr and says why if it fails.
struct ConduitNeeds {
  ipc::Client& client;
  Mode mode;
  std::uint8_t rail;  // rail of the card that the conduit drives
  std::string& why;
};

constexpr const char* has_left = "the process has left the simulation";

std::unique_ptr<Core> make_extoll(const ConduitNeeds& place) {
  std::string& why = place.why;
  const std::string_view chosen = environment("GASNET_EXTOLL_AM");
  if (!chosen.empty() && chosen != "first" && chosen != "improved") {
    why = "GASNET_EXTOLL_AM=" + std::string(chosen) + ": expected first or improved";
    return nullptr;
  }
  extoll_api::Device& device = *extoll_api::Device::make();
  native::Card& card = device.card();
  for (std::uint32_t rank = 0; rank < card.rank_count(); ++rank) {
    if (device.peers().has_address(rank)) continue;
    why = "EXTOLL's addresses are not enough for rank " + std::to_string(rank);
    return nullptr;
  }
  if (device.velo().is_open() || device.rma().is_open() || !card.open() ||
      !device.rma().open(device.next_id())) {
    why = "the ports of VELO or RMA are in use by this process, or it has left the simulation";
    return nullptr;
  }
  device.velo().open(device.next_id());
  using Implementation = ExtollCore::Implementation;
  return std::make_unique<ExtollCore>(device,
                                      chosen == "first" ? Implementation::first : Implementation::improved);
}

std::unique_ptr<Core> make_ibv(const ConduitNeeds& place) {
  auto core = std::make_unique<IbvCore>(place.client, place.rail);
  if (core->card().open()) return core;
  place.why = has_left;
  return nullptr;
}

const char* why_no_port(ape_rdma_status status) {
  if (status == APE_RDMA_ENDED) return has_left;
  return status == APE_RDMA_PORT_TAKEN ? "the program itself has opened the process's port (ape_rdma_open)"
                                       : "the process has no port of the card";
}

std::unique_ptr<Core> make_apelink(const ConduitNeeds& place) {
  if (place.rail != 0) {
    place.why = "the library for remote memory access drives the first card only";
    return nullptr;
  }
  try {
    return std::make_unique<ApelinkCore>(place.client);
  } catch (const rdma::Failure& failure) {
    place.why = why_no_port(failure.status());
    return nullptr;
  }
}

std::unique_ptr<Core> make_mpi(const ConduitNeeds& place) {
  const bool is_threaded = place.mode == Mode::par;
  std::unique_ptr<MpiLibrary> library;
  {
    const ipc::Outside outside(place.client);
    library = MpiLibrary::open(is_threaded, place.why);
  }
  if (library == nullptr) return nullptr;
  auto core = std::make_unique<MpiCore>(place.client, std::move(library), is_threaded);
  if (core->card().open()) return core;
  place.why = has_left;
  return nullptr;
}

std::unique_ptr<Core> make_udp(const ConduitNeeds& place) {
  auto core = std::make_unique<UdpCore>(place.client, place.rail);
  if (core->card().open()) return core;
  place.why = has_left;
  return nullptr;
}

struct Choice {
  std::string_view name;
  std::unique_ptr<Core> (*make)(const ConduitNeeds&);
};
constexpr std::array choices{Choice{"extoll", make_extoll}, Choice{"ibv", make_ibv},
                             Choice{"apelink", make_apelink}, Choice{"udp", make_udp},
                             Choice{"mpi", make_mpi}};

// The description of a card names the conduit of its own (CardKind::conduit). The others need no such card.
bool drives(const Choice& choice, const ipc::Rail& rail) {
  if (choice.name == "udp") return rail.udp.mtu_bytes > 0;
  return choice.name == "mpi" || choice.name == rail.conduit;
}

// The first rail whose card the conduit drives, if any.
std::optional<std::uint8_t> rail_of(const ipc::Header& header, const Choice& choice) {
  for (std::uint8_t rail = 0; rail < header.rail_count; ++rail) {
    if (drives(choice, header.rails[rail])) return rail;
  }
  return std::nullopt;
}

const Choice* choice_named(std::string_view name) {
  const auto* const found = std::ranges::find(choices, name, &Choice::name);
  return found == choices.end() ? nullptr : found;
}

std::string possible_names(const ipc::Header& header) {
  std::string names;
  for (const Choice& choice : choices) {
    if (rail_of(header, choice)) names.append(names.empty() ? "" : ", ").append(choice.name);
  }
  return names;
}

}  // namespace

std::unique_ptr<Conduit> choose_conduit(ipc::Client& client, Mode mode, Reach reach, std::string& why) {
  const ipc::Header& header = client.header();
  const std::string_view named = environment("GASNET_CONDUIT");
  const std::string_view own = header.rails[0].conduit;
  const std::string_view by_default = own.empty() ? "mpi" : own;
  const Choice* const choice = choice_named(named.empty() ? by_default : named);
  const std::optional<std::uint8_t> rail = choice == nullptr ? std::nullopt : rail_of(header, *choice);
  if (!rail) {
    why = "GASNET_CONDUIT=" + std::string(named) + ": expected one that is possible on " +
          std::string(header.machine) + ": " + possible_names(header);
    return nullptr;
  }
  std::unique_ptr<Core> core = choice->make({client, mode, *rail, why});
  return core == nullptr ? nullptr : std::make_unique<Conduit>(std::move(core), reach);
}

}  // namespace apenet::gasnet
