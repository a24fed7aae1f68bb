// The functions of qmp.h that concern the job, its communicators and its topology, and those that print.
#include "api/qmp/qmp.h"

#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <string>
#include <utility>

#include "api/qmp/failure.hpp"
#include "api/qmp/session.hpp"

namespace {

using namespace apenet::qmp;

constexpr int version_major = 2;
constexpr int version_minor = 5;
constexpr int version_patch = 4;

QMP_comm_t handle_of(Communicator* comm) {
  return reinterpret_cast<QMP_comm_t>(comm);
}

// A function of a communicator, which returns -1 for one that does not exist.
template <typename Read>
int read(std::string_view call, QMP_comm_t comm, Read read) {
  return value_call(call, -1, [&](Job& job) { return read(job.communicator(comm)); });
}

QMP_comm_t get(std::string_view call, Communicator* Job::*which) {
  return value_call(call, QMP_comm_t{nullptr}, [&](Job& job) { return handle_of(job.*which); });
}

QMP_status_t set(std::string_view call, Communicator* Job::*which, QMP_comm_t comm) {
  return status_call(call, [&](Job& job) { job.*which = &job.communicator(comm); });
}

int size_of(const std::vector<int>& values) {
  return static_cast<int>(values.size());
}

QMP_status_t declare(std::string_view call, QMP_comm_t comm, const int* extents, int count,
                     std::span<const int> map) {
  return status_call(call, [&](Job& job) {
    require(count >= -1 && (extents != nullptr || count <= 0), QMP_INVALID_ARG,
            std::to_string(count) + " dimensions: expected 0 or more, or -1");
    Communicator& of = job.communicator(comm);
    if (count == 0) return;
    const std::span<const int> wanted =
        count < 0 ? std::span<const int>(job.geometry) : std::span(extents, static_cast<std::size_t>(count));
    job.declare(of, wanted, map);
  });
}

}  // namespace

QMP_status_t QMP_init_msg_passing(int* argc, char*** argv, QMP_thread_level_t required,
                                  QMP_thread_level_t* provided) {
  QMP_status_t code = QMP_SUCCESS;
  guarded("QMP_init_msg_passing", 0, code, [&](Session& session) {
    require(required >= QMP_THREAD_SINGLE && required <= QMP_THREAD_MULTIPLE, QMP_INVALID_ARG,
            "thread level " + std::to_string(required));
    session.open(argc, argv);
    if (provided != nullptr) *provided = std::min(required, QMP_THREAD_SERIALIZED);
    return 0;
  });
  return code;
}

QMP_bool_t QMP_is_initialized(void) {
  return Session::instance().is_open() ? QMP_TRUE : QMP_FALSE;
}

void QMP_finalize_msg_passing(void) {
  QMP_status_t code = QMP_SUCCESS;
  guarded("QMP_finalize_msg_passing", 0, code, [](Session& session) {
    session.close();
    return 0;
  });
  // It cannot report a status, and the other nodes wait for this one.
  if (code == QMP_SUCCESS || code == QMP_NOT_INITED) return;
  QMP_error("QMP_finalize_msg_passing: %s", QMP_error_string(code));
  end_process(EXIT_FAILURE);
}

void QMP_abort(int error_code) {
  end_process(error_code);
}

void QMP_abort_string(int error_code, char* message) {
  if (message != nullptr) QMP_error("%s", message);
  end_process(error_code);
}

QMP_comm_t QMP_comm_get_allocated(void) {
  return get("QMP_comm_get_allocated", &Job::allocated);
}

QMP_status_t QMP_comm_set_allocated(QMP_comm_t comm) {
  return set("QMP_comm_set_allocated", &Job::allocated, comm);
}

QMP_comm_t QMP_comm_get_job(void) {
  return get("QMP_comm_get_job", &Job::job);
}

QMP_status_t QMP_comm_set_job(QMP_comm_t comm) {
  return set("QMP_comm_set_job", &Job::job, comm);
}

QMP_comm_t QMP_comm_get_default(void) {
  return get("QMP_comm_get_default", &Job::standard);
}

QMP_status_t QMP_comm_set_default(QMP_comm_t comm) {
  return set("QMP_comm_set_default", &Job::standard, comm);
}

