#include "api/libfabric/atomic_ops.hpp"

#include <complex>
#include <cstring>
#include <type_traits>

namespace apenet::libfabric {
namespace {

struct Long {
  __extension__ using Signed = __int128;
  __extension__ using Unsigned = unsigned __int128;
};

// What an operation may ask of a type.
enum class Family { integer, real, complex };

template <typename T, Family of_family, typename Arithmetic = T>
struct Type {
  using Value = T;
  using Wide = Arithmetic;  // in which sums and products are made: integers wrap around
  static constexpr Family family = of_family;
};

template <typename T>
using Integer = Type<T, Family::integer, std::uint64_t>;

// use(Type), for the type that a datatype names; false when it names none.
template <typename Use>
bool with_type(fi_datatype type, Use use) {
  switch (static_cast<int>(type)) {
    case FI_INT8:
      return use(Integer<std::int8_t>{}), true;
    case FI_UINT8:
      return use(Integer<std::uint8_t>{}), true;
    case FI_INT16:
      return use(Integer<std::int16_t>{}), true;
    case FI_UINT16:
      return use(Integer<std::uint16_t>{}), true;
    case FI_INT32:
      return use(Integer<std::int32_t>{}), true;
    case FI_UINT32:
      return use(Integer<std::uint32_t>{}), true;
    case FI_INT64:
      return use(Integer<std::int64_t>{}), true;
    case FI_UINT64:
      return use(Integer<std::uint64_t>{}), true;
    case FI_INT128:
      return use(Type<Long::Signed, Family::integer, Long::Unsigned>{}), true;
    case FI_UINT128:
      return use(Type<Long::Unsigned, Family::integer, Long::Unsigned>{}), true;
    case FI_FLOAT:
      return use(Type<float, Family::real>{}), true;
    case FI_DOUBLE:
      return use(Type<double, Family::real>{}), true;
    case FI_LONG_DOUBLE:
      return use(Type<long double, Family::real>{}), true;
    case FI_FLOAT_COMPLEX:
      return use(Type<std::complex<float>, Family::complex>{}), true;
    case FI_DOUBLE_COMPLEX:
      return use(Type<std::complex<double>, Family::complex>{}), true;
    case FI_LONG_DOUBLE_COMPLEX:
      return use(Type<std::complex<long double>, Family::complex>{}), true;
    default:
      return false;
  }
}

bool exists_for(Family family, fi_op op) {
  switch (op) {
    case FI_MIN:
    case FI_MAX:
    case FI_CSWAP_LE:
    case FI_CSWAP_LT:
    case FI_CSWAP_GE:
    case FI_CSWAP_GT:
      return family != Family::complex;
    case FI_BOR:
    case FI_BAND:
    case FI_BXOR:
    case FI_MSWAP:
      return family == Family::integer;
    default:
      return true;
  }
}

template <typename T>
bool compares(fi_op op, const T& comparand, const T& target) {
  switch (op) {
    case FI_CSWAP:
      return comparand == target;
    case FI_CSWAP_NE:
      return comparand != target;
    default:
      break;
  }
  if constexpr (!std::is_class_v<T>) {  // complex numbers have no order
    switch (op) {
      case FI_CSWAP_LE:
        return comparand <= target;
      case FI_CSWAP_LT:
        return comparand < target;
      case FI_CSWAP_GE:
        return comparand >= target;
      case FI_CSWAP_GT:
        return comparand > target;
      default:
        break;
    }
  }
  return false;
}

// What the target becomes. `comparand` is used where is_valid() asks for the form with one.
template <typename Kind, typename T = typename Kind::Value>
T changed(fi_op op, const T& target, const T& operand, const T& comparand) {
  using Wide = typename Kind::Wide;
  const auto truth = [](bool value) { return static_cast<T>(value ? 1 : 0); };
  const bool was = target != static_cast<T>(0);
  const bool is = operand != static_cast<T>(0);
  switch (op) {
    case FI_SUM:
      return static_cast<T>(static_cast<Wide>(target) + static_cast<Wide>(operand));
    case FI_PROD:
      return static_cast<T>(static_cast<Wide>(target) * static_cast<Wide>(operand));
    case FI_LOR:
      return truth(was || is);
    case FI_LAND:
      return truth(was && is);
    case FI_LXOR:
      return truth(was != is);
    case FI_ATOMIC_READ:
      return target;
    case FI_ATOMIC_WRITE:
      return operand;
    default:
      break;
  }
  if constexpr (Kind::family != Family::complex) {
    if (op == FI_MIN) return operand < target ? operand : target;
    if (op == FI_MAX) return operand > target ? operand : target;
  }
  if constexpr (Kind::family == Family::integer) {
    if (op == FI_BOR) return static_cast<T>(target | operand);
    if (op == FI_BAND) return static_cast<T>(target & operand);
    if (op == FI_BXOR) return static_cast<T>(target ^ operand);
    if (op == FI_MSWAP) return static_cast<T>((operand & comparand) | (target & ~comparand));
  }
  return compares(op, comparand, target) ? operand : target;
}

template <typename T>
T load(const std::byte* from) {
  T value{};
  if (from != nullptr) std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename Kind>
void apply_to(fi_op op, const AtomicMemory& memory, std::size_t count) {
  using T = typename Kind::Value;
  const auto element = [](auto* start, std::size_t i) {
    return start == nullptr ? nullptr : start + i * sizeof(T);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const T before = load<T>(element(memory.target, i));
    const T after = changed<Kind>(op, before, load<T>(element(memory.operands, i)),
                                  load<T>(element(memory.comparands, i)));
    if (memory.results != nullptr)
      std::memcpy(element(memory.results, i), element(memory.target, i), sizeof(T));
    if (op != FI_ATOMIC_READ) std::memcpy(element(memory.target, i), &after, sizeof(T));
  }
}

}  // namespace

std::size_t bytes_of(fi_datatype type) {
  std::size_t bytes = 0;
  with_type(type, [&bytes](auto kind) { bytes = sizeof(typename decltype(kind)::Value); });
  return bytes;
}

bool is_valid(const AtomicOperation& operation) {
  const fi_op op = operation.op;
  const bool is_comparison = op >= FI_CSWAP && op <= FI_MSWAP;
  if (op < FI_MIN || op > FI_MSWAP || is_comparison != (operation.form == AtomicForm::compare)) return false;
  if (op == FI_ATOMIC_READ && operation.form == AtomicForm::write) return false;
  bool exists = false;
  with_type(operation.type, [&](auto kind) { exists = exists_for(decltype(kind)::family, op); });
  return exists;
}

bool is_valid(std::uint8_t form, std::uint8_t type, std::uint8_t op) {
  return form <= static_cast<std::uint8_t>(AtomicForm::compare) && op <= FI_MSWAP && type <= FI_UINT128 &&
         is_valid({static_cast<AtomicForm>(form), static_cast<fi_datatype>(type), static_cast<fi_op>(op)});
}

void apply(const AtomicOperation& operation, const AtomicMemory& memory, std::size_t count) {
  with_type(operation.type, [&](auto kind) { apply_to<decltype(kind)>(operation.op, memory, count); });
}

}  // namespace apenet::libfabric
