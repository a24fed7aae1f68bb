#include "api/libfabric/nic_info.hpp"

#include <rdma/fi_errno.h>

#include <memory>

#include "api/libfabric/objects.hpp"

namespace apenet::libfabric {
namespace {

// A PCI domain that no host has: a simulated card is not at the place of a device of the host. MPICH takes
// cards for different ones by their places, and asks the host how close they are to the process, unless the
// place of any of them is unknown (zero), as that of the first rail is. Then the first is the close one.
constexpr std::uint16_t pci_domain = 0xa9e0;

int close_nic(fid* object);
int control_nic(fid* object, int command, void* argument);

constexpr fi_ops nic_ops = {
    .size = sizeof(fi_ops),
    .close = close_nic,
    .bind = nullptr,
    .control = control_nic,
    .ops_open = nullptr,
    .tostr = nullptr,
    .ops_set = nullptr,
};

// With everything that it points to.
struct NicInfo : fid_nic {
  NicInfo(const std::string& name_, const fi_pci_attr& place) : fid_nic{}, name(name_) {
    device.name = name.data();
    bus.bus_type = FI_BUS_PCI;
    bus.attr.pci = place;
    link.state = FI_LINK_UP;
    fid.fclass = FI_CLASS_NIC;
    fid.ops = table(nic_ops);
    device_attr = &device;
    bus_attr = &bus;
    link_attr = &link;
  }
  NicInfo(const NicInfo&) = delete;
  NicInfo& operator=(const NicInfo&) = delete;

  std::string name;
  fi_device_attr device{};
  fi_bus_attr bus{};
  fi_link_attr link{};
};

NicInfo& nic_of(fid* object) {
  return *static_cast<NicInfo*>(reinterpret_cast<fid_nic*>(object));
}

int close_nic(fid* object) {
  delete &nic_of(object);
  return 0;
}

int control_nic(fid* object, int command, void* argument) {
  if (command != FI_DUP) return -FI_ENOSYS;
  const NicInfo& nic = nic_of(object);
  *static_cast<fid_nic**>(argument) = new NicInfo(nic.name, nic.bus.attr.pci);
  return 0;
}

}  // namespace

fid_nic* make_nic(const ipc::Rail& rail, std::uint8_t number, const std::string& name) {
  if (number == 0) return std::make_unique<NicInfo>(name, fi_pci_attr{}).release();
  const bool is_port = rail.is_at_first != 0;
  const auto bus = static_cast<std::uint8_t>(is_port ? 0 : number);
  const auto function = static_cast<std::uint8_t>(is_port ? number : 0);
  return std::make_unique<NicInfo>(name, fi_pci_attr{pci_domain, bus, 0, function}).release();
}

}  // namespace apenet::libfabric
