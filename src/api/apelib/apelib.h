/* apelib.h: the communication library of the APENet machines.
 *
 * Processes on a torus exchange messages with their neighbours, or with any other rank:
 *
 *   ape_init();
 *   ape_neighbor(APE_PLUS_X, &right);
 *   ape_neighbor(APE_MINUS_X, &left);
 *   ape_sendrecv(mine, bytes, right, theirs, bytes, left, 0, APE_AUTO);
 *   ape_sum(&action, 1, APE_DOUBLE);
 *   ape_finalize();
 *
 * Under `apenet run` the library takes virtual time on the simulated machine. Elsewhere the same binary
 * communicates in real time over libfabric; see docs/apis/apelib.md for its environment variables.
 *
 * Every function returns APE_OK or one of the codes of ape_error. A call that fails has no effect unless its
 * comment says otherwise. The functions may be called from several threads, one at a time: a second caller
 * waits for the first. C11 and C++17. */
#ifndef APELIB_H
#define APELIB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

typedef enum {
  APE_OK = 0,
  APE_ERR_STATE,       /* before ape_init(), or ape_init() twice */
  APE_ERR_FINALIZED,   /* after ape_finalize() */
  APE_ERR_ENVIRONMENT, /* the launcher, an environment variable or libfabric; see ape_last_error() */
  APE_ERR_ARGUMENT,    /* a null pointer, or a negative count */
  APE_ERR_RANK,        /* not a rank of this run */
  APE_ERR_DIRECTION,   /* not a direction of this torus */
  APE_ERR_COORDINATES, /* outside the torus */
  APE_ERR_TAG,         /* negative */
  APE_ERR_HOW,         /* not one of ape_how */
  APE_ERR_TYPE,        /* not one of ape_type, or complex numbers have no minimum */
  APE_ERR_OVERSIZE,    /* more bytes than the network carries in one message */
  APE_ERR_TRUNCATED,   /* the message was longer than the buffer, which holds its beginning */
  APE_ERR_REQUEST,     /* not a request in progress: never begun, or already waited for */
  APE_ERR_HALO,        /* not a halo: never created, or already freed */
  APE_ERR_BUSY,        /* a halo in progress, or ape_finalize() with requests in progress; new routes while
                          packets are in the network */
  APE_ERR_IDLE,        /* a halo that has not been started */
  APE_ERR_MEMORY,      /* no memory is left */
  APE_ERR_NETWORK,     /* the transport failed; see ape_last_error() */
  APE_ERR_ROUTE,       /* a route that does not lead to its end; see ape_last_error() */
  APE_ERR_DEADLOCK, /* packets of these routes could wait for each other; ape_last_error() names the cycle */
  APE_ERR_UNSUPPORTED /* this network has no routes that a program could read or set */
} ape_error;

/* What a code means; never NULL. */
const char* ape_strerror(int code);
/* Why the last call that failed in this thread did so; empty if none has. Valid until the next failure. */
const char* ape_last_error(void);

/* Collective: every rank calls both. ape_finalize() waits until all ranks have called it. */
int ape_init(void);
int ape_finalize(void);

int ape_rank(int* rank);
int ape_size(int* size);

/* The torus of ranks. It always closes in every dimension. */
enum { APE_MAX_DIMS = 6 };
typedef enum {
  APE_PLUS_X,
  APE_MINUS_X,
  APE_PLUS_Y,
  APE_MINUS_Y,
  APE_PLUS_Z,
  APE_MINUS_Z /* 2 d and 2 d + 1 for dimension d of a torus with more */
} ape_direction;

/* The number of dimensions, at least 3, and the extent of each. Further extents are 1. */
int ape_dims(int* count, int dims[APE_MAX_DIMS]);
/* Further coordinates are 0; ape_rank_at() ignores them. */
int ape_coords(int rank, int coords[APE_MAX_DIMS]);
int ape_rank_at(const int coords[APE_MAX_DIMS], int* rank);
/* In a dimension of extent 1 a rank is its own neighbour. */
int ape_neighbor(int direction, int* rank);

/* Messages of a pair of ranks with the same tag arrive in the order in which they were sent. */
typedef enum {
  APE_AUTO, /* a short message is copied; the network reads and writes the program's memory for a long one */
  APE_ZERO_COPY, /* the network reads and writes the program's memory */
  APE_COPIED     /* through a buffer of the library. After ape_isend() the program may reuse its memory */
} ape_how;

