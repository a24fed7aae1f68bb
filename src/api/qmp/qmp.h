/* qmp.h: the public interface of QMP, version 2.5: the message passing of lattice QCD programs. Here it runs
 * on apelib, in virtual time under `apenet run` and in real time elsewhere.
 *
 * Names, types and constants are those of the published interface. docs/apis/qmp.md says which calls are
 * approximated or refused. Functions that return a status return QMP_SUCCESS or a code below; the others
 * return NULL, a negative number or 0, and QMP_get_error_number(NULL) has the code. C11 and C++17. */
#ifndef _QMP_H
#define _QMP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

typedef int QMP_bool_t;
#define QMP_TRUE 1
#define QMP_FALSE 0

typedef enum QMP_status {
  QMP_SUCCESS = 0,
  QMP_ERROR = 0x1001,
  QMP_NOT_INITED,
  QMP_RTENV_ERR,
  QMP_CPUINFO_ERR,
  QMP_NODEINFO_ERR,
  QMP_NOMEM_ERR,
  QMP_MEMSIZE_ERR,
  QMP_HOSTNAME_ERR,
  QMP_INITSVC_ERR,
  QMP_TOPOLOGY_EXISTS,
  QMP_CH_TIMEOUT,
  QMP_NOTSUPPORTED,
  QMP_SVC_BUSY,
  QMP_BAD_MESSAGE,
  QMP_INVALID_ARG,
  QMP_INVALID_TOPOLOGY,
  QMP_NONEIGHBOR_INFO,
  QMP_MEMSIZE_TOOBIG,
  QMP_BAD_MEMORY,
  QMP_NO_PORTS,
  QMP_NODE_OUTRANGE,
  QMP_CHDEF_ERR,
  QMP_MEMUSED_ERR,
  QMP_INVALID_OP,
  QMP_TIMEOUT,
  QMP_MAX_STATUS
} QMP_status_t;

typedef enum QMP_ictype { QMP_SWITCH = 0, QMP_GRID = 1, QMP_MESH = 1, QMP_FATTREE = 2 } QMP_ictype_t;

typedef enum QMP_thread_level {
  QMP_THREAD_SINGLE,
  QMP_THREAD_FUNNELED,
  QMP_THREAD_SERIALIZED,
  QMP_THREAD_MULTIPLE
} QMP_thread_level_t;

typedef enum QMP_clear_to_send {
  QMP_CTS_DISABLED = -1,
  QMP_CTS_NOT_READY = 0,
  QMP_CTS_READY = 1
} QMP_clear_to_send_t;

#define QMP_ALIGN_ANY 0
#define QMP_ALIGN_DEFAULT 64

#define QMP_MEM_NONCACHE 0x01
#define QMP_MEM_COMMS 0x02
#define QMP_MEM_FAST 0x04
#define QMP_MEM_DEFAULT (QMP_MEM_COMMS | QMP_MEM_FAST)

typedef struct QMP_mem_struct QMP_mem_t;
typedef struct QMP_msgmem_struct* QMP_msgmem_t;
typedef struct QMP_comm_struct* QMP_comm_t;
typedef struct QMP_msghandle_struct* QMP_msghandle_t;

/* inout = inout op in */
typedef void (*QMP_binary_func)(void* inout, void* in);

/* Calls of all nodes. The options -qmp-geom and -qmp-logic-map are taken out of the arguments. */
QMP_status_t QMP_init_msg_passing(int* argc, char*** argv, QMP_thread_level_t required,
                                  QMP_thread_level_t* provided);
QMP_bool_t QMP_is_initialized(void);
void QMP_finalize_msg_passing(void);
/* End the process; the launcher then ends the run. */
void QMP_abort(int error_code);
void QMP_abort_string(int error_code, char* message);

/* Communicators: the default one is what calls without a communicator use. */
QMP_comm_t QMP_comm_get_allocated(void);
QMP_status_t QMP_comm_set_allocated(QMP_comm_t comm);
QMP_comm_t QMP_comm_get_job(void);
QMP_status_t QMP_comm_set_job(QMP_comm_t comm);
QMP_comm_t QMP_comm_get_default(void);
QMP_status_t QMP_comm_set_default(QMP_comm_t comm);
/* Nodes of one colour, in the order of their keys. A negative colour: *newcomm becomes NULL. */
QMP_status_t QMP_comm_split(QMP_comm_t comm, int color, int key, QMP_comm_t* newcomm);
QMP_status_t QMP_comm_free(QMP_comm_t comm);
int QMP_comm_get_number_of_colors(QMP_comm_t comm);
int QMP_comm_get_color(QMP_comm_t comm);
int QMP_comm_get_key(QMP_comm_t comm);
/* QMP_NOTSUPPORTED: there is no communicator below. */
QMP_status_t QMP_get_hidden_comm(QMP_comm_t comm, void** hiddencomm);