QMP_status_t QMP_comm_split(QMP_comm_t comm, int color, int key, QMP_comm_t* newcomm) {
  return status_call("QMP_comm_split", [&](Job& job) {
    require(newcomm != nullptr, QMP_INVALID_ARG, "a null pointer");
    auto made = job.split(job.communicator(comm), color, key);
    *newcomm = made != nullptr ? handle_of(job.communicators.add(std::move(made))) : nullptr;
  });
}

QMP_status_t QMP_comm_free(QMP_comm_t comm) {
  return status_call("QMP_comm_free", [&](Job& job) {
    const Communicator* of = &job.communicator(comm);
    require(of != job.whole && of != job.allocated && of != job.job && of != job.standard, QMP_INVALID_OP,
            "the communicator is in use as the allocated, the job's or the default one");
    job.communicators.take(comm, QMP_INVALID_ARG);
  });
}

int QMP_comm_get_number_of_colors(QMP_comm_t comm) {
  return read("QMP_comm_get_number_of_colors", comm, [](const Communicator& of) { return of.colors; });
}

int QMP_comm_get_color(QMP_comm_t comm) {
  return read("QMP_comm_get_color", comm, [](const Communicator& of) { return of.color; });
}

int QMP_comm_get_key(QMP_comm_t comm) {
  return read("QMP_comm_get_key", comm, [](const Communicator& of) { return of.key; });
}

QMP_status_t QMP_get_hidden_comm(QMP_comm_t comm, void** /*hiddencomm*/) {
  return status_call("QMP_get_hidden_comm", [&](Job& job) {
    static_cast<void>(job.communicator(comm));
    throw Failure(QMP_NOTSUPPORTED, "there is no communicator below this library");
  });
}

QMP_ictype_t QMP_get_msg_passing_type(void) {
  return QMP_GRID;
}

int QMP_get_number_of_nodes(void) {
  return QMP_comm_get_number_of_nodes(QMP_comm_get_default());
}

int QMP_comm_get_number_of_nodes(QMP_comm_t comm) {
  return read("QMP_get_number_of_nodes", comm, [](const Communicator& of) { return of.size(); });
}

int QMP_get_node_number(void) {
  return QMP_comm_get_node_number(QMP_comm_get_default());
}

int QMP_comm_get_node_number(QMP_comm_t comm) {
  return read("QMP_get_node_number", comm, [](const Communicator& of) { return of.node(); });
}

int QMP_get_number_of_jobs(void) {
  return 1;
}

int QMP_get_job_number(void) {
  return 0;
}

int QMP_get_number_of_job_geometry_dimensions(void) {
  return QMP_get_allocated_number_of_dimensions();
}

const int* QMP_get_job_geometry(void) {
  return QMP_get_allocated_dimensions();
}

QMP_bool_t QMP_is_primary_node(void) {
  return QMP_comm_is_primary_node(QMP_comm_get_default());
}

QMP_bool_t QMP_comm_is_primary_node(QMP_comm_t comm) {
  return QMP_comm_get_node_number(comm) == 0 ? QMP_TRUE : QMP_FALSE;
}

int QMP_get_allocated_number_of_dimensions(void) {
  return value_call("QMP_get_allocated_number_of_dimensions", 0,
                    [](Job& job) { return size_of(job.geometry); });
}

const int* QMP_get_allocated_dimensions(void) {
  return value_call("QMP_get_allocated_dimensions", static_cast<const int*>(nullptr),
                    [](Job& job) { return job.geometry.data(); });
}

const int* QMP_get_allocated_coordinates(void) {
  return value_call("QMP_get_allocated_coordinates", static_cast<const int*>(nullptr),
                    [](Job& job) { return job.coordinates.data(); });
}

int QMP_io_node(int node) {
  return node;
}

int QMP_master_io_node(void) {
  return 0;
}

QMP_status_t QMP_declare_logical_topology(const int dims[], int ndim) {
  return QMP_comm_declare_logical_topology(QMP_comm_get_default(), dims, ndim);
}

QMP_status_t QMP_comm_declare_logical_topology(QMP_comm_t comm, const int dims[], int ndim) {
  const Session& session = Session::instance();
  const std::vector<int> map =
      session.is_open() ? Session::instance().job().options.logic_map : std::vector<int>();
  return declare("QMP_declare_logical_topology", comm, dims, ndim, map);
}