int ape_send(const void* data, size_t bytes, int to, int tag, int how);
int ape_recv(void* data, size_t bytes, int from, int tag, int how);
/* Sends and receives at the same time. `to` and `from` may differ. */
int ape_sendrecv(const void* out, size_t out_bytes, int to, void* in, size_t in_bytes, int from, int tag,
                 int how);

/* A transfer in progress. Its memory belongs to the library until it has ended. */
typedef uint64_t ape_request;
#define APE_NO_REQUEST UINT64_C(0)

int ape_isend(const void* data, size_t bytes, int to, int tag, int how, ape_request* request);
int ape_irecv(void* data, size_t bytes, int from, int tag, int how, ape_request* request);

/* A request that has ended becomes APE_NO_REQUEST, also where its transfer failed, and `received` (may be
 * NULL) becomes the bytes that came, 0 for a send. */
int ape_wait(ape_request* request, size_t* received);
int ape_test(ape_request* request, int* done, size_t* received);
/* Completes one transfer that has ended, and stores its index in `which`. Skips APE_NO_REQUEST. `which`
 * becomes -1 if all are APE_NO_REQUEST, and in ape_test_any() also if none has ended. */
int ape_wait_any(int count, ape_request requests[], int* which, size_t* received);
int ape_test_any(int count, ape_request requests[], int* which, size_t* received);
/* Skips APE_NO_REQUEST. ape_test_all() ends all requests, or none. Returns the first transfer's error. */
int ape_wait_all(int count, ape_request requests[]);
int ape_test_all(int count, ape_request requests[], int* done);

/* Collective: every rank calls with the same arguments. */
typedef enum { APE_DOUBLE, APE_FLOAT, APE_INT64, APE_DOUBLE_COMPLEX } ape_type;

int ape_barrier(void);
int ape_broadcast(void* data, size_t bytes, int root);
/* In place; every rank gets the same bits. Order: rank p + i is added to rank i, p the largest power of two
 * that is not above the number of ranks; then neighbours 1, 2, 4, ... p/2 apart are added, the lower first.
 */
int ape_sum(void* values, size_t count, int type);
int ape_min(void* values, size_t count, int type);
int ape_max(void* values, size_t count, int type);
/* `all` has room for `bytes` from each rank, in the order of ranks; ignored except at the root. */
int ape_gather(const void* mine, size_t bytes, void* all, int root);

/* A halo exchange that is declared once and repeated. A face is sent to the neighbour in its direction, and
 * the face of that neighbour is received. The neighbour must declare the opposite direction with as many
 * bytes. The data is never copied: between start and end the memory belongs to the library. */
typedef uint64_t ape_halo;
#define APE_NO_HALO UINT64_C(0)

int ape_halo_create(ape_halo* halo);
int ape_halo_face(ape_halo halo, int direction, const void* out, void* in, size_t bytes);
int ape_halo_start(ape_halo halo);
int ape_halo_wait(ape_halo halo);
int ape_halo_test(ape_halo halo, int* done);
int ape_halo_free(ape_halo* halo);

/* Routes. The routers of the torus have tables: one entry for each destination, a direction. A route is the
 * path of packets between the nodes of two ranks, given by the directions of its hops on the machine's torus
 * or mesh. (They are those of ape_neighbor() unless the torus of ranks has another shape.) Routes exist only
 * in virtual time. */

/* Stores the number of hops in `hops`, and the first `room` directions in `directions`. */
int ape_route_get(int from, int to, int room, int directions[], int* hops);
/* Declares a route, of any two ranks. It has no effect before ape_route_apply(). */
int ape_route_add(int from, int to, int hops, const int directions[]);
/* Collective. The routes that the ranks have declared since the last call replace all routes that were set
 * before, either all of them or none. Without any declared route, the machine's own routes come back. All
 * other entries of the routers stay the machine's own. A router has one entry for each destination: packets
 * to the end of a route follow it also if they enter it on the way. The call fails, with the same error on
 * every rank, if a route does not lead to its end, if two routes need different entries of a router, or if
 * packets could deadlock. Then the old routes stay, and the declared ones are forgotten. The network must be
 * empty: complete your messages first. */
int ape_route_apply(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
