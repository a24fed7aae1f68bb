#include "api/libfabric/wire.hpp"

#include <gtest/gtest.h>

#include <array>

namespace apenet::libfabric {
namespace {

TEST(Wire, AtomicsHaveAsManyOperandsAsTheirCount) {
  std::array<std::byte, sizeof(AtomicBody) + 2 * atomic_payload_bytes> bytes{};
  const auto decodes = [&bytes](AtomicForm form, fi_datatype type, fi_op op, std::uint16_t count,
                                std::size_t operand_bytes) {
    AtomicBody body;
    body.form = static_cast<std::uint8_t>(form);
    body.type = static_cast<std::uint8_t>(type);
    body.op = static_cast<std::uint8_t>(op);
    body.count = count;
    std::memcpy(bytes.data(), &body, sizeof(body));
    try {
      return decode_atomic({bytes.data(), sizeof(body) + operand_bytes}).count == count;
    } catch (const MalformedMessage&) {
      return false;
    }
  };
  EXPECT_TRUE(decodes(AtomicForm::write, FI_INT32, FI_SUM, 3, 12));
  EXPECT_FALSE(decodes(AtomicForm::write, FI_INT32, FI_SUM, 3, 11));
  EXPECT_TRUE(decodes(AtomicForm::compare, FI_INT32, FI_CSWAP, 3, 24));
  EXPECT_FALSE(decodes(AtomicForm::compare, FI_INT32, FI_CSWAP, 3, 12));
  EXPECT_TRUE(decodes(AtomicForm::fetch, FI_INT64, FI_ATOMIC_READ, 16, 0));
  EXPECT_FALSE(decodes(AtomicForm::fetch, FI_INT64, FI_ATOMIC_READ, 17, 0));
  EXPECT_FALSE(decodes(AtomicForm::write, FI_INT8, FI_SUM, 129, 129));
  EXPECT_FALSE(decodes(AtomicForm::write, FI_DOUBLE, FI_BOR, 1, 8));
}

}  // namespace
}  // namespace apenet::libfabric
