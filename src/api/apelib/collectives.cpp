#include "api/apelib/collectives.hpp"

#include <complex>
#include <cstring>
#include <deque>
#include <vector>

#include "api/apelib/error.hpp"
#include "api/native/schedules.hpp"

namespace apenet::apelib {
namespace {

constexpr std::uint64_t collective_tag = network_tag(Purpose::collective, 0);

template <typename Value>
Value combined(const Value& low, const Value& high, Operator with) {
  if (with == Operator::sum) {
    // Integers wrap around.
    if constexpr (std::is_integral_v<Value>) {
      return static_cast<Value>(static_cast<std::uint64_t>(low) + static_cast<std::uint64_t>(high));
    } else {
      return low + high;
    }
  }
  if constexpr (!std::is_same_v<Value, std::complex<double>>)
    return with == Operator::minimum ? (high < low ? high : low) : (low < high ? high : low);
  return low;
}

// values = values of the lower rank, combined with those of the higher.
template <typename Value>
void fold(std::byte* values, const std::byte* theirs, std::size_t count, Operator with, bool mine_is_low) {
  for (std::size_t i = 0; i < count; ++i) {
    Value mine;
    Value other;
    std::memcpy(&mine, values + i * sizeof(Value), sizeof(Value));
    std::memcpy(&other, theirs + i * sizeof(Value), sizeof(Value));
    mine = mine_is_low ? combined(mine, other, with) : combined(other, mine, with);
    std::memcpy(values + i * sizeof(Value), &mine, sizeof(Value));
  }
}

void fold(ape_type type, std::byte* values, const std::byte* theirs, std::size_t count, Operator with,
          bool mine_is_low) {
  switch (type) {
    case APE_DOUBLE:
      return fold<double>(values, theirs, count, with, mine_is_low);
    case APE_FLOAT:
      return fold<float>(values, theirs, count, with, mine_is_low);
    case APE_INT64:
      return fold<std::int64_t>(values, theirs, count, with, mine_is_low);
    case APE_DOUBLE_COMPLEX:
      return fold<std::complex<double>>(values, theirs, count, with, mine_is_low);
  }
}

template <typename Fold>
struct Reduction {
  Library& library;
  std::string_view call;
  std::span<std::byte> mine;
  std::span<std::byte> theirs;
  Fold fold_in;

  void send(std::uint32_t rank) { library.send(call, mine, rank, collective_tag); }
  void receive_result(std::uint32_t rank) { library.receive(call, mine, rank, collective_tag); }
  void take(std::uint32_t rank) {
    library.receive(call, theirs, rank, collective_tag);
    fold_in(mine.data(), theirs.data(), true);
  }
  void trade(std::uint32_t rank) {
    library.exchange(call, mine, rank, theirs, rank, collective_tag);
    fold_in(mine.data(), theirs.data(), library.rank() < rank);
  }
};

}  // namespace

std::size_t bytes_of(ape_type type) {
  switch (type) {
    case APE_FLOAT:
      return sizeof(float);
    case APE_DOUBLE_COMPLEX:
      return sizeof(std::complex<double>);
    default:
      return sizeof(double);
  }
}

void barrier(Library& library, std::string_view call) {
  native::disseminate(library.rank(), library.size(), [&](std::uint32_t up, std::uint32_t down) {
    library.exchange(call, {}, up, {}, down, collective_tag);
  });
}

void broadcast(Library& library, std::span<std::byte> data, std::uint32_t root) {
  const std::uint32_t size = library.size();
  const std::uint32_t place = (library.rank() + size - root) % size;
  const auto rank_at = [&](std::uint32_t other) { return (other + root) % size; };
  const native::TreePlace tree = native::binomial_tree(place, size);
  if (place != 0) library.receive("ape_broadcast", data, rank_at(tree.parent), collective_tag);
  std::deque<Operation> sends;
  std::vector<Operation*> all;
  for (const std::uint32_t child : tree.children) {
    all.push_back(&sends.emplace_back());
    library.transport().send(*all.back(), data, rank_at(child), collective_tag, How::automatic);
  }
  library.wait_for("ape_broadcast", all);
}

void gather(Library& library, std::span<const std::byte> mine, std::byte* all, std::uint32_t root) {
  if (library.rank() != root) {
    library.send("ape_gather", mine, root, collective_tag);
    return;
  }
  const std::size_t bytes = mine.size();
  std::deque<Operation> receives;
  std::vector<Operation*> each;
  for (std::uint32_t rank = 0; rank < library.size(); ++rank) {
    const std::span<std::byte> part =
        bytes > 0 ? std::span(all + rank * bytes, bytes) : std::span<std::byte>();
    if (rank == root) {
      if (bytes > 0) std::memmove(part.data(), mine.data(), bytes);
      continue;
    }
    each.push_back(&receives.emplace_back());
    library.transport().receive(*each.back(), part, rank, collective_tag, How::automatic);
  }
  library.wait_for("ape_gather", each);
}

void combine(Library& library, std::string_view call, void* values, std::size_t count, ape_type type,
             Operator with) {
  if (type == APE_DOUBLE_COMPLEX && with != Operator::sum)
    throw Error(APE_ERR_TYPE, std::string(call) + ": complex numbers have no order");
  const std::size_t bytes = count * bytes_of(type);
  const auto theirs = std::make_unique_for_overwrite<std::byte[]>(bytes);
  const auto fold_in = [=](std::byte* mine, const std::byte* other, bool mine_is_low) {
    fold(type, mine, other, count, with, mine_is_low);
  };
  Reduction values_so_far{
      library, call, {static_cast<std::byte*>(values), bytes}, {theirs.get(), bytes}, fold_in};
  native::double_recursively(library.rank(), library.size(), values_so_far);
}

}  // namespace apenet::apelib
