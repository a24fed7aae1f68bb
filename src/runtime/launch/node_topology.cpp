#include "runtime/launch/node_topology.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <string_view>

#include "runtime/ipc/descriptor_path.hpp"

namespace apenet {
namespace {

// One core: a process is one processor of the model. The format is that of hwloc 2.
constexpr std::string_view one_core = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x1" complete_cpuset="0x1" allowed_cpuset="0x1"
          nodeset="0x1" complete_nodeset="0x1" allowed_nodeset="0x1">
    <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1"
            nodeset="0x1" complete_nodeset="0x1"/>
    <object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1"
            nodeset="0x1" complete_nodeset="0x1">
      <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1"
              nodeset="0x1" complete_nodeset="0x1"/>
    </object>
  </object>
</topology>
)";

}  // namespace

NodeTopology::NodeTopology() : fd_(memfd_create("apenet-topology", MFD_CLOEXEC)) {
  if (fd_ >= 0 && write(fd_, one_core.data(), one_core.size()) == static_cast<ssize_t>(one_core.size()))
    path_ = ipc::descriptor_path(fd_);
}

NodeTopology::~NodeTopology() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace apenet
