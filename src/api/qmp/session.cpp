#include "api/qmp/session.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <set>

#include "api/qmp/collectives.hpp"
#include "api/qmp/layout.hpp"

namespace apenet::qmp {
namespace {

constexpr std::string_view prefix = "-qmp-";
constexpr int most_contexts = (1 << 30) / channels;

bool is_whole(const char* word, int& value) {
  const char* const end = word + std::strlen(word);
  const auto [stop, error] = std::from_chars(word, end, value);
  return error == std::errc() && stop == end && stop != word;
}

std::string listed(std::span<const int> values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : "x") + std::to_string(value);
  return text;
}

std::vector<int> identity(std::size_t count) {
  std::vector<int> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<int>(i);
  return values;
}

struct Torus {
  std::vector<int> extents;
  std::vector<int> place_of_rank;
};

Torus torus_of_apelib(int ranks) {
  int dimensions = 0;
  std::array<int, APE_MAX_DIMS> extents{};
  check(ape_dims(&dimensions, extents.data()));
  Torus torus{{extents.begin(), extents.begin() + dimensions}, {}};
  const Grid grid{torus.extents, identity(torus.extents.size())};
  for (int rank = 0; rank < ranks; ++rank) {
    std::array<int, APE_MAX_DIMS> at{};
    check(ape_coords(rank, at.data()));
    torus.place_of_rank.push_back(grid.place(std::span(at).first(torus.extents.size())));
  }
  return torus;
}

// The lattice has at least as many axes as the grid, once trailing extents of 1 are gone.
std::optional<std::vector<int>> fitted(std::span<const int> grid, std::span<const int> lattice) {
  std::vector<int> extents(grid.begin(), grid.end());
  while (extents.size() > lattice.size() && extents.back() == 1) extents.pop_back();
  if (extents.size() > lattice.size()) return std::nullopt;
  extents.resize(lattice.size(), 1);
  if (!divides(extents, lattice)) return std::nullopt;
  return extents;
}

}  // namespace

QMP_status_t status_of(int ape_code) {
  switch (ape_code) {
    case APE_OK:
      return QMP_SUCCESS;
    case APE_ERR_STATE:
    case APE_ERR_FINALIZED:
      return QMP_INITSVC_ERR;
    case APE_ERR_ENVIRONMENT:
      return QMP_RTENV_ERR;
    case APE_ERR_ARGUMENT:
      return QMP_INVALID_ARG;
    case APE_ERR_RANK:
      return QMP_NODE_OUTRANGE;
    case APE_ERR_OVERSIZE:
      return QMP_MEMSIZE_TOOBIG;
    case APE_ERR_TRUNCATED:
      return QMP_MEMSIZE_ERR;
    case APE_ERR_BUSY:
      return QMP_INVALID_OP;
    case APE_ERR_MEMORY:
      return QMP_NOMEM_ERR;
    default:
      return QMP_ERROR;
  }
}

void check(int ape_code) {
  if (ape_code != APE_OK) throw Failure(status_of(ape_code), ape_last_error());
}

Options options_of(int* argc, char*** argv) {
  Options options;
  if (argc == nullptr || argv == nullptr) return options;
  char** words = *argv;
  int kept = 0;
  for (int i = 0; i < *argc; ++i) {
    if (!std::string_view(words[i]).starts_with(prefix)) {
      words[kept++] = words[i];
      continue;
    }
    const std::string option = words[i];
    std::vector<int> numbers;
    for (int number = 0; i + 1 < *argc && is_whole(words[i + 1], number); ++i) numbers.push_back(number);
    const bool is_geometry = option == "-qmp-geom";
    if (is_geometry && numbers.empty() && i + 1 < *argc && std::string_view(words[i + 1]) == "native") {
      ++i;
      continue;
    }
    require(is_geometry || option == "-qmp-logic-map", QMP_NOTSUPPORTED,
            option + ": expected -qmp-geom or -qmp-logic-map");
    require(!numbers.empty(), QMP_INVALID_ARG, option + ": expected numbers");
    (is_geometry ? options.geometry : options.logic_map) = numbers;
  }
  *argc = kept;
  words[kept] = nullptr;
  return options;
}

Job::Job(Options chosen) : options(std::move(chosen)) {
  int rank = 0;
  int size = 0;
  check(ape_rank(&rank));
  check(ape_size(&size));
  Torus torus = torus_of_apelib(size);
  geometry = options.geometry.empty() ? torus.extents : options.geometry;
  require(places_of(geometry) == size, QMP_INVALID_TOPOLOGY,
          "-qmp-geom " + listed(geometry) + ": expected " + std::to_string(size) + " nodes");
  const Grid grid{geometry, identity(geometry.size())};
  coordinates = grid.coordinates(torus.place_of_rank[static_cast<std::size_t>(rank)]);
  whole = communicators.add(std::make_unique<Communicator>(0, identity(static_cast<std::size_t>(size)), rank,
                                                           std::move(torus.place_of_rank)));
  allocated = job = standard = whole;
}

