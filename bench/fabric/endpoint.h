// One libfabric endpoint and its peer: reliable datagrams with tags, for any provider, with a library loaded
// at run time.
#ifndef APENET_BENCH_FABRIC_ENDPOINT_H
#define APENET_BENCH_FABRIC_ENDPOINT_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_NAME_BYTES = 512, MAX_WINDOW = 256, WAIT_LIMIT_S = 60 };

// The functions of libfabric that are not methods of an object. The library is loaded at run time, so that
// one build works with any installed version.
struct library {
  int (*getinfo)(uint32_t, const char*, const char*, uint64_t, const struct fi_info*, struct fi_info**);
  void (*freeinfo)(struct fi_info*);
  struct fi_info* (*dupinfo)(const struct fi_info*);
  int (*fabric)(struct fi_fabric_attr*, struct fid_fabric**, void*);
  const char* (*strerror)(int);
};

struct endpoint {
  const struct library* library;
  struct fi_info* info;
  struct fid_fabric* fabric;
  struct fid_domain* domain;
  struct fid_cq* sent_queue;
  struct fid_cq* received_queue;
  struct fid_av* addresses;
  struct fid_ep* ep;
  struct fid_mr* region;  // null unless the provider requires local registration
  fi_addr_t peer;
  char* buffer;  // sends from the first half, receives into the second
  size_t half_bytes;
  struct fi_context2 send_contexts[MAX_WINDOW];
  struct fi_context2 receive_contexts[MAX_WINDOW];
  uint64_t sends_posted, sends_done, receives_posted, receives_done;
};

// Every failure ends the program with status 1 and a message on standard error.
void fail(const char* format, ...) __attribute__((noreturn, format(printf, 1, 2)));

void load_library(struct library* library, const char* file);

// Returns the providers of this host that offer reliable datagrams and tags; null if there are none. If
// `address` is an address of this host, the endpoint is bound to it.
struct fi_info* find_info(const struct library* library, const char* provider, const char* domain,
                          const char* address);

// open_endpoint() prepares for messages of up to max_bytes. endpoint_name() returns the name that the peer
// needs.
void open_endpoint(struct endpoint* endpoint, const struct library* library, struct fi_info* info,
                   size_t max_bytes);
size_t endpoint_name(struct endpoint* endpoint, unsigned char name[MAX_NAME_BYTES]);
void set_peer(struct endpoint* endpoint, const unsigned char* name);

void post_send(struct endpoint* endpoint, size_t bytes, uint64_t tag);
void post_receive(struct endpoint* endpoint, size_t bytes, uint64_t tag);
// Waits until this many operations have completed since the endpoint was opened.
void await_sends(struct endpoint* endpoint, uint64_t count);
void await_receives(struct endpoint* endpoint, uint64_t count);
void progress(struct endpoint* endpoint);
void close_endpoint(struct endpoint* endpoint);

double now_us(void);

#endif