QMP_status_t QMP_declare_logical_topology_map(const int dims[], int ndim, const int map[], int mapdim) {
  return QMP_comm_declare_logical_topology_map(QMP_comm_get_default(), dims, ndim, map, mapdim);
}

QMP_status_t QMP_comm_declare_logical_topology_map(QMP_comm_t comm, const int dims[], int ndim,
                                                   const int map[], int mapdim) {
  const bool has_map = map != nullptr && mapdim > 0;
  return declare("QMP_declare_logical_topology_map", comm, dims, ndim,
                 has_map ? std::span(map, static_cast<std::size_t>(mapdim)) : std::span<const int>());
}

QMP_bool_t QMP_logical_topology_is_declared(void) {
  return QMP_comm_logical_topology_is_declared(QMP_comm_get_default());
}

QMP_bool_t QMP_comm_logical_topology_is_declared(QMP_comm_t comm) {
  return value_call("QMP_logical_topology_is_declared", QMP_FALSE, [&](Job& job) {
    return job.communicator(comm).grid() != nullptr ? QMP_TRUE : QMP_FALSE;
  });
}

int QMP_get_logical_number_of_dimensions(void) {
  return QMP_comm_get_logical_number_of_dimensions(QMP_comm_get_default());
}

int QMP_comm_get_logical_number_of_dimensions(QMP_comm_t comm) {
  return value_call("QMP_get_logical_number_of_dimensions", 0, [&](Job& job) {
    const Grid* grid = job.communicator(comm).grid();
    return grid != nullptr ? size_of(grid->extents) : 0;
  });
}

const int* QMP_get_logical_dimensions(void) {
  return QMP_comm_get_logical_dimensions(QMP_comm_get_default());
}

const int* QMP_comm_get_logical_dimensions(QMP_comm_t comm) {
  return value_call("QMP_get_logical_dimensions", static_cast<const int*>(nullptr), [&](Job& job) {
    const Grid* grid = job.communicator(comm).grid();
    return grid != nullptr ? grid->extents.data() : nullptr;
  });
}

const int* QMP_get_logical_coordinates(void) {
  return QMP_comm_get_logical_coordinates(QMP_comm_get_default());
}

const int* QMP_comm_get_logical_coordinates(QMP_comm_t comm) {
  return value_call("QMP_get_logical_coordinates", static_cast<const int*>(nullptr),
                    [&](Job& job) { return job.communicator(comm).coordinates().data(); });
}

int* QMP_get_logical_coordinates_from(int node) {
  return QMP_comm_get_logical_coordinates_from(QMP_comm_get_default(), node);
}

int* QMP_comm_get_logical_coordinates_from(QMP_comm_t comm, int node) {
  return value_call("QMP_get_logical_coordinates_from", static_cast<int*>(nullptr), [&](Job& job) {
    const std::vector<int> at = job.communicator(comm).coordinates_of(node);
    auto* const copy = static_cast<int*>(std::malloc(at.size() * sizeof(int)));
    if (copy == nullptr) throw std::bad_alloc();
    std::copy(at.begin(), at.end(), copy);
    return copy;
  });
}

void QMP_get_logical_coordinates_from2(int coords[], int node) {
  QMP_comm_get_logical_coordinates_from2(QMP_comm_get_default(), coords, node);
}

void QMP_comm_get_logical_coordinates_from2(QMP_comm_t comm, int coords[], int node) {
  status_call("QMP_get_logical_coordinates_from2", [&](Job& job) {
    require(coords != nullptr, QMP_INVALID_ARG, "a null pointer");
    const std::vector<int> at = job.communicator(comm).coordinates_of(node);
    std::copy(at.begin(), at.end(), coords);
  });
}

int QMP_get_node_number_from(const int coordinates[]) {
  return QMP_comm_get_node_number_from(QMP_comm_get_default(), coordinates);
}

int QMP_comm_get_node_number_from(QMP_comm_t comm, const int coordinates[]) {
  return read("QMP_get_node_number_from", comm, [&](const Communicator& of) {
    require(coordinates != nullptr, QMP_INVALID_ARG, "a null pointer");
    return of.node_at(std::span(coordinates, of.coordinates().size()));
  });
}

