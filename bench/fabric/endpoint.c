#include "endpoint.h"

#include <dlfcn.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { POLLS_BEFORE_YIELD = 200, PAGE_BYTES = 4096 };

static const uint32_t api_version = FI_VERSION(1, 9);  // supported by all library versions of recent years

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "fabric_bench: ");
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void* symbol(void* handle, const char* file, const char* name) {
  void* found = dlsym(handle, name);
  if (found == NULL) fail("%s: no %s in it", file, name);
  return found;
}

void load_library(struct library* library, const char* file) {
  void* handle = dlopen(file, RTLD_NOW);
  if (handle == NULL) fail("%s", dlerror());
  // ISO C does not allow conversion from object to function pointers; POSIX guarantees that this works.
  *(void**)&library->getinfo = symbol(handle, file, "fi_getinfo");
  *(void**)&library->freeinfo = symbol(handle, file, "fi_freeinfo");
  *(void**)&library->dupinfo = symbol(handle, file, "fi_dupinfo");
  *(void**)&library->fabric = symbol(handle, file, "fi_fabric");
  *(void**)&library->strerror = symbol(handle, file, "fi_strerror");
}

static void check(const struct endpoint* endpoint, int status, const char* what) {
  if (status != 0) fail("%s: %s", what, endpoint->library->strerror(-status));
}

struct fi_info* find_info(const struct library* library, const char* provider, const char* domain,
                          const char* address) {
  struct fi_info* hints = library->dupinfo(NULL);
  if (hints == NULL) fail("no memory");
  hints->caps = FI_TAGGED | FI_SEND | FI_RECV;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  if (provider != NULL) hints->fabric_attr->prov_name = strdup(provider);
  if (domain != NULL) hints->domain_attr->name = strdup(domain);
  struct fi_info* found = NULL;
  const int status =
      library->getinfo(api_version, address, NULL, address != NULL ? FI_SOURCE : 0, hints, &found);
  library->freeinfo(hints);
  if (status != 0) return NULL;
  if (domain == NULL) return found;
  // Layered providers accept any domain name.
  struct fi_info* named = found;
  while (named != NULL && strcmp(named->domain_attr->name, domain) != 0) named = named->next;
  if (named != NULL) named = library->dupinfo(named);
  library->freeinfo(found);
  return named;
}

