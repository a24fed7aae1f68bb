// The functions of qmp.h that all nodes of a communicator call.
#include <cstring>
#include <string>
#include <string_view>

#include "api/qmp/collectives.hpp"
#include "api/qmp/failure.hpp"
#include "api/qmp/session.hpp"

namespace {

using namespace apenet::qmp;

constexpr auto sum = [](auto a, auto b) { return a + b; };
constexpr auto least = [](auto a, auto b) { return b < a ? b : a; };
constexpr auto greatest = [](auto a, auto b) { return a < b ? b : a; };
constexpr auto exclusive_or = [](auto a, auto b) { return a ^ b; };

std::span<std::byte> checked(void* memory, std::size_t bytes) {
  require(memory != nullptr || bytes == 0, QMP_INVALID_ARG, "a null pointer");
  return {static_cast<std::byte*>(memory), bytes};
}

// In place, over all nodes.
template <typename Value, typename Operation>
void reduce_values(const Communicator& comm, Value* values, int length, Operation operation) {
  require(length >= 0, QMP_INVALID_ARG, "length " + std::to_string(length) + ": expected 0 or more");
  const auto count = static_cast<std::size_t>(length);
  reduce(comm, checked(values, count * sizeof(Value)), [&](std::byte* low, const std::byte* high) {
    for (std::size_t i = 0; i < count; ++i) {
      Value mine;
      Value theirs;
      std::memcpy(&mine, low + i * sizeof(Value), sizeof(Value));
      std::memcpy(&theirs, high + i * sizeof(Value), sizeof(Value));
      mine = operation(mine, theirs);
      std::memcpy(low + i * sizeof(Value), &mine, sizeof(Value));
    }
  });
}

template <typename Value, typename Operation>
QMP_status_t combined(std::string_view call, QMP_comm_t comm, Value* values, int length,
                      Operation operation) {
  return status_call(call,
                     [&](Job& job) { reduce_values(job.communicator(comm), values, length, operation); });
}

}  // namespace

QMP_status_t QMP_barrier(void) {
  return QMP_comm_barrier(QMP_comm_get_default());
}

QMP_status_t QMP_comm_barrier(QMP_comm_t comm) {
  return status_call("QMP_barrier", [&](Job& job) { barrier(job.communicator(comm)); });
}

QMP_status_t QMP_broadcast(void* buffer, size_t nbytes) {
  return QMP_comm_broadcast(QMP_comm_get_default(), buffer, nbytes);
}

QMP_status_t QMP_comm_broadcast(QMP_comm_t comm, void* buffer, size_t nbytes) {
  return status_call("QMP_broadcast",
                     [&](Job& job) { broadcast(job.communicator(comm), checked(buffer, nbytes)); });
}

QMP_status_t QMP_sum_int(int* value) {
  return QMP_comm_sum_int(QMP_comm_get_default(), value);
}

QMP_status_t QMP_comm_sum_int(QMP_comm_t comm, int* value) {
  // Unsigned numbers wrap around.
  return combined("QMP_sum_int", comm, reinterpret_cast<unsigned*>(value), 1, sum);
}

QMP_status_t QMP_sum_double_extended(double* value) {
  return QMP_comm_sum_double_extended(QMP_comm_get_default(), value);
}

QMP_status_t QMP_comm_sum_double_extended(QMP_comm_t comm, double* value) {
  return status_call("QMP_sum_double_extended", [&](Job& job) {
    require(value != nullptr, QMP_INVALID_ARG, "a null pointer");
    long double extended = *value;
    reduce_values(job.communicator(comm), &extended, 1, sum);
    *value = static_cast<double>(extended);
  });
}

// A reduction of one value, or a sum of an array, over the default communicator and over any one.
// NOLINTBEGIN(bugprone-macro-parentheses): Value is a type
#define APENET_QMP_REDUCTION(name, Value, operation)            \
  QMP_status_t QMP_##name(Value* value) {                       \
    return QMP_comm_##name(QMP_comm_get_default(), value);      \
  }                                                             \
  QMP_status_t QMP_comm_##name(QMP_comm_t comm, Value* value) { \
    return combined("QMP_" #name, comm, value, 1, operation);   \
  }
#define APENET_QMP_ARRAY_SUM(name, Value)                                    \
  QMP_status_t QMP_##name(Value value[], int length) {                       \
    return QMP_comm_##name(QMP_comm_get_default(), value, length);           \
  }                                                                          \
  QMP_status_t QMP_comm_##name(QMP_comm_t comm, Value value[], int length) { \
    return combined("QMP_" #name, comm, value, length, sum);                 \
  }
// NOLINTEND(bugprone-macro-parentheses)
APENET_QMP_REDUCTION(sum_uint64_t, uint64_t, sum)
APENET_QMP_REDUCTION(sum_float, float, sum)
APENET_QMP_REDUCTION(sum_double, double, sum)
APENET_QMP_REDUCTION(sum_long_double, long double, sum)
APENET_QMP_REDUCTION(max_float, float, greatest)
APENET_QMP_REDUCTION(max_double, double, greatest)
APENET_QMP_REDUCTION(min_float, float, least)
APENET_QMP_REDUCTION(min_double, double, least)
APENET_QMP_REDUCTION(xor_ulong, unsigned long, exclusive_or)
APENET_QMP_ARRAY_SUM(sum_float_array, float)
APENET_QMP_ARRAY_SUM(sum_double_array, double)
APENET_QMP_ARRAY_SUM(sum_long_double_array, long double)

QMP_status_t QMP_comm_alltoall(QMP_comm_t comm, char* recvbuffer, char* sendbuffer, int count) {
  return status_call("QMP_comm_alltoall", [&](Job& job) {
    require(count >= 0, QMP_INVALID_ARG, "count " + std::to_string(count) + ": expected 0 or more");
    const auto bytes = static_cast<std::size_t>(count);
    exchange_all(job.communicator(comm), checked(recvbuffer, bytes).data(), checked(sendbuffer, bytes).data(),
                 bytes);
  });
}

QMP_status_t QMP_binary_reduction(void* lbuffer, size_t buflen, QMP_binary_func bfunc) {
  return QMP_comm_binary_reduction(QMP_comm_get_default(), lbuffer, buflen, bfunc);
}

QMP_status_t QMP_comm_binary_reduction(QMP_comm_t comm, void* lbuffer, size_t buflen, QMP_binary_func bfunc) {
  return status_call("QMP_binary_reduction", [&](Job& job) {
    require(bfunc != nullptr, QMP_INVALID_ARG, "a null pointer");
    reduce(job.communicator(comm), checked(lbuffer, buflen), bfunc);
  });
}
