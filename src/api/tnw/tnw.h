/* tnw.h: QPACE's torus network processor (TNW) for programs.
 *
 * Each node has six links, to its neighbours in +x, -x, +y, -y, +z and -z, and each link has virtual
 * channels. A message crosses one link on one channel. It needs both sides: tnw_put() moves it, and
 * tnw_credit() of the neighbour says where it goes. The card takes a message only when the credit on its
 * channel has been given, and everything behind it on that channel waits: the order of the operations
 * matters. Messages of a link and channel meet credits in the order in which both were posted.
 *
 * Names and meaning of tnw_put and tnw_credit: Boyanov, Comparison and evaluation of high-performance
 * computing network interconnects used for lattice QCD simulations, DESY Zeuthen, 2011 (slides). No header of
 * the original library is published: argument lists and all other functions are this project's.
 *
 * A process talks to the process with the same place on the neighbouring node (the first with the first, and
 * so on). Functions return TNW_OK or one of the errors; tnw_strerror() explains them. They may be called by
 * several threads. Only `apenet run` on a machine whose card is a TNW offers the network. */
#ifndef APENET_TNW_H
#define APENET_TNW_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum tnw_link {
  TNW_X_PLUS,
  TNW_X_MINUS,
  TNW_Y_PLUS,
  TNW_Y_MINUS,
  TNW_Z_PLUS,
  TNW_Z_MINUS,
  TNW_LINKS
} tnw_link;

typedef enum tnw_status {
  TNW_OK = 0,
  TNW_NOT_YET,      /* a poll: not finished; not an error */
  TNW_NO_NETWORK,   /* not under `apenet run`, or the machine's card is no TNW */
  TNW_ENDED,        /* the process has left the simulation (MPI_Finalize) */
  TNW_IS_OPEN,      /* tnw_open() without tnw_close() before */
  TNW_NOT_OPEN,     /* a call before tnw_open() or after tnw_close() */
  TNW_BAD_LINK,     /* none of the six links, or the network has no such dimension */
  TNW_NO_NEIGHBOUR, /* a mesh ends here, or no process has this place on the neighbouring node */
  TNW_BAD_CHANNEL,  /* not below tnw_channels() */
  TNW_BAD_SIZE,     /* above tnw_max_bytes() */
  TNW_BAD_ADDRESS,  /* NULL for a message that is not empty */
  TNW_NO_PUT,       /* a wait for a put that was not posted, or has been waited for */
  TNW_NO_CREDIT,    /* a wait for a message for which no credit was given */
  TNW_TRUNCATED,    /* the message was longer than the buffer of its credit; its beginning is in the buffer */
  TNW_NO_MEMORY
} tnw_status;

/* Opens the card of this node. The process's virtual time begins, unless it has begun. Needs no other
 * process. */
tnw_status tnw_open(void);
/* Waits until the process's puts have left. Credits without a message are lost. */
tnw_status tnw_close(void);

/* The process's rank and the number of processes. */
tnw_status tnw_rank(int* rank, int* size);
/* Coordinates of this node, and extents of the torus, x first. Extents of missing dimensions are 1. */
tnw_status tnw_coordinates(int coordinates[3], int extents[3]);
/* The rank at the other end of a link. */
tnw_status tnw_neighbour(tnw_link link, int* rank);
/* Virtual channels of each link (8 on QPACE), and the largest message (2048 bytes on QPACE). */
tnw_status tnw_channels(int* channels);
tnw_status tnw_max_bytes(size_t* bytes);

/* Sends a message. The buffer may be reused when a tnw_wait_put() has returned for it. */
tnw_status tnw_put(tnw_link link, int channel, const void* buffer, size_t bytes);
/* Waits until the oldest put on this link and channel that has not been waited for has left, or asks whether
 * it has (TNW_OK, TNW_NOT_YET). */
tnw_status tnw_wait_put(tnw_link link, int channel);
tnw_status tnw_poll_put(tnw_link link, int channel);

/* Says where the next message from this link and channel goes, and permits the card to take it. */
tnw_status tnw_credit(tnw_link link, int channel, void* buffer, size_t bytes);
/* Waits for the message of the oldest credit that has not been waited for, or asks whether it is there
 * (TNW_OK, TNW_NOT_YET). Its length is stored in *bytes unless `bytes` is NULL; for a truncated message
 * it is the length that was sent. */
tnw_status tnw_wait(tnw_link link, int channel, size_t* bytes);
tnw_status tnw_poll(tnw_link link, int channel, size_t* bytes);

/* Virtual time since it began, in microseconds. Costs one read of the clock. */
tnw_status tnw_time_us(double* time_us);

/* Never NULL; static. */
const char* tnw_strerror(tnw_status status);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