void open_endpoint(struct endpoint* endpoint, const struct library* library, struct fi_info* info,
                   size_t max_bytes) {
  memset(endpoint, 0, sizeof *endpoint);
  endpoint->library = library;
  endpoint->info = info;
  if (info->ep_attr->max_msg_size < max_bytes) {
    fail("%s carries messages of at most %zu bytes: %zu asked for", info->fabric_attr->prov_name,
         info->ep_attr->max_msg_size, max_bytes);
  }
  check(endpoint, library->fabric(info->fabric_attr, &endpoint->fabric, NULL), "fi_fabric");
  check(endpoint, fi_domain(endpoint->fabric, info, &endpoint->domain, NULL), "fi_domain");
  struct fi_cq_attr queue = {
      .size = 4 * MAX_WINDOW, .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
  check(endpoint, fi_cq_open(endpoint->domain, &queue, &endpoint->sent_queue, NULL), "fi_cq_open");
  check(endpoint, fi_cq_open(endpoint->domain, &queue, &endpoint->received_queue, NULL), "fi_cq_open");
  struct fi_av_attr table = {.type = FI_AV_TABLE, .count = 2};
  if (info->domain_attr->av_type != FI_AV_UNSPEC) table.type = info->domain_attr->av_type;
  check(endpoint, fi_av_open(endpoint->domain, &table, &endpoint->addresses, NULL), "fi_av_open");
  check(endpoint, fi_endpoint(endpoint->domain, info, &endpoint->ep, NULL), "fi_endpoint");
  check(endpoint, fi_ep_bind(endpoint->ep, &endpoint->addresses->fid, 0), "fi_ep_bind");
  check(endpoint, fi_ep_bind(endpoint->ep, &endpoint->sent_queue->fid, FI_TRANSMIT), "fi_ep_bind");
  check(endpoint, fi_ep_bind(endpoint->ep, &endpoint->received_queue->fid, FI_RECV), "fi_ep_bind");
  check(endpoint, fi_enable(endpoint->ep), "fi_enable");
  endpoint->half_bytes = (max_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
  endpoint->buffer = aligned_alloc(PAGE_BYTES, 2 * endpoint->half_bytes);
  if (endpoint->buffer == NULL) fail("no memory for messages of %zu bytes", max_bytes);
  memset(endpoint->buffer, 1, 2 * endpoint->half_bytes);
  if ((info->domain_attr->mr_mode & FI_MR_LOCAL) != 0) {
    check(endpoint,
          fi_mr_reg(endpoint->domain, endpoint->buffer, 2 * endpoint->half_bytes, FI_SEND | FI_RECV, 0, 0, 0,
                    &endpoint->region, NULL),
          "fi_mr_reg");
  }
}

size_t endpoint_name(struct endpoint* endpoint, unsigned char name[MAX_NAME_BYTES]) {
  size_t bytes = MAX_NAME_BYTES;
  check(endpoint, fi_getname(&endpoint->ep->fid, name, &bytes), "fi_getname");
  return bytes;
}

void set_peer(struct endpoint* endpoint, const unsigned char* name) {
  if (fi_av_insert(endpoint->addresses, name, 1, &endpoint->peer, 0, NULL) != 1) {
    fail("the other side's address is not valid for %s", endpoint->info->fabric_attr->prov_name);
  }
}

static void* descriptor(const struct endpoint* endpoint) {
  return endpoint->region != NULL ? fi_mr_desc(endpoint->region) : NULL;
}

static uint64_t take(struct endpoint* endpoint, struct fid_cq* queue) {
  struct fi_cq_entry entries[16];
  const ssize_t taken = fi_cq_read(queue, entries, 16);
  if (taken >= 0) return (uint64_t)taken;
  if (taken == -FI_EAVAIL) {
    struct fi_cq_err_entry error = {0};
    if (fi_cq_readerr(queue, &error, 0) >= 0)
      fail("a message failed: %s", endpoint->library->strerror(error.err));
  }
  if (taken != -FI_EAGAIN) fail("fi_cq_read: %s", endpoint->library->strerror((int)-taken));
  return 0;
}

void progress(struct endpoint* endpoint) {
  endpoint->sends_done += take(endpoint, endpoint->sent_queue);
  endpoint->receives_done += take(endpoint, endpoint->received_queue);
}

void post_send(struct endpoint* endpoint, size_t bytes, uint64_t tag) {
  for (;;) {
    const ssize_t status =
        fi_tsend(endpoint->ep, endpoint->buffer, bytes, descriptor(endpoint), endpoint->peer, tag,
                 &endpoint->send_contexts[endpoint->sends_posted % MAX_WINDOW]);
    if (status == 0) break;
    if (status != -FI_EAGAIN) fail("fi_tsend: %s", endpoint->library->strerror((int)-status));
    progress(endpoint);
  }
  ++endpoint->sends_posted;
}

void post_receive(struct endpoint* endpoint, size_t bytes, uint64_t tag) {
  for (;;) {
    const ssize_t status =
        fi_trecv(endpoint->ep, endpoint->buffer + endpoint->half_bytes, bytes, descriptor(endpoint),
                 endpoint->peer, tag, 0, &endpoint->receive_contexts[endpoint->receives_posted % MAX_WINDOW]);
    if (status == 0) break;
    if (status != -FI_EAGAIN) fail("fi_trecv: %s", endpoint->library->strerror((int)-status));
    progress(endpoint);
  }
  ++endpoint->receives_posted;
}

// Spins like a communication library; yields now and then for the sake of a crowded host.
static void await(struct endpoint* endpoint, const uint64_t* done, uint64_t count) {
  double limit = 0;
  for (uint64_t polls = 1; *done < count; ++polls) {
    progress(endpoint);
    if (polls % POLLS_BEFORE_YIELD != 0) continue;
    sched_yield();
    if (limit == 0) limit = now_us() + WAIT_LIMIT_S * 1e6;
    if (now_us() > limit) fail("nothing from the other side for %d s", WAIT_LIMIT_S);
  }
}

void await_sends(struct endpoint* endpoint, uint64_t count) {
  await(endpoint, &endpoint->sends_done, count);
}

void await_receives(struct endpoint* endpoint, uint64_t count) {
  await(endpoint, &endpoint->receives_done, count);
}

void close_endpoint(struct endpoint* endpoint) {
  fi_close(&endpoint->ep->fid);
  if (endpoint->region != NULL) fi_close(&endpoint->region->fid);
  fi_close(&endpoint->addresses->fid);
  fi_close(&endpoint->received_queue->fid);
  fi_close(&endpoint->sent_queue->fid);
  fi_close(&endpoint->domain->fid);
  fi_close(&endpoint->fabric->fid);
  endpoint->library->freeinfo(endpoint->info);
  free(endpoint->buffer);
}
