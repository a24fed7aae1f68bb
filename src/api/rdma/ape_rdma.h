/* ape_rdma.h: remote direct memory access with APENet's cards (APELink, APENet+), for programs.
 *
 * A process opens its port of the card, publishes buffers, and posts descriptors: sends into the receive
 * queue of another port, puts into a published buffer, gets from one. The card reports what has ended by
 * events: TX_DONE, the memory of a descriptor may be used again; RX_DONE, a message or an announced put has
 * arrived; GET_DONE; DELIVERED, a put is in the memory of its target.
 *
 * Sources: R. Ammendola et al., hep-lat/0409071 and PoS(LAT2005)100 (ports, queues, published buffers,
 * scatter/gather); the poster of APENet+ V5, CHEP 2016 (virtual addresses, TX_DONE and RX_DONE, GPU memory).
 * No header of the original driver is published: names and argument lists are this project's.
 *
 * Functions return APE_RDMA_OK or one of the errors, see ape_rdma_strerror(). Several threads may call them.
 * Only `apenet run` on a machine with such a card offers the network. */
#ifndef APENET_APE_RDMA_H
#define APENET_APE_RDMA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct ape_rdma_port ape_rdma_port;

typedef enum ape_rdma_status {
  APE_RDMA_OK = 0,
  APE_RDMA_NOT_YET,        /* no event; not an error */
  APE_RDMA_NO_NETWORK,     /* not under `apenet run`, or the machine's card is neither APELink nor APENet+ */
  APE_RDMA_ENDED,          /* the process has left the simulation (MPI_Finalize) */
  APE_RDMA_BAD_PORT,       /* the card has no such port */
  APE_RDMA_PORT_TAKEN,     /* a port that is not this process's, or is open already (by GASNet) */
  APE_RDMA_NOT_OPEN,       /* NULL or a closed port */
  APE_RDMA_BAD_TARGET,     /* no process has that port of that node */
  APE_RDMA_BAD_QUEUE,      /* not APE_RDMA_ANY_QUEUE and not below ape_rdma_queues() */
  APE_RDMA_BAD_CHANNEL,    /* APE_RDMA_CHANNEL() of one that is not below ape_rdma_channels() */
  APE_RDMA_BAD_SIZE,       /* above what the operation can carry, or no segment */
  APE_RDMA_BAD_ADDRESS,    /* NULL for memory that is not empty */
  APE_RDMA_BAD_FLAGS,      /* not flags of this call */
  APE_RDMA_NOT_REGISTERED, /* local memory that has not been registered */
  APE_RDMA_BAD_BUFFER,     /* unknown buffer; as an event's status: at the target */
  APE_RDMA_OUT_OF_BOUNDS,  /* as an event's status: beyond the published buffer; nothing was moved */
  APE_RDMA_NO_GPU_ACCESS,  /* the card does not reach a GPU's memory, and no process copies for REMOTE_GPU */
  APE_RDMA_TRUNCATED,      /* a received message is longer than the memory for it */
  APE_RDMA_TABLE_FULL,     /* too many buffers or registrations */
  APE_RDMA_NO_MEMORY
} ape_rdma_status;

enum { APE_RDMA_ANY_PORT = -1, APE_RDMA_ANY_QUEUE = -1 };
/* For the argument `queue` of a post: a queue of this virtual channel, chosen by the target. */
#define APE_RDMA_CHANNEL(channel) (-2 - (channel))

/* A port of a card in the network. */
typedef struct ape_rdma_address {
  int node;
  int port;
} ape_rdma_address;

/* Opens the process's port of the card: the processes of a node have ports 0, 1, ... in the order of their
 * ranks. Virtual time begins for the process, unless it has begun. */
ape_rdma_status ape_rdma_open(int port, ape_rdma_port** out);
/* Waits until all posts have been carried out or refused. Registrations and buffers end. */
ape_rdma_status ape_rdma_close(ape_rdma_port* port);

ape_rdma_status ape_rdma_own_address(ape_rdma_port* port, ape_rdma_address* address);
ape_rdma_status ape_rdma_address_of_rank(ape_rdma_port* port, int rank, ape_rdma_address* address);
ape_rdma_status ape_rdma_rank(ape_rdma_port* port, int* rank, int* size);
/* Hardware queues: descriptors of one queue to one target take effect in the order of their posts. */
ape_rdma_status ape_rdma_queues(ape_rdma_port* port, int* queues);
/* The virtual channels of a link that a post can choose. Packets of different channels do not wait for each
 * other in the network. Queue q uses channel q modulo this number. */
ape_rdma_status ape_rdma_channels(ape_rdma_port* port, int* channels);
/* The longest message of ape_rdma_post_send(). */
ape_rdma_status ape_rdma_max_send_bytes(ape_rdma_port* port, size_t* bytes);

