// Both headers in C++.
#include <rma2.h>
#include <velo2.h>

#include <cstdint>

int main() {
  velo2_port_t port{};
  RMA2_Port endpoint = nullptr;
  const bool is_refused = velo2_open(&port) != VELO2_RET_SUCCESS && rma2_open(&endpoint) != RMA2_SUCCESS;
  return is_refused && VELO2_STATUS_TAG(std::uint64_t{7} << 40) == 7 ? 0 : 1;
}
