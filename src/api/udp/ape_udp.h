/* ape_udp.h: UDP for programs, through the kernels of the simulated nodes.
 *
 * A program's own sockets (socket(), sendto()) are the host's, and take no virtual time. These calls are
 * sendto() and recvfrom() of the simulated node instead: they cost what the machine's [software.udp] says,
 * and the card carries the packets. It is what lies below GASNet's conduit `udp`.
 *
 * A process has one socket; addresses are ranks. Datagrams from one process to another arrive once and in
 * order, and the kernels' buffers have no limit. Functions return APE_UDP_OK or one of the errors;
 * ape_udp_strerror() explains them. Several threads may call them. Only `apenet run` on a machine with
 * [software.udp] offers the network. */
#ifndef APENET_APE_UDP_H
#define APENET_APE_UDP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum ape_udp_status {
  APE_UDP_OK = 0,
  APE_UDP_NOT_YET,     /* a poll: no datagram is there; not an error */
  APE_UDP_NO_NETWORK,  /* not under `apenet run`, or the machine has no [software.udp] */
  APE_UDP_ENDED,       /* the process has left the simulation (MPI_Finalize) */
  APE_UDP_IS_OPEN,     /* ape_udp_open() without ape_udp_close() before */
  APE_UDP_BAD_RANK,    /* no process has this rank */
  APE_UDP_BAD_SIZE,    /* above APE_UDP_MAX_BYTES */
  APE_UDP_BAD_ADDRESS, /* NULL, but for what may be NULL, and buffers without bytes */
  APE_UDP_TRUNCATED,   /* the datagram was longer than the buffer; its beginning is in the buffer, the rest is
                        * lost
                        */
  APE_UDP_NO_MEMORY
} ape_udp_status;

enum { APE_UDP_MAX_BYTES = 65507 }; /* largest datagram */

typedef struct ape_udp ape_udp;

/* Opens the process's socket. Its virtual time begins, unless it has begun. Needs no other process. */
ape_udp_status ape_udp_open(ape_udp** udp);
/* Datagrams that were not received are lost. `udp` is invalid afterwards. */
ape_udp_status ape_udp_close(ape_udp* udp);
/* The process's rank and the number of processes; either may be NULL. */
ape_udp_status ape_udp_rank(ape_udp* udp, int* rank, int* size);

/* sendto(): returns when the kernel has given the datagram to the card. */
ape_udp_status ape_udp_send(ape_udp* udp, int rank, const void* data, size_t bytes);
/* recvfrom(): takes the oldest datagram, and waits for one if there is none. Stores the length that
 * was sent, also if the datagram was truncated, and the sender's rank; either may be NULL. */
ape_udp_status ape_udp_receive(ape_udp* udp, void* buffer, size_t room, size_t* bytes, int* rank);
/* The same with MSG_DONTWAIT: APE_UDP_NOT_YET if there is none, which costs a system call. */
ape_udp_status ape_udp_poll(ape_udp* udp, void* buffer, size_t room, size_t* bytes, int* rank);

/* Never NULL; static. */
const char* ape_udp_strerror(ape_udp_status status);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
