#include "api/libfabric/info.hpp"

#include <gtest/gtest.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <memory>
#include <string>

#include "api/libfabric/guard.hpp"

namespace apenet::libfabric {
namespace {

constexpr std::uint32_t version = FI_VERSION(2, 5);

struct Hints {
  fi_tx_attr transmit{};
  fi_rx_attr receive{};
  fi_ep_attr endpoint{};
  fi_domain_attr domain{};
  fi_fabric_attr fabric{};
  fi_info info{};
  Hints() {
    info.tx_attr = &transmit;
    info.rx_attr = &receive;
    info.ep_attr = &endpoint;
    info.domain_attr = &domain;
    info.fabric_attr = &fabric;
    domain.mr_mode = FI_MR_VIRT_ADDR;
  }
};

struct MachineWithAll : ipc::Header {
  MachineWithAll() {
    rails[0].put_supported = 1;
    rails[0].get_supported = 1;
    rails[0].remote_access_supported = 1;
  }
};

using Info = std::unique_ptr<fi_info, decltype(&free_info)>;

Info ask(const fi_info* hints, const ipc::Header& header) {
  return {make_info(version, hints, header), free_info};
}

std::string refusal(const fi_info* hints, const ipc::Header& header) {
  try {
    ask(hints, header);
  } catch (const FabricError& error) {
    EXPECT_EQ(error.code(), FI_ENODATA);
    return error.message();
  }
  return {};
}

TEST(Info, OffersEverythingWithoutHints) {
  const MachineWithAll header;
  const Info info = ask(nullptr, header);
  const std::uint64_t needed = FI_MSG | FI_TAGGED | FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ |
                               FI_REMOTE_WRITE | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE;
  EXPECT_EQ(info->caps & needed, needed);
  EXPECT_NE(info->caps & FI_ATOMIC, 0U);
  EXPECT_EQ(info->mode, 0U);
  EXPECT_EQ(info->domain_attr->mr_mode, FI_MR_VIRT_ADDR);
  EXPECT_EQ(info->ep_attr->type, FI_EP_RDM);
  EXPECT_EQ(info->fabric_attr->prov_name, nullptr);  // left to libfabric to fill in
}

TEST(Info, AcceptsItsOwnOfferAsHints) {
  const MachineWithAll header;
  const Info offered = ask(nullptr, header);
  EXPECT_EQ(ask(offered.get(), header)->caps, offered->caps);
}

TEST(Info, NamesUnsupportedCapabilitiesOfACard) {
  MachineWithAll header;
  Hints hints;
  hints.info.caps = FI_RMA | FI_READ;
  header.rails[0].get_supported = 0;
  EXPECT_NE(refusal(&hints.info, header).find("FI_READ"), std::string::npos);
  EXPECT_EQ(ask(nullptr, header)->caps & FI_READ, 0U);
  header.rails[0].remote_access_supported = 0;
  EXPECT_NE(refusal(&hints.info, header).find("FI_RMA"), std::string::npos);
  EXPECT_EQ(ask(nullptr, header)->caps & FI_RMA, 0U);
  header.rails[0].put_supported = 0;
  EXPECT_NE(refusal(nullptr, header).find("put"), std::string::npos);
}

TEST(Info, RemoteAddressesAreOffsetsUnlessVirtualOnesAreRequested) {
  Hints hints;
  hints.domain.mr_mode = FI_MR_ENDPOINT;
  hints.info.caps = FI_RMA;
  EXPECT_EQ(ask(&hints.info, MachineWithAll())->domain_attr->mr_mode, 0);
  hints.domain.mr_mode = FI_MR_VIRT_ADDR | FI_MR_LOCAL;
  EXPECT_EQ(ask(&hints.info, MachineWithAll())->domain_attr->mr_mode, FI_MR_VIRT_ADDR);
  hints.domain.mr_mode = basic_registration;
  EXPECT_EQ(ask(&hints.info, MachineWithAll())->domain_attr->mr_mode, basic_registration);
}

TEST(Info, OffersAtomicsIfMemoryCanBeReadAndWritten) {
  MachineWithAll header;
  Hints hints;
  hints.info.caps = FI_ATOMIC;
  EXPECT_EQ(ask(&hints.info, header)->caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE),
            FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE);
  header.rails[0].mpi.card.max_send_bytes = 100;
  EXPECT_NE(refusal(&hints.info, header).find("caps"), std::string::npos);
  header.rails[0].mpi.card.max_send_bytes = 0;
  header.rails[0].get_supported = 0;
  EXPECT_NE(refusal(&hints.info, header).find("caps"), std::string::npos);
}

TEST(Info, OffersRmaEventsOnlyOnRequest) {
  EXPECT_EQ(ask(nullptr, MachineWithAll())->caps & FI_RMA_EVENT, 0U);
  Hints hints;
  hints.info.caps = FI_RMA | FI_RMA_EVENT;
  EXPECT_NE(ask(&hints.info, MachineWithAll())->caps & FI_RMA_EVENT, 0U);
}

TEST(Info, RefusesByName) {
  Hints hints;
  hints.endpoint.type = FI_EP_MSG;
  EXPECT_NE(refusal(&hints.info, MachineWithAll()).find("ep_attr.type"), std::string::npos);
  Hints collectives;
  collectives.info.caps = FI_MSG | FI_COLLECTIVE;
  EXPECT_NE(refusal(&collectives.info, MachineWithAll()).find("caps"), std::string::npos);
  Hints data;
  data.domain.cq_data_size = 8;
  EXPECT_NE(refusal(&data.info, MachineWithAll()).find("cq_data_size"), std::string::npos);
}

TEST(Info, OffersAutomaticProgressOnRequest) {
  EXPECT_EQ(ask(nullptr, MachineWithAll())->domain_attr->data_progress, FI_PROGRESS_MANUAL);
  Hints hints;
  hints.domain.data_progress = FI_PROGRESS_AUTO;
  const Info info = ask(&hints.info, MachineWithAll());
  EXPECT_EQ(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
  EXPECT_EQ(info->domain_attr->control_progress, FI_PROGRESS_MANUAL);
}

TEST(Info, KeepsThePromisesOfTheHints) {
  Hints hints;
  hints.info.caps = FI_TAGGED;
  hints.transmit.op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
  hints.domain.threading = FI_THREAD_DOMAIN;
  hints.domain.av_type = FI_AV_MAP;
  hints.endpoint.mem_tag_format = 0x00c000007fffffffULL;
  const Info info = ask(&hints.info, MachineWithAll());
  EXPECT_EQ(info->tx_attr->op_flags, FI_COMPLETION | FI_DELIVERY_COMPLETE);
  EXPECT_EQ(info->domain_attr->threading, FI_THREAD_DOMAIN);
  EXPECT_EQ(info->domain_attr->av_type, FI_AV_MAP);
  EXPECT_EQ(info->ep_attr->mem_tag_format, 0x00c000007fffffffULL);
  EXPECT_EQ(info->caps & (FI_TAGGED | FI_SEND | FI_RECV), FI_TAGGED | FI_SEND | FI_RECV);
}

TEST(Info, IsEmptyOutsideASimulation) {
  fi_info* info = nullptr;
  EXPECT_EQ(get_info(version, nullptr, nullptr, 0, nullptr, &info), -FI_ENODATA);
}

}  // namespace
}  // namespace apenet::libfabric
