#include "api/apelib/process.hpp"

#include <cstdlib>

#include "api/apelib/card_transport.hpp"
#include "api/apelib/collectives.hpp"
#include "runtime/ipc/client.hpp"

namespace apenet::apelib {
namespace {

std::unique_ptr<Transport> make_transport() {
  ipc::Client* client = ipc::Client::machine() != nullptr ? ipc::Client::instance() : nullptr;
  if (client != nullptr) {
    const native::Inside inside(*client);
    return std::make_unique<CardTransport>(*client);
  }
  if (ipc::Client::is_fork() || std::getenv(ipc::mapping_variable) != nullptr)
    throw Error(APE_ERR_STATE, "ape_init: this process is a child of a simulated rank, not a rank");
  return make_fabric_transport();
}

Torus torus_for(const Transport& transport) {
  if (const char* dims = std::getenv("APELIB_DIMS"); dims != nullptr && *dims != '\0')
    return torus_of(dims, transport.size());
  const std::optional<Torus> torus = transport.torus();
  return torus ? *torus : balanced_torus(transport.size());
}

}  // namespace

Process& Process::instance() {
  static auto& process = *new Process;
  return process;
}

std::string& Process::last_error() {
  static thread_local std::string text;
  return text;
}

void Process::open() {
  if (is_closed_)
    throw Error(APE_ERR_FINALIZED, "ape_init: after ape_finalize(), which ends the use of the library");
  if (library_ != nullptr) throw Error(APE_ERR_STATE, "ape_init: the library is already initialised");
  if (transport_ == nullptr) transport_ = make_transport();
  library_ = std::make_unique<Library>(*transport_, torus_for(*transport_));
}

void Process::close() {
  Library& own = library("ape_finalize");
  if (own.requests().count() > 0)
    throw Error(APE_ERR_BUSY, "ape_finalize: " + std::to_string(own.requests().count()) +
                                  " requests in progress, which nobody has waited for");
  {
    const Inside inside(*transport_);
    barrier(own, "ape_finalize");
    transport_->close();
  }
  library_.reset();
  is_closed_ = true;
}

Library& Process::library(std::string_view call) {
  if (is_closed_) throw Error(APE_ERR_FINALIZED, std::string(call) + ": after ape_finalize()");
  if (library_ == nullptr) throw Error(APE_ERR_STATE, std::string(call) + ": before ape_init()");
  return *library_;
}

}  // namespace apenet::apelib