/* The allocated machine: the torus of apelib, or what -qmp-geom says. */
QMP_ictype_t QMP_get_msg_passing_type(void);
int QMP_get_number_of_nodes(void);
int QMP_comm_get_number_of_nodes(QMP_comm_t comm);
int QMP_get_node_number(void);
int QMP_comm_get_node_number(QMP_comm_t comm);
int QMP_get_number_of_jobs(void);
int QMP_get_job_number(void);
int QMP_get_number_of_job_geometry_dimensions(void);
const int* QMP_get_job_geometry(void);
QMP_bool_t QMP_is_primary_node(void);
QMP_bool_t QMP_comm_is_primary_node(QMP_comm_t comm);
int QMP_get_allocated_number_of_dimensions(void);
const int* QMP_get_allocated_dimensions(void);
const int* QMP_get_allocated_coordinates(void);
int QMP_io_node(int node);
int QMP_master_io_node(void);

/* The logical topology: a periodic grid, declared once for a communicator by all of its nodes. map[i] is the
 * axis that runs i-th fastest. ndim 0 declares nothing, -1 the allocated geometry. Queries before the
 * declaration return 0, NULL or -1. */
QMP_status_t QMP_declare_logical_topology(const int dims[], int ndim);
QMP_status_t QMP_comm_declare_logical_topology(QMP_comm_t comm, const int dims[], int ndim);
QMP_status_t QMP_declare_logical_topology_map(const int dims[], int ndim, const int map[], int mapdim);
QMP_status_t QMP_comm_declare_logical_topology_map(QMP_comm_t comm, const int dims[], int ndim,
                                                   const int map[], int mapdim);
QMP_bool_t QMP_logical_topology_is_declared(void);
QMP_bool_t QMP_comm_logical_topology_is_declared(QMP_comm_t comm);
int QMP_get_logical_number_of_dimensions(void);
int QMP_comm_get_logical_number_of_dimensions(QMP_comm_t comm);
const int* QMP_get_logical_dimensions(void);
const int* QMP_comm_get_logical_dimensions(QMP_comm_t comm);
const int* QMP_get_logical_coordinates(void);
const int* QMP_comm_get_logical_coordinates(QMP_comm_t comm);
/* The caller frees the result with free(). */
int* QMP_get_logical_coordinates_from(int node);
int* QMP_comm_get_logical_coordinates_from(QMP_comm_t comm, int node);
void QMP_get_logical_coordinates_from2(int coords[], int node);
void QMP_comm_get_logical_coordinates_from2(QMP_comm_t comm, int coords[], int node);
int QMP_get_node_number_from(const int coordinates[]);
int QMP_comm_get_node_number_from(QMP_comm_t comm, const int coordinates[]);

/* The lattice: its division among the nodes. Declares the logical topology if there is none. */
QMP_status_t QMP_layout_grid(const int dimensions[], int ndims);
const int* QMP_get_subgrid_dimensions(void);
int QMP_get_number_of_subgrid_sites(void);

/* Memory for messages, and other uses. Any memory can be in a message. */
QMP_mem_t* QMP_allocate_memory(size_t nbytes);
QMP_mem_t* QMP_allocate_aligned_memory(size_t nbytes, size_t alignment, int flags);
void* QMP_get_memory_pointer(QMP_mem_t* mem);
void QMP_free_memory(QMP_mem_t* mem);

/* What a message consists of. Strides in bytes; indices and block lengths in elements. */
QMP_msgmem_t QMP_declare_msgmem(const void* mem, size_t nbytes);
QMP_msgmem_t QMP_declare_strided_msgmem(void* base, size_t blksize, int nblocks, ptrdiff_t stride);
QMP_msgmem_t QMP_declare_strided_array_msgmem(void* base[], size_t blksize[], int nblocks[],
                                              ptrdiff_t stride[], int num);
QMP_msgmem_t QMP_declare_indexed_msgmem(void* base, int blocklen[], int index[], int elemsize, int count);
void QMP_free_msgmem(QMP_msgmem_t m);

/* Messages that are declared once and started many times. dir is +1 or -1; the priority has no effect. */
QMP_msghandle_t QMP_declare_receive_relative(QMP_msgmem_t m, int axis, int dir, int priority);
QMP_msghandle_t QMP_comm_declare_receive_relative(QMP_comm_t comm, QMP_msgmem_t m, int axis, int dir,
                                                  int priority);
QMP_msghandle_t QMP_declare_send_relative(QMP_msgmem_t m, int axis, int dir, int priority);
QMP_msghandle_t QMP_comm_declare_send_relative(QMP_comm_t comm, QMP_msgmem_t m, int axis, int dir,
                                               int priority);
QMP_msghandle_t QMP_declare_send_to(QMP_msgmem_t m, int rem_node_rank, int priority);
QMP_msghandle_t QMP_comm_declare_send_to(QMP_comm_t comm, QMP_msgmem_t m, int rem_node_rank, int priority);
QMP_msghandle_t QMP_declare_receive_from(QMP_msgmem_t m, int rem_node_rank, int priority);
QMP_msghandle_t QMP_comm_declare_receive_from(QMP_comm_t comm, QMP_msgmem_t m, int rem_node_rank,
                                              int priority);
