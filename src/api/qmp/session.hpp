// Session: what QMP knows in this process, and the guard of every call of the program.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/qmp/communicator.hpp"
#include "api/qmp/failure.hpp"
#include "api/qmp/messages.hpp"

namespace apenet::qmp {

// Objects that the program holds pointers to.
template <typename Object>
class Table {
 public:
  explicit Table(const char* kind) : kind_(kind) {}

  Object* add(std::unique_ptr<Object> object) {
    Object* const added = object.get();
    objects_.emplace(added, std::move(object));
    return added;
  }
  // Both throw unless the pointer is of an object here.
  Object& find(const void* pointer, QMP_status_t code) const {
    const auto found = objects_.find(pointer);
    require(found != objects_.end(), code, std::string("not ") + kind_ + ", or already freed");
    return *found->second;
  }
  std::unique_ptr<Object> take(const void* pointer, QMP_status_t code) {
    static_cast<void>(find(pointer, code));
    return std::move(objects_.extract(pointer).mapped());
  }
  [[nodiscard]] const auto& all() const { return objects_; }

 private:
  const char* kind_;
  std::map<const void*, std::unique_ptr<Object>> objects_;
};

// Memory of QMP_allocate_memory.
struct Allocation {
  std::unique_ptr<std::byte[]> storage;
  void* aligned = nullptr;
};

// What the program's arguments ask for.
struct Options {
  std::vector<int> geometry;   // empty: the torus of apelib
  std::vector<int> logic_map;  // map of QMP_declare_logical_topology; empty: the first axis runs fastest
};

// Takes QMP's options out of the arguments; both may be null.
[[nodiscard]] Options options_of(int* argc, char*** argv);

// From QMP_init_msg_passing to QMP_finalize_msg_passing.
class Job {
 public:
  // ape_init() has succeeded.
  explicit Job(Options options);

  [[nodiscard]] Communicator& communicator(QMP_comm_t comm) const {
    return communicators.find(comm, QMP_INVALID_ARG);
  }
  // A communicator whose messages no other one of its nodes has. A call of all nodes of the parent; null for
  // a negative colour.
  [[nodiscard]] std::unique_ptr<Communicator> split(const Communicator& parent, int color, int key);
  // Declares it where there is none, and returns the lattice of a node.
  void lay_out(Communicator& comm, std::span<const int> lattice);
  void declare(Communicator& comm, std::span<const int> extents, std::span<const int> map);

  Table<Communicator> communicators{"a communicator"};
  Table<Memory> memories{"a message memory"};
  Table<Handle> handles{"a message handle"};
  Table<Allocation> allocations{"allocated memory"};

  Communicator* whole = nullptr;
  Communicator* allocated = nullptr;
  Communicator* job = nullptr;
  Communicator* standard = nullptr;

  Options options;
  std::vector<int> geometry;
  std::vector<int> coordinates;  // coordinates of this node in the geometry
  std::vector<int> subgrid;      // empty before QMP_layout_grid()

 private:
  [[nodiscard]] std::vector<int> chosen_grid(const Communicator& comm, std::span<const int> lattice) const;

  int last_context_ = 0;
};

class Session {
 public:
  static Session& instance();

  // Throws before QMP_init_msg_passing() and after QMP_finalize_msg_passing().
  [[nodiscard]] Job& job();
  [[nodiscard]] bool is_open() const { return job_ != nullptr; }
  void open(int* argc, char*** argv);
  void close();

  void fail(std::string_view call, QMP_status_t code, std::string_view why) noexcept;
  [[nodiscard]] QMP_status_t last_error() const { return last_error_; }
  // A line with the node and the host before it.
  int print(std::FILE* stream, const char* kind, const char* format, std::va_list values) const;

  int verbosity = 0;
  int profiling = 0;
  double seconds_inside = 0;

 private:
  std::unique_ptr<Job> job_;
  QMP_status_t last_error_ = QMP_SUCCESS;
};

[[noreturn]] void end_process(int code);
[[nodiscard]] double seconds();

// Counts the time of a call while the program profiles. Otherwise the clock, which costs time itself, is not
// read.
class Stopwatch {
 public:
  explicit Stopwatch(Session& session) : session_(session), is_on_(session.profiling > 0) {
    if (is_on_) since_ = seconds();
  }
  ~Stopwatch() {
    if (is_on_) session_.seconds_inside += seconds() - since_;
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  Session& session_;
  bool is_on_;
  double since_ = 0;
};

// Runs a function of the library: its result, or `otherwise` after an exception, whose code becomes `code`.
template <typename Result, typename Call>
Result guarded(std::string_view name, Result otherwise, QMP_status_t& code, Call call) noexcept {
  Session& session = Session::instance();
  std::string why;
  try {
    try {
      const Stopwatch stopwatch(session);
      code = QMP_SUCCESS;
      return call(session);
    } catch (const Failure& failure) {
      code = failure.code();
      why = failure.what();
    } catch (const std::bad_alloc&) {
      code = QMP_NOMEM_ERR;
      why = "no memory is left";
    } catch (const std::exception& error) {
      code = QMP_ERROR;
      why = error.what();
    }
  } catch (...) {
    code = QMP_NOMEM_ERR;
  }
  session.fail(name, code, why);
  return otherwise;
}

// A call that returns a status: call(Job&).
template <typename Call>
QMP_status_t status_call(std::string_view name, Call call) noexcept {
  QMP_status_t code = QMP_SUCCESS;
  guarded(name, 0, code, [&](Session& session) {
    call(session.job());
    return 0;
  });
  return code;
}

// A call that returns a value, `otherwise` if it fails: call(Job&).
template <typename Result, typename Call>
Result value_call(std::string_view name, Result otherwise, Call call) noexcept {
  QMP_status_t code = QMP_SUCCESS;
  return guarded(name, otherwise, code, [&](Session& session) -> Result { return call(session.job()); });
}

}  // namespace apenet::qmp