QMP_status_t QMP_layout_grid(const int dimensions[], int ndims) {
  return status_call("QMP_layout_grid", [&](Job& job) {
    require(ndims > 0 && dimensions != nullptr, QMP_INVALID_ARG,
            std::to_string(ndims) + " dimensions: expected 1 or more");
    job.lay_out(*job.standard, std::span(dimensions, static_cast<std::size_t>(ndims)));
  });
}

const int* QMP_get_subgrid_dimensions(void) {
  return value_call("QMP_get_subgrid_dimensions", static_cast<const int*>(nullptr), [](Job& job) {
    require(!job.subgrid.empty(), QMP_INVALID_OP, "before QMP_layout_grid");
    return job.subgrid.data();
  });
}

int QMP_get_number_of_subgrid_sites(void) {
  return value_call("QMP_get_number_of_subgrid_sites", 0, [](Job& job) {
    require(!job.subgrid.empty(), QMP_INVALID_OP, "before QMP_layout_grid");
    return places_of(job.subgrid).value_or(0);
  });
}

const char* QMP_error_string(QMP_status_t code) {
  switch (code) {
    case QMP_SUCCESS:
      return "no error";
    case QMP_ERROR:
      return "the message passing below failed";
    case QMP_NOT_INITED:
      return "message passing is not initialised";
    case QMP_RTENV_ERR:
      return "the environment of the run does not suit";
    case QMP_CPUINFO_ERR:
      return "no information about the CPU";
    case QMP_NODEINFO_ERR:
      return "no information about the node";
    case QMP_NOMEM_ERR:
      return "no memory is left";
    case QMP_MEMSIZE_ERR:
      return "the message is longer than the memory that receives it";
    case QMP_HOSTNAME_ERR:
      return "no host name";
    case QMP_INITSVC_ERR:
      return "the library below does not start";
    case QMP_TOPOLOGY_EXISTS:
      return "a logical topology is already declared";
    case QMP_CH_TIMEOUT:
      return "a connection takes too long";
    case QMP_NOTSUPPORTED:
      return "not supported";
    case QMP_SVC_BUSY:
      return "the library below is busy";
    case QMP_BAD_MESSAGE:
      return "not a message handle";
    case QMP_INVALID_ARG:
      return "an argument is not valid";
    case QMP_INVALID_TOPOLOGY:
      return "the logical topology is not declared, or does not suit";
    case QMP_NONEIGHBOR_INFO:
      return "no information about a neighbour";
    case QMP_MEMSIZE_TOOBIG:
      return "more memory than possible";
    case QMP_BAD_MEMORY:
      return "not memory for messages";
    case QMP_NO_PORTS:
      return "no port is left";
    case QMP_NODE_OUTRANGE:
      return "a node that does not exist";
    case QMP_CHDEF_ERR:
      return "a channel cannot be defined";
    case QMP_MEMUSED_ERR:
      return "the memory is in use";
    case QMP_INVALID_OP:
      return "not possible in this state";
    case QMP_TIMEOUT:
      return "it takes too long";
    default:
      return "not a code of this library";
  }
}

int QMP_verbose(int level) {
  return std::exchange(Session::instance().verbosity, level);
}

int QMP_profcontrol(int level) {
  return std::exchange(Session::instance().profiling, level);
}

int QMP_printf(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  const int length = Session::instance().print(stdout, "", format, values);
  va_end(values);
  return length;
}

int QMP_fprintf(FILE* stream, const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  const int length = Session::instance().print(stream, "", format, values);
  va_end(values);
  return length;
}

int QMP_info(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  const int length = Session::instance().print(stdout, " info", format, values);
  va_end(values);
  return length;
}

int QMP_error(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  const int length = Session::instance().print(stderr, " error", format, values);
  va_end(values);
  return length;
}

double QMP_time(void) {
  return seconds();
}

void QMP_reset_total_qmp_time(void) {
  Session::instance().seconds_inside = 0;
}

double QMP_get_total_qmp_time(void) {
  return Session::instance().seconds_inside;
}

const char* QMP_version_str(void) {
  static const std::string version = std::to_string(version_major) + "." + std::to_string(version_minor) +
                                     "." + std::to_string(version_patch);
  return version.c_str();
}

int QMP_version_int(void) {
  return (version_major * 1000 + version_minor) * 1000 + version_patch;
}
