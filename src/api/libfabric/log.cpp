#include "api/libfabric/log.hpp"

#include <cstdio>
#include <cstdlib>
#include <new>

#include "api/libfabric/cuda_driver.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/wire.hpp"

namespace apenet::libfabric {
namespace {

void write_line(std::string_view message) {
  std::fprintf(stderr, "libfabric apenet: %.*s\n", static_cast<int>(message.size()), message.data());
}

}  // namespace

void warn(std::string_view message) {
  write_line(message);
}

void inform(std::string_view message) {
  const char* level = std::getenv("FI_LOG_LEVEL");
  if (level == nullptr) return;
  const std::string_view name = level;
  if (name == "info" || name == "debug") write_line(message);
}

int report_exception() noexcept {
  try {
    throw;
  } catch (const DeviceError& error) {
    warn(error.message());
    return -error.code();
  } catch (const FabricError& error) {
    inform(error.message());
    return -error.code();
  } catch (const MalformedMessage& error) {
    warn(error.what());
    return -FI_EIO;
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  } catch (const std::exception& error) {
    warn(error.what());
    return -FI_EOTHER;
  } catch (...) {
    return -FI_EOTHER;
  }
}

}  // namespace apenet::libfabric
