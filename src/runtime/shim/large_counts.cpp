#include "runtime/shim/large_counts.hpp"

#include <cctype>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/ipc/client.hpp"

namespace apenet::shim {
namespace {

template <typename... Positions>
constexpr std::uint32_t bits(Positions... positions) {
  return ((1U << static_cast<unsigned>(positions)) | ... | 0U);
}

struct CountRow {
  std::string_view name;  // blocking, without MPI_
  CountArguments counts;
};

// Neighbourhood collectives with arrays are missing: their lengths follow from the topology.
constexpr CountRow count_rows[] = {
    {"Send", {.single = bits(1)}},
    {"Bsend", {.single = bits(1)}},
    {"Rsend", {.single = bits(1)}},
    {"Ssend", {.single = bits(1)}},
    {"Recv", {.single = bits(1)}},
    {"Mrecv", {.single = bits(1)}},
    {"Sendrecv", {.single = bits(1, 6)}},
    {"Sendrecv_replace", {.single = bits(1)}},
    {"Bcast", {.single = bits(1)}},
    {"Reduce", {.single = bits(2)}},
    {"Allreduce", {.single = bits(2)}},
    {"Scan", {.single = bits(2)}},
    {"Exscan", {.single = bits(2)}},
    {"Reduce_scatter_block", {.single = bits(2)}},
    {"Reduce_scatter", {.arrays = bits(2), .communicator = 5}},
    {"Gather", {.single = bits(1, 4)}},
    {"Scatter", {.single = bits(1, 4)}},
    {"Allgather", {.single = bits(1, 4)}},
    {"Alltoall", {.single = bits(1, 4)}},
    {"Neighbor_allgather", {.single = bits(1, 4)}},
    {"Neighbor_alltoall", {.single = bits(1, 4)}},
    {"Gatherv", {.single = bits(1), .arrays = bits(4, 5), .communicator = 8, .root = 7}},
    {"Scatterv", {.single = bits(5), .arrays = bits(1, 2), .communicator = 8, .root = 7}},
    {"Allgatherv", {.single = bits(1), .arrays = bits(4, 5), .communicator = 7}},
    {"Alltoallv", {.arrays = bits(1, 2, 5, 6), .communicator = 8}},
    {"Alltoallw", {.arrays = bits(1, 2, 5, 6), .communicator = 8}},
    {"Put", {.single = bits(1, 5)}},
    {"Get", {.single = bits(1, 5)}},
    {"Accumulate", {.single = bits(1, 5)}},
    {"Get_accumulate", {.single = bits(1, 4, 8)}},
    {"Win_create", {.single = bits(2)}},
    {"Win_allocate", {.single = bits(1)}},
    {"File_read_all", {.single = bits(2)}},
    {"File_read_at_all", {.single = bits(3)}},
    {"File_read_ordered", {.single = bits(2)}},
    {"File_read_all_begin", {.single = bits(2)}},
    {"File_read_at_all_begin", {.single = bits(3)}},
    {"File_read_ordered_begin", {.single = bits(2)}},
    {"File_write_all", {.single = bits(2)}},
    {"File_write_at_all", {.single = bits(3)}},
    {"File_write_ordered", {.single = bits(2)}},
    {"File_write_all_begin", {.single = bits(2)}},
    {"File_write_at_all_begin", {.single = bits(3)}},
    {"File_write_ordered_begin", {.single = bits(2)}},
    {"File_iread", {.single = bits(2)}},
    {"File_iread_all", {.single = bits(2)}},
    {"File_iread_shared", {.single = bits(2)}},
    {"File_iread_at", {.single = bits(3)}},
    {"File_iread_at_all", {.single = bits(3)}},
    {"File_iwrite", {.single = bits(2)}},
    {"File_iwrite_all", {.single = bits(2)}},
    {"File_iwrite_shared", {.single = bits(2)}},
    {"File_iwrite_at", {.single = bits(3)}},
    {"File_iwrite_at_all", {.single = bits(3)}},
};

const CountArguments* arguments_of(std::string_view name) {
  for (const CountRow& row : count_rows) {
    if (row.name == name) return &row.counts;
  }
  return nullptr;
}

// The arguments of PMPI_Isend, PMPI_Send_init or PMPI_Rput are those of Send and Put, and some more.
std::optional<CountArguments> find_arguments(std::string_view plain) {
  std::string name{plain.substr(std::string_view("PMPI_").size())};
  if (const CountArguments* found = arguments_of(name)) return *found;
  constexpr std::string_view persistent = "_init";
  if (name.ends_with(persistent)) {
    name.resize(name.size() - persistent.size());
  } else {
    name.erase(0, 1);
    name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  }
  const CountArguments* found = arguments_of(name);
  if (found == nullptr) return {};
  CountArguments counts = *found;
  counts.is_kept = true;
  return counts;
}

[[noreturn]] void refuse_count(Word count) {
  ipc::Client::refuse("a count of " + std::to_string(count) +
                      " in a call of MPI: this MPI library counts to " +
                      std::to_string(std::numeric_limits<int>::max()) +
                      ", since it lacks the functions that count in MPI_Count");
}

int as_int(Word count) {
  if (count < std::numeric_limits<int>::min() || count > std::numeric_limits<int>::max()) refuse_count(count);
  return static_cast<int>(count);
}

int ask(const char* function, Word communicator) {
  int answer = 0;
  call(profiling_symbol(function), communicator, &answer);
  return answer;
}

// How many counts the arrays hold; 0 if they have no meaning in this rank.
std::size_t length_of_arrays(const CountArguments& counts, const Word* arguments) {
  constexpr int root_of_intercommunicator = -4;  // MPI_ROOT of Open MPI
  const Word communicator = arguments[counts.communicator];
  const bool is_inter = ask("PMPI_Comm_test_inter", communicator) != 0;
  if (counts.root >= 0) {
    const int root = static_cast<std::int32_t>(arguments[counts.root]);
    const bool is_root =
        is_inter ? root == root_of_intercommunicator : root == ask("PMPI_Comm_rank", communicator);
    if (!is_root) return 0;
  }
  return static_cast<std::size_t>(ask(is_inter ? "PMPI_Comm_remote_size" : "PMPI_Comm_size", communicator));
}

// Keeps arrays that an operation in progress may still read, until the process ends.
void keep(std::vector<std::vector<int>> arrays) {
  static std::mutex mutex;
  static std::deque<std::vector<int>> kept;
  const std::lock_guard guard(mutex);
  for (std::vector<int>& array : arrays) kept.push_back(std::move(array));
}

}  // namespace

Original large_function(const char* large, const char* plain) {
  if (void* found = find_profiling_symbol(large)) return {.function = found};
  const std::optional<CountArguments> counts = find_arguments(plain);
  // Names the function that the program calls.
  if (!counts) return {.function = profiling_symbol(large)};
  return {.function = profiling_symbol(plain), .takes_ints = true, .counts = *counts};
}

std::vector<std::vector<int>> narrow(const CountArguments& counts, Word* arguments) {
  constexpr unsigned most_arguments = 13;
  for (unsigned i = 0; i < most_arguments; ++i) {
    if ((counts.single >> i & 1U) != 0) arguments[i] = as_int(arguments[i]);
  }
  std::vector<std::vector<int>> arrays;
  const std::size_t length = counts.arrays == 0 ? 0 : length_of_arrays(counts, arguments);
  for (unsigned i = 0; i < most_arguments; ++i) {
    if ((counts.arrays >> i & 1U) == 0 || arguments[i] == 0 || length == 0) continue;
    const auto* from =
        reinterpret_cast<const std::int64_t*>(arguments[i]);  // NOLINT(performance-no-int-to-ptr)
    std::vector<int>& to = arrays.emplace_back(length);
    for (std::size_t k = 0; k < length; ++k) to[k] = as_int(from[k]);
    arguments[i] = reinterpret_cast<Word>(to.data());
  }
  if (!counts.is_kept) return arrays;
  keep(std::move(arrays));
  return {};
}

}  // namespace apenet::shim
