// Atomic operations: their effect on memory, and how they are transferred.
#include "api/libfabric/atomics.hpp"

#include <gtest/gtest.h>
#include <rdma/fi_atomic.h>

#include <array>
#include <complex>
#include <limits>

#include "api/peer.hpp"

namespace apenet::test {
namespace {

using libfabric::AtomicForm;
using libfabric::AtomicOperation;

template <typename T>
T after(AtomicForm form, fi_datatype type, fi_op op, T target, T operand, T comparand = T{}) {
  const T before = target;
  T result{};
  const auto bytes = [](T& value) { return reinterpret_cast<std::byte*>(&value); };
  const AtomicOperation operation{form, type, op};
  EXPECT_TRUE(is_valid(operation));
  EXPECT_EQ(libfabric::bytes_of(type), sizeof(T));
  apply(operation, {bytes(target), bytes(operand), bytes(comparand), bytes(result)}, 1);
  EXPECT_EQ(result, before);
  return target;
}

TEST(AtomicOps, HaveTheEffectOfTheirNames) {
  const auto write = [](fi_op op, std::int32_t target, std::int32_t operand) {
    return after(AtomicForm::write, FI_INT32, op, target, operand);
  };
  EXPECT_EQ(write(FI_MIN, 3, -5), -5);
  EXPECT_EQ(write(FI_MAX, 3, -5), 3);
  EXPECT_EQ(write(FI_SUM, std::numeric_limits<std::int32_t>::max(), 1),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(write(FI_PROD, -3, 5), -15);
  EXPECT_EQ(write(FI_LOR, 0, 8), 1);
  EXPECT_EQ(write(FI_LAND, 4, 8), 1);
  EXPECT_EQ(write(FI_LXOR, 4, 8), 0);
  EXPECT_EQ(write(FI_BOR, 12, 10), 14);
  EXPECT_EQ(write(FI_BAND, 12, 10), 8);
  EXPECT_EQ(write(FI_BXOR, 12, 10), 6);
  EXPECT_EQ(write(FI_ATOMIC_WRITE, 12, 10), 10);
  EXPECT_EQ(after<std::uint16_t>(AtomicForm::write, FI_UINT16, FI_PROD, 65535, 65535), 1);
  EXPECT_EQ(after<std::uint8_t>(AtomicForm::write, FI_UINT8, FI_MAX, 3, 0xff), 0xff);
  EXPECT_EQ(after<std::int8_t>(AtomicForm::write, FI_INT8, FI_MAX, 3, -1), 3);
  EXPECT_EQ(after(AtomicForm::write, FI_DOUBLE, FI_SUM, 0.5, 0.25), 0.75);
  EXPECT_EQ(after(AtomicForm::write, FI_FLOAT, FI_MIN, 0.5F, 0.25F), 0.25F);
  EXPECT_EQ(after(AtomicForm::write, FI_LONG_DOUBLE, FI_PROD, 0.5L, 0.25L), 0.125L);
  using Complex = std::complex<double>;
  EXPECT_EQ(after(AtomicForm::write, FI_DOUBLE_COMPLEX, FI_PROD, Complex(1, 2), Complex(3, -1)),
            Complex(5, 5));
}

TEST(AtomicOps, CompareTheComparandWithTheTarget) {
  const auto swap = [](fi_op op, std::int32_t target, std::int32_t comparand) {
    return after(AtomicForm::compare, FI_INT32, op, target, 9, comparand) == 9;
  };
  EXPECT_TRUE(swap(FI_CSWAP, 3, 3) && !swap(FI_CSWAP, 3, 4));
  EXPECT_TRUE(swap(FI_CSWAP_NE, 3, 4) && !swap(FI_CSWAP_NE, 3, 3));
  EXPECT_TRUE(swap(FI_CSWAP_LE, 3, 3) && swap(FI_CSWAP_LE, 3, 2) && !swap(FI_CSWAP_LE, 3, 4));
  EXPECT_TRUE(swap(FI_CSWAP_LT, 3, 2) && !swap(FI_CSWAP_LT, 3, 3));
  EXPECT_TRUE(swap(FI_CSWAP_GE, 3, 3) && swap(FI_CSWAP_GE, 3, 4) && !swap(FI_CSWAP_GE, 3, 2));
  EXPECT_TRUE(swap(FI_CSWAP_GT, 3, 4) && !swap(FI_CSWAP_GT, 3, 3));
  EXPECT_EQ(after<std::uint32_t>(AtomicForm::compare, FI_UINT32, FI_MSWAP, 0xaaaa, 0x1234, 0x00ff), 0xaa34U);
}

TEST(AtomicOps, AreValidOnlyForSuitableTypes) {
  const auto valid = [](AtomicForm form, fi_datatype type, fi_op op) {
    return is_valid(AtomicOperation{form, type, op});
  };
  EXPECT_FALSE(valid(AtomicForm::write, FI_FLOAT, FI_BOR));
  EXPECT_FALSE(valid(AtomicForm::write, FI_DOUBLE_COMPLEX, FI_MAX));
  EXPECT_FALSE(valid(AtomicForm::write, FI_INT32, FI_ATOMIC_READ));
  EXPECT_TRUE(valid(AtomicForm::fetch, FI_INT32, FI_ATOMIC_READ));
  EXPECT_FALSE(valid(AtomicForm::fetch, FI_INT32, FI_CSWAP));
  EXPECT_FALSE(valid(AtomicForm::compare, FI_INT32, FI_SUM));
  EXPECT_TRUE(valid(AtomicForm::compare, FI_FLOAT_COMPLEX, FI_CSWAP_NE));
  EXPECT_FALSE(valid(AtomicForm::compare, FI_FLOAT_COMPLEX, FI_CSWAP_GT));
  EXPECT_TRUE(valid(AtomicForm::write, FI_UINT128, FI_SUM));
  EXPECT_FALSE(valid(AtomicForm::write, FI_VOID, FI_SUM));
}

struct Atomics : testing::Test {
  // Waits until the origin's operation has ended, while both sides make progress.
  fi_cq_tagged_entry ended() {
    target.drain();
    return origin.next(origin.transmit_cq);
  }
  fi_cq_err_entry failed() {
    target.drain();
    return origin.next_error(origin.transmit_cq);
  }

  FakeNetwork network{2};
  Peer origin{network, 0, {.counters = true}};
  Peer target{network, 1, {.remote_counters = true}};
  std::array<std::uint64_t, 512> there{};
  OpenMemory open{target, there.data(), sizeof(there), everything, 5};
};

TEST_F(Atomics, ChangeTheTargetWhenItMakesProgress) {
  const std::uint64_t operand = 4;
  there[1] = 38;
  ASSERT_EQ(
      fi_atomic(origin.ep, &operand, 1, nullptr, 1, address_of(&there[1]), 5, FI_UINT64, FI_SUM, &there), 0);
  EXPECT_EQ(there[1], 38U);
  const fi_cq_tagged_entry entry = ended();
  EXPECT_EQ(there[1], 42U);
  EXPECT_EQ(entry.op_context, &there);
  EXPECT_EQ(entry.flags, FI_ATOMIC | FI_WRITE);
  EXPECT_EQ(fi_cntr_read(target.written), 1U);
  EXPECT_EQ(fi_cntr_read(origin.counter), 1U);
}

TEST_F(Atomics, FetchThePreviousValue) {
  std::uint64_t operand = 4;
  std::uint64_t result = 0;
  there[0] = 38;
  ASSERT_EQ(fi_fetch_atomic(origin.ep, &operand, 1, nullptr, &result, nullptr, 1, address_of(&there[0]), 5,
                            FI_UINT64, FI_SUM, nullptr),
            0);
  EXPECT_EQ(ended().flags, FI_ATOMIC | FI_READ);
  EXPECT_EQ(result, 38U);
  EXPECT_EQ(there[0], 42U);
  ASSERT_EQ(fi_fetch_atomic(origin.ep, nullptr, 1, nullptr, &result, nullptr, 1, address_of(&there[0]), 5,
                            FI_UINT64, FI_ATOMIC_READ, nullptr),
            0);
  ended();
  EXPECT_EQ(result, 42U);
  const std::uint64_t comparand = 42;
  operand = 7;
  ASSERT_EQ(fi_compare_atomic(origin.ep, &operand, 1, nullptr, &comparand, nullptr, &result, nullptr, 1,
                              address_of(&there[0]), 5, FI_UINT64, FI_CSWAP, nullptr),
            0);
  ended();
  EXPECT_EQ(result, 42U);
  EXPECT_EQ(there[0], 7U);
  EXPECT_EQ(fi_cntr_read(target.read), 3U);
}

TEST_F(Atomics, UseSeveralMessagesIfOneIsTooSmall) {
  std::array<std::uint64_t, 512> operands{};
  std::array<std::uint64_t, 512> comparands{};
  std::array<std::uint64_t, 512> results{};
  for (std::uint64_t i = 0; i < there.size(); ++i) {
    there[i] = i;
    operands[i] = 1000 + i;
    comparands[i] = i % 2 == 0 ? i : 0;
  }
  ASSERT_EQ(
      fi_compare_atomic(origin.ep, operands.data(), 512, nullptr, comparands.data(), nullptr, results.data(),
                        nullptr, 1, address_of(there.data()), 5, FI_UINT64, FI_CSWAP, nullptr),
      0);
  EXPECT_EQ(network.posted().size(), 512U / 8);
  ended();
  for (std::uint64_t i = 0; i < there.size(); ++i) {
    EXPECT_EQ(results[i], i);
    EXPECT_EQ(there[i], i % 2 == 0 ? 1000 + i : i);
  }
  EXPECT_EQ(fi_cntr_read(target.read), 1U);
  EXPECT_TRUE(origin.reads_nothing(origin.transmit_cq));
}

TEST_F(Atomics, WorkOnScatteredMemory) {
  std::array<std::uint64_t, 3> operands{1, 2, 3};
  std::array<std::uint64_t, 3> results{};
  there[0] = 10;
  there[100] = 20;
  there[101] = 30;
  const std::array<fi_ioc, 2> from{fi_ioc{operands.data(), 1}, fi_ioc{&operands[1], 2}};
  std::array<fi_ioc, 2> to{fi_ioc{results.data(), 2}, fi_ioc{&results[2], 1}};
  const std::array<fi_rma_ioc, 2> remote{fi_rma_ioc{address_of(&there[100]), 2, 5},
                                         fi_rma_ioc{address_of(&there[0]), 1, 5}};
  fi_msg_atomic message{};
  message.msg_iov = from.data();
  message.iov_count = 2;
  message.addr = 1;
  message.rma_iov = remote.data();
  message.rma_iov_count = 2;
  message.datatype = FI_UINT64;
  message.op = FI_SUM;
  message.data = 99;
  ASSERT_EQ(fi_fetch_atomicmsg(origin.ep, &message, to.data(), nullptr, 2, FI_COMPLETION | FI_REMOTE_CQ_DATA),
            0);
  ended();
  EXPECT_EQ(results, (std::array<std::uint64_t, 3>{20, 30, 10}));
  EXPECT_EQ(there[100], 21U);
  EXPECT_EQ(there[101], 32U);
  EXPECT_EQ(there[0], 13U);
  const fi_cq_tagged_entry reported = target.next(target.receive_cq);
  EXPECT_EQ(reported.data, 99U);
  EXPECT_EQ(reported.flags, FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_CQ_DATA);
  to[1].count = 2;
  EXPECT_EQ(fi_fetch_atomicmsg(origin.ep, &message, to.data(), nullptr, 2, 0), -FI_EINVAL);
}

TEST_F(Atomics, InjectWithoutACompletion) {
  std::uint64_t operand = 3;
  ASSERT_EQ(fi_inject_atomic(origin.ep, &operand, 1, 1, address_of(there.data()), 5, FI_UINT64, FI_SUM), 0);
  operand = 0;
  target.drain();
  origin.drain();
  EXPECT_EQ(there[0], 3U);
  EXPECT_TRUE(origin.reads_nothing(origin.transmit_cq));
  EXPECT_EQ(fi_cntr_read(origin.counter), 1U);
}

TEST_F(Atomics, AreRefusedByTheTargetsRegion) {
  std::uint64_t word = 0;
  const OpenMemory readable(target, &word, sizeof(word), FI_REMOTE_READ, 6);
  std::uint64_t value = 1;
  const auto write = [&](const void* address, std::uint64_t key) {
    EXPECT_EQ(
        fi_atomic(origin.ep, &value, 1, nullptr, 1, address_of(address), key, FI_UINT64, FI_SUM, nullptr), 0);
    return failed().err;
  };
  EXPECT_EQ(write(&word, 7), FI_EKEYREJECTED);
  EXPECT_EQ(write(&word, 5), FI_EACCES);
  EXPECT_EQ(write(&word, 6), FI_EACCES);
  EXPECT_EQ(word, 0U);
  EXPECT_EQ(fi_fetch_atomic(origin.ep, nullptr, 1, nullptr, &value, nullptr, 1, address_of(&word), 6,
                            FI_UINT64, FI_ATOMIC_READ, nullptr),
            0);
  ended();
  EXPECT_EQ(value, 0U);
  EXPECT_EQ(fi_cntr_read(target.written), 0U);
  EXPECT_EQ(fi_cntr_readerr(origin.counter), 3U);
}

TEST_F(Atomics, RefuseUnsupportedOperations) {
  std::size_t count = 0;
  EXPECT_EQ(fi_atomicvalid(origin.ep, FI_DOUBLE, FI_SUM, &count), 0);
  EXPECT_EQ(count, 512U);
  EXPECT_EQ(fi_atomicvalid(origin.ep, FI_DOUBLE, FI_BOR, &count), -FI_EOPNOTSUPP);
  fi_atomic_attr attributes{};
  EXPECT_EQ(fi_query_atomic(origin.domain, FI_INT16, FI_CSWAP, &attributes, FI_COMPARE_ATOMIC), 0);
  EXPECT_EQ(attributes.count, 2048U);
  EXPECT_EQ(attributes.size, 2U);
  EXPECT_EQ(fi_query_atomic(origin.domain, FI_INT16, FI_CSWAP, &attributes, 0), -FI_EOPNOTSUPP);
  std::array<std::uint64_t, 513> many{};
  EXPECT_EQ(fi_atomic(origin.ep, many.data(), 513, nullptr, 1, 0, 5, FI_UINT64, FI_SUM, nullptr),
            -FI_EMSGSIZE);
  EXPECT_EQ(fi_atomic(origin.ep, many.data(), 1, nullptr, 1, 0, 5, FI_FLOAT, FI_BXOR, nullptr),
            -FI_EOPNOTSUPP);
  EXPECT_EQ(network.posted().size(), 0U);
}

TEST_F(Atomics, KeepTheOrderOfMessages) {
  std::uint64_t value = 5;
  std::uint64_t result = 0;
  network.hold(true);
  fi_inject_atomic(origin.ep, &value, 1, 1, address_of(there.data()), 5, FI_UINT64, FI_ATOMIC_WRITE);
  fi_fetch_atomic(origin.ep, nullptr, 1, nullptr, &result, nullptr, 1, address_of(there.data()), 5, FI_UINT64,
                  FI_ATOMIC_READ, nullptr);
  ASSERT_EQ(network.waiting(), 2U);
  network.release(1);
  network.release(0);
  network.hold(false);
  ended();
  EXPECT_EQ(result, 5U);
}

TEST_F(Atomics, FailIfTheTargetHasClosed) {
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(target.domain, target.info, &ep, nullptr), 0);
  ASSERT_EQ(fi_close(&ep->fid), 0);
  const libfabric::EndpointName name{.rank = 1, .endpoint = 1};
  fi_addr_t address = 0;
  ASSERT_EQ(fi_av_insert(origin.av, &name, 1, &address, 0, nullptr), 1);
  std::uint64_t value = 5;
  fi_atomic(origin.ep, &value, 1, nullptr, address, address_of(there.data()), 5, FI_UINT64, FI_SUM, nullptr);
  EXPECT_EQ(failed().err, FI_EKEYREJECTED);
}

}  // namespace
}  // namespace apenet::test