/* Pins memory, so that descriptors may name it: the driver's part, charged as publish_us of the machine. */
ape_rdma_status ape_rdma_register(ape_rdma_port* port, void* memory, size_t bytes);
/* Buffers in this memory end, too. */
ape_rdma_status ape_rdma_unregister(ape_rdma_port* port, void* memory);

/* Opens registered memory to puts and gets of others. *buffer: of APELink an entry of the card's table,
 * counted from 1; of APENet+ the virtual address, at which one buffer may begin. The program tells others,
 * for example by ape_rdma_post_send(). */
typedef uint64_t ape_rdma_buffer;
ape_rdma_status ape_rdma_publish(ape_rdma_port* port, void* memory, size_t bytes, ape_rdma_buffer* buffer);
ape_rdma_status ape_rdma_unpublish(ape_rdma_port* port, ape_rdma_buffer buffer);

/* An entry of a gather or scatter list, in registered memory of the host or the GPU. If the card does not
 * reach the GPU (host.gpu_* of the machine), the library copies through host memory: before the post, or when
 * the program takes RX_DONE or GET_DONE. */
typedef struct ape_rdma_segment {
  void* memory;
  size_t bytes;
} ape_rdma_segment;

enum {
  APE_RDMA_SIGNAL = 1,    /* send, put: report TX_DONE */
  APE_RDMA_NOTIFY = 2,    /* put: report RX_DONE at the target */
  APE_RDMA_DELIVERED = 4, /* put: report DELIVERED here */
  /* put: the published buffer lies in the memory of the target's GPU. If the card does not reach that, the
   * put must be one descriptor and NOTIFY, because the target's library copies when RX_DONE is taken. */
  APE_RDMA_REMOTE_GPU = 8
};

/* Each entry of a list is a descriptor of its own to the card, as are parts of entries that are longer than a
 * descriptor can name. `cookie` comes back in the events of the post. A put that its target refuses is
 * reported by an event REFUSED, unless DELIVERED reports it. */
ape_rdma_status ape_rdma_post_send(ape_rdma_port* port, ape_rdma_address target, int queue,
                                   const ape_rdma_segment* segments, int count, unsigned flags,
                                   uint64_t cookie);
ape_rdma_status ape_rdma_post_put(ape_rdma_port* port, ape_rdma_address target, int queue,
                                  const ape_rdma_segment* segments, int count, ape_rdma_buffer buffer,
                                  size_t offset, unsigned flags, uint64_t cookie);
/* Reports GET_DONE. */
ape_rdma_status ape_rdma_post_get(ape_rdma_port* port, ape_rdma_address target, int queue,
                                  const ape_rdma_segment* segments, int count, ape_rdma_buffer buffer,
                                  size_t offset, uint64_t cookie);

typedef enum ape_rdma_kind {
  APE_RDMA_TX_DONE = 1,
  APE_RDMA_RX_DONE,
  APE_RDMA_GET_DONE,
  APE_RDMA_PUT_DELIVERED,
  APE_RDMA_REFUSED
} ape_rdma_kind;

typedef struct ape_rdma_event {
  ape_rdma_kind kind;
  ape_rdma_status status;  /* APE_RDMA_OK, APE_RDMA_BAD_BUFFER or APE_RDMA_OUT_OF_BOUNDS */
  uint64_t cookie;         /* cookie of the post; RX_DONE of a put: that of the sender */
  ape_rdma_address source; /* RX_DONE: the sender */
  /* RX_DONE of a message: 0. Of a put: the buffer; of APENet+ the address at which its last descriptor
   * begins. */
  ape_rdma_buffer buffer;
  size_t bytes; /* RX_DONE: of the message, or of the put's last descriptor */
} ape_rdma_event;

/* Store the next event. The calls wait for it without a limit, for at most this virtual time, or not at all.
 * Without an event they return NOT_YET. */
ape_rdma_status ape_rdma_wait(ape_rdma_port* port, ape_rdma_event* event);
ape_rdma_status ape_rdma_wait_for(ape_rdma_port* port, double timeout_us, ape_rdma_event* event);
ape_rdma_status ape_rdma_poll(ape_rdma_port* port, ape_rdma_event* event);
/* A descriptor for select(), poll() and epoll: readable while there is an event. Once a port has it, these
 * calls wait for its events in virtual time, and for no other file. The port owns it. */
ape_rdma_status ape_rdma_descriptor(ape_rdma_port* port, int* descriptor);

/* Copies the message of the last RX_DONE that the program has taken (of a send), and charges a copy. The
 * library keeps the message until this call, or until the program takes the next event. */
ape_rdma_status ape_rdma_read_message(ape_rdma_port* port, void* memory, size_t bytes);

/* Virtual time since it began. Costs one read of the clock. */
ape_rdma_status ape_rdma_time_us(ape_rdma_port* port, double* time_us);

/* Never NULL; static. */
const char* ape_rdma_strerror(ape_rdma_status status);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