/* The memory of a message keeps its shape and moves to another base. */
QMP_status_t QMP_change_address(QMP_msghandle_t msg, void* addr);
QMP_status_t QMP_change_address_multiple(QMP_msghandle_t msg, void* addr[], int naddr);
/* Messages that are started and waited for as one, which owns them: freeing it frees them. */
QMP_msghandle_t QMP_declare_multiple(QMP_msghandle_t msgh[], int num);
QMP_msghandle_t QMP_declare_send_recv_pairs(QMP_msghandle_t msgh[], int num);
void QMP_free_msghandle(QMP_msghandle_t h);

QMP_status_t QMP_clear_to_send(QMP_msghandle_t mh, QMP_clear_to_send_t cts);
QMP_status_t QMP_start(QMP_msghandle_t h);
/* A message that has not been started is complete. */
QMP_status_t QMP_wait(QMP_msghandle_t h);
QMP_status_t QMP_wait_all(QMP_msghandle_t h[], int num);
QMP_bool_t QMP_is_complete(QMP_msghandle_t h);

/* Collective over the nodes of the communicator. All of them get the same bits. */
QMP_status_t QMP_barrier(void);
QMP_status_t QMP_comm_barrier(QMP_comm_t comm);
/* From node 0. */
QMP_status_t QMP_broadcast(void* buffer, size_t nbytes);
QMP_status_t QMP_comm_broadcast(QMP_comm_t comm, void* buffer, size_t nbytes);

QMP_status_t QMP_sum_int(int* value);
QMP_status_t QMP_comm_sum_int(QMP_comm_t comm, int* value);
QMP_status_t QMP_sum_uint64_t(uint64_t* value);
QMP_status_t QMP_comm_sum_uint64_t(QMP_comm_t comm, uint64_t* value);
QMP_status_t QMP_sum_float(float* value);
QMP_status_t QMP_comm_sum_float(QMP_comm_t comm, float* value);
QMP_status_t QMP_sum_double(double* value);
QMP_status_t QMP_comm_sum_double(QMP_comm_t comm, double* value);
QMP_status_t QMP_sum_long_double(long double* value);
QMP_status_t QMP_comm_sum_long_double(QMP_comm_t comm, long double* value);
/* Added as long double. */
QMP_status_t QMP_sum_double_extended(double* value);
QMP_status_t QMP_comm_sum_double_extended(QMP_comm_t comm, double* value);
QMP_status_t QMP_sum_float_array(float value[], int length);
QMP_status_t QMP_comm_sum_float_array(QMP_comm_t comm, float value[], int length);
QMP_status_t QMP_sum_double_array(double value[], int length);
QMP_status_t QMP_comm_sum_double_array(QMP_comm_t comm, double value[], int length);
QMP_status_t QMP_sum_long_double_array(long double value[], int length);
QMP_status_t QMP_comm_sum_long_double_array(QMP_comm_t comm, long double value[], int length);
QMP_status_t QMP_max_float(float* value);
QMP_status_t QMP_comm_max_float(QMP_comm_t comm, float* value);
QMP_status_t QMP_max_double(double* value);
QMP_status_t QMP_comm_max_double(QMP_comm_t comm, double* value);
QMP_status_t QMP_min_float(float* value);
QMP_status_t QMP_comm_min_float(QMP_comm_t comm, float* value);
QMP_status_t QMP_min_double(double* value);
QMP_status_t QMP_comm_min_double(QMP_comm_t comm, double* value);
QMP_status_t QMP_xor_ulong(unsigned long* value);
QMP_status_t QMP_comm_xor_ulong(QMP_comm_t comm, unsigned long* value);
/* count bytes from each node to each. */
QMP_status_t QMP_comm_alltoall(QMP_comm_t comm, char* recvbuffer, char* sendbuffer, int count);
QMP_status_t QMP_binary_reduction(void* lbuffer, size_t buflen, QMP_binary_func bfunc);
QMP_status_t QMP_comm_binary_reduction(QMP_comm_t comm, void* lbuffer, size_t buflen, QMP_binary_func bfunc);

const char* QMP_error_string(QMP_status_t code);
/* The error of a message, or, with NULL, of the last call that failed. */
QMP_status_t QMP_get_error_number(QMP_msghandle_t mh);
const char* QMP_get_error_string(QMP_msghandle_t mh);

/* Set a level and return the one before. Above 0, QMP_verbose() makes each failed call print its reason to
 * stderr, and QMP_profcontrol() makes the library count the time in communication. */
int QMP_verbose(int level);
int QMP_profcontrol(int level);
/* A line with the node's number and host before it. */
int QMP_printf(const char* format, ...);
int QMP_fprintf(FILE* stream, const char* format, ...);
int QMP_info(const char* format, ...);
int QMP_error(const char* format, ...);

/* In seconds. */
double QMP_time(void);
void QMP_reset_total_qmp_time(void);
double QMP_get_total_qmp_time(void);

const char* QMP_version_str(void);
/* 1000000 major + 1000 minor + patch */
int QMP_version_int(void);

/* In the published header, too: some programs use it. */
#define _QMP_UNUSED_ARGUMENT(x) ((void)(x))

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