std::unique_ptr<Communicator> Job::split(const Communicator& parent, int color, int key) {
  // Every node learns the colour, the key and the rank of every other one, and the contexts that they have
  // used.
  struct Member {
    int color, key, rank, last_context;
  };
  std::vector<Member> entries(static_cast<std::size_t>(parent.size()), Member{});
  entries[static_cast<std::size_t>(parent.node())] = {color, key, parent.rank_of(parent.node()),
                                                      last_context_};
  const std::size_t values = entries.size() * sizeof(Member) / sizeof(int);
  reduce(parent, std::as_writable_bytes(std::span(entries)), [values](std::byte* low, std::byte* high) {
    for (std::size_t i = 0; i < values; ++i) {
      int mine = 0;
      int theirs = 0;
      std::memcpy(&mine, low + i * sizeof(int), sizeof(int));
      std::memcpy(&theirs, high + i * sizeof(int), sizeof(int));
      mine |= theirs;  // one of the two is 0
      std::memcpy(low + i * sizeof(int), &mine, sizeof(int));
    }
  });
  std::set<int> colors;
  std::vector<Member> members;
  for (const Member& entry : entries) {
    if (entry.color >= 0) colors.insert(entry.color);
    if (entry.color == color) members.push_back(entry);
    last_context_ = std::max(last_context_, entry.last_context);
  }
  ++last_context_;
  require(last_context_ < most_contexts, QMP_NOTSUPPORTED, "more splits than tags");
  if (color < 0) return nullptr;
  std::stable_sort(members.begin(), members.end(),
                   [](const Member& a, const Member& b) { return a.key < b.key; });
  std::vector<int> ranks;
  int own_node = 0;
  for (const Member& member : members) {
    if (member.rank == parent.rank_of(parent.node())) own_node = static_cast<int>(ranks.size());
    ranks.push_back(member.rank);
  }
  std::vector<int> places = identity(ranks.size());
  auto made = std::make_unique<Communicator>(last_context_, std::move(ranks), own_node, std::move(places));
  made->colors = static_cast<int>(colors.size());
  made->color = color;
  made->key = key;
  return made;
}

void Job::declare(Communicator& comm, std::span<const int> extents, std::span<const int> map) {
  require(extents.size() <= most_axes, QMP_INVALID_ARG,
          std::to_string(extents.size()) + " dimensions: expected at most " + std::to_string(most_axes));
  require(places_of(extents) == comm.size(), QMP_INVALID_ARG,
          "topology " + listed(extents) + ": expected " + std::to_string(comm.size()) + " nodes");
  Grid grid{{extents.begin(), extents.end()}, identity(extents.size())};
  if (!map.empty()) {
    require(std::is_permutation(map.begin(), map.end(), grid.order.begin(), grid.order.end()),
            QMP_INVALID_ARG, "map " + listed(map) + ": expected each axis once");
    grid.order.assign(map.begin(), map.end());
  }
  comm.declare(std::move(grid));
}

void Job::lay_out(Communicator& comm, std::span<const int> lattice) {
  require(places_of(lattice).has_value(), QMP_INVALID_ARG,
          "lattice " + listed(lattice) + ": expected extents above 0");
  if (comm.grid() == nullptr) declare(comm, chosen_grid(comm, lattice), options.logic_map);
  const auto grid = fitted(comm.grid()->extents, lattice);
  require(grid.has_value(), QMP_INVALID_TOPOLOGY,
          "lattice " + listed(lattice) + " on nodes " + listed(comm.grid()->extents) + ": does not divide");
  subgrid.assign(lattice.begin(), lattice.end());
  for (std::size_t axis = 0; axis < subgrid.size(); ++axis) subgrid[axis] /= (*grid)[axis];
}

// The geometry where it divides the lattice: then logical neighbours are neighbours on the torus.
std::vector<int> Job::chosen_grid(const Communicator& comm, std::span<const int> lattice) const {
  auto grid = comm.size() == whole->size() ? fitted(geometry, lattice) : std::nullopt;
  if (!grid && options.geometry.empty()) grid = smallest_surface(lattice, comm.size());
  require(grid.has_value(), QMP_INVALID_TOPOLOGY,
          "lattice " + listed(lattice) + " on " + std::to_string(comm.size()) + " nodes: does not divide");
  return *grid;
}

Session& Session::instance() {
  static auto& session = *new Session;
  return session;
}

Job& Session::job() {
  require(is_open(), QMP_NOT_INITED, "not between QMP_init_msg_passing and QMP_finalize_msg_passing");
  return *job_;
}

void Session::open(int* argc, char*** argv) {
  require(!is_open(), QMP_INVALID_OP, "message passing is already initialised");
  Options options = options_of(argc, argv);
  check(ape_init());
  try {
    job_ = std::make_unique<Job>(std::move(options));
  } catch (...) {
    ape_finalize();
    throw;
  }
}

void Session::close() {
  static_cast<void>(job());
  for (const auto& [pointer, handle] : job_->handles.all())
    require(!handle->is_started(), QMP_INVALID_OP, "a message is in progress");
  check(ape_finalize());
  job_.reset();
}

void Session::fail(std::string_view call, QMP_status_t code, std::string_view why) noexcept {
  last_error_ = code;
  if (verbosity <= 0) return;
  std::fprintf(stderr, "%.*s: %s: %.*s\n", static_cast<int>(call.size()), call.data(), QMP_error_string(code),
               static_cast<int>(why.size()), why.data());
}

int Session::print(std::FILE* stream, const char* kind, const char* format, std::va_list values) const {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  const int node = is_open() ? job_->whole->node() : 0;
  const int nodes = is_open() ? job_->whole->size() : 1;
  std::va_list again;
  va_copy(again, values);
  const int length = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (length < 0) return length;
  std::vector<char> text(static_cast<std::size_t>(length) + 1);
  std::vsnprintf(text.data(), text.size(), format, values);
  // One call, so that lines of several nodes do not mix.
  std::fprintf(stream, "QMP m%d,n%d@%s%s: %s\n", node, nodes, host.data(), kind, text.data());
  return length;
}

void end_process(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

double seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace apenet::qmp
