/* The C interface of the TCP/IP stack of one simulated node (stack.rs), which is smoltcp.
 *
 * A stack has no clock, no threads and no files: the caller passes the time, the packets that arrive, and
 * takes those that it sends. Equal calls give equal results. Times are microseconds; addresses and ports are
 * in the order of the host; sockets are numbers that the stack gives out. No function blocks. */
#ifndef APENET_IP_STACK_H
#define APENET_IP_STACK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct apenet_ip_stack apenet_ip_stack;

/* RFC 9293, section 3.3.2, in this order. */
typedef enum {
  APENET_IP_CLOSED,
  APENET_IP_LISTEN,
  APENET_IP_SYN_SENT,
  APENET_IP_SYN_RECEIVED,
  APENET_IP_ESTABLISHED,
  APENET_IP_FIN_WAIT_1,
  APENET_IP_FIN_WAIT_2,
  APENET_IP_CLOSE_WAIT,
  APENET_IP_CLOSING,
  APENET_IP_LAST_ACK,
  APENET_IP_TIME_WAIT
} apenet_ip_state;

typedef struct {
  uint32_t address;
  uint16_t port;
} apenet_ip_endpoint;

typedef struct {
  uint32_t state;       /* apenet_ip_state */
  uint32_t may_receive; /* the peer may send more, or something is in the buffer */
  uint32_t may_send;    /* this side has not been closed */
  uint64_t received;    /* bytes in the receive buffer */
  uint64_t unsent;      /* bytes in the send buffer: neither sent nor acknowledged */
  uint64_t room;        /* free bytes of the send buffer */
  apenet_ip_endpoint local;
  apenet_ip_endpoint remote;
} apenet_ip_tcp;

typedef struct {
  uint32_t nagle;
  int64_t keep_alive_us; /* 0: none */
  int64_t ack_delay_us;  /* 0: at once */
} apenet_ip_tcp_options;

/* The address with the prefix, and 127.0.0.1/8. seed: of the initial sequence numbers. */
apenet_ip_stack* apenet_ip_stack_new(uint32_t address, uint8_t prefix, size_t mtu, uint64_t seed);
void apenet_ip_stack_free(apenet_ip_stack* stack);

/* A packet arrives; then as apenet_ip_poll(). */
void apenet_ip_receive(apenet_ip_stack* stack, int64_t now_us, const uint8_t* packet, size_t bytes);
/* Does what is due. Call after each change of a socket. */
void apenet_ip_poll(apenet_ip_stack* stack, int64_t now_us);
/* When apenet_ip_poll() has to be called next; -1: nothing is due. */
int64_t apenet_ip_next_us(apenet_ip_stack* stack, int64_t now_us);
/* The oldest packet that waits to be sent, of *bytes; NULL: none. Valid until apenet_ip_sent(). */
const uint8_t* apenet_ip_to_send(const apenet_ip_stack* stack, size_t* bytes);
void apenet_ip_sent(apenet_ip_stack* stack);

uint32_t apenet_ip_tcp_new(apenet_ip_stack* stack, size_t receive_bytes, size_t send_bytes);
/* local.address = 0: any. 0, or -1 if the socket is in use. */
int apenet_ip_tcp_listen(apenet_ip_stack* stack, uint32_t socket, apenet_ip_endpoint local);
int apenet_ip_tcp_connect(apenet_ip_stack* stack, uint32_t socket, apenet_ip_endpoint local,
                          apenet_ip_endpoint remote);
void apenet_ip_tcp_inspect(const apenet_ip_stack* stack, uint32_t socket, apenet_ip_tcp* tcp);
void apenet_ip_tcp_set(apenet_ip_stack* stack, uint32_t socket, const apenet_ip_tcp_options* options);
/* How many bytes were put into the buffer, or -1 if the socket cannot send. */
int64_t apenet_ip_tcp_send(apenet_ip_stack* stack, uint32_t socket, const uint8_t* data, size_t bytes);
/* How many were taken from it, or only copied; 0 if there are none, -1 if none will come. */
int64_t apenet_ip_tcp_receive(apenet_ip_stack* stack, uint32_t socket, uint8_t* data, size_t bytes,
                              int only_peeks);
/* Sends FIN behind what is in the buffer. */
void apenet_ip_tcp_close(apenet_ip_stack* stack, uint32_t socket);
/* Sends RST. */
void apenet_ip_tcp_abort(apenet_ip_stack* stack, uint32_t socket);

uint32_t apenet_ip_udp_new(apenet_ip_stack* stack, size_t receive_bytes, size_t send_bytes);
int apenet_ip_udp_bind(apenet_ip_stack* stack, uint32_t socket, apenet_ip_endpoint local);
/* 0, -1 if the buffer has no room now, -2 if the datagram is longer than the buffer. source.address = 0: the
 * stack's. */
int apenet_ip_udp_send(apenet_ip_stack* stack, uint32_t socket, apenet_ip_endpoint source,
                       apenet_ip_endpoint target, const uint8_t* data, size_t bytes);
/* The length of the oldest datagram, of which `data` gets as much as it has room for; -1: there is none.
 * target: the address that it was sent to. */
int64_t apenet_ip_udp_receive(apenet_ip_stack* stack, uint32_t socket, uint8_t* data, size_t bytes,
                              apenet_ip_endpoint* source, apenet_ip_endpoint* target);
int apenet_ip_udp_can_send(const apenet_ip_stack* stack, uint32_t socket);
/* -1: there is no datagram; else the length of the oldest. */
int64_t apenet_ip_udp_next_bytes(apenet_ip_stack* stack, uint32_t socket);

void apenet_ip_socket_free(apenet_ip_stack* stack, uint32_t socket);

#ifdef __cplusplus
}
#endif

#endif
