// A rank of a libfabric program without MPI: an endpoint, and the addresses of the others, obtained from the
// process manager (PMI-1 over PMI_FD).
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { most_ranks = 16, name_bytes = 64 };

struct Fabric {
  int rank, size;
  struct fi_info* info;
  struct fid_fabric* fabric;
  struct fid_domain* domain;
  struct fid_av* av;
  struct fid_cq* cq;
  struct fid_ep* ep;
  fi_addr_t peers[most_ranks];
};

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "rank %s: %s\n", getenv("PMI_RANK"), what);
  exit(1);
}
#define EXPECT(condition) expect(condition, #condition)

static void ask(const char* question, char* answer, size_t room) {
  const int fd = atoi(getenv("PMI_FD"));
  EXPECT(write(fd, question, strlen(question)) == (ssize_t)strlen(question));
  size_t length = 0;
  while (length + 1 < room && read(fd, answer + length, 1) == 1 && answer[length] != '\n') ++length;
  answer[length] = '\0';
}

static void meet(void) {
  char answer[256];
  ask("cmd=barrier_in\n", answer, sizeof answer);
}

static void publish(int rank, const unsigned char* name, size_t length) {
  char line[512];
  int used = sprintf(line, "cmd=put kvsname=here key=name%d value=", rank);
  for (size_t i = 0; i < length; ++i) used += sprintf(line + used, "%02x", name[i]);
  sprintf(line + used, "\n");
  char answer[256];
  ask(line, answer, sizeof answer);
}

static void find(int rank, unsigned char* name, size_t length) {
  char line[128];
  char answer[512];
  sprintf(line, "cmd=get kvsname=here key=name%d\n", rank);
  ask(line, answer, sizeof answer);
  const char* value = strstr(answer, "value=");
  EXPECT(value != NULL);
  for (size_t i = 0; i < length; ++i) {
    unsigned byte = 0;
    EXPECT(sscanf(value + 6 + 2 * i, "%2x", &byte) == 1);
    name[i] = (unsigned char)byte;
  }
}

// An endpoint with one completion queue, enabled.
static void open_endpoint(struct Fabric* f) {
  EXPECT(fi_endpoint(f->domain, f->info, &f->ep, NULL) == 0);
  EXPECT(fi_ep_bind(f->ep, &f->av->fid, 0) == 0);
  EXPECT(fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV) == 0);
  EXPECT(fi_enable(f->ep) == 0);
}

// Exchanges all addresses when every rank has an endpoint.
static void exchange(struct Fabric* f) {
  unsigned char name[name_bytes];
  size_t length = 0;
  EXPECT(fi_getname(&f->ep->fid, NULL, &length) == -FI_ETOOSMALL);
  EXPECT(length > 0 && length <= sizeof name);
  EXPECT(fi_getname(&f->ep->fid, name, &length) == 0);
  publish(f->rank, name, length);
  meet();
  for (int rank = 0; rank < f->size; ++rank) {
    find(rank, name, length);
    EXPECT(fi_av_insert(f->av, name, 1, &f->peers[rank], 0, NULL) == 1);
  }
}

static struct fi_info* hints_for(uint64_t caps) {
  struct fi_info* hints = fi_allocinfo();
  EXPECT(hints != NULL);
  hints->caps = caps;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  return hints;
}

// Opens everything up to an enabled endpoint.
static void open_all(struct Fabric* f, struct fi_info* hints) {
  f->rank = atoi(getenv("PMI_RANK"));
  f->size = atoi(getenv("PMI_SIZE"));
  EXPECT(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &f->info) == 0);
  fi_freeinfo(hints);
  EXPECT(fi_fabric(f->info->fabric_attr, &f->fabric, NULL) == 0);
  EXPECT(fi_domain(f->fabric, f->info, &f->domain, NULL) == 0);
  struct fi_av_attr av = {.type = f->info->domain_attr->av_type};
  EXPECT(fi_av_open(f->domain, &av, &f->av, NULL) == 0);
  struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
  EXPECT(fi_cq_open(f->domain, &cq, &f->cq, NULL) == 0);
  open_endpoint(f);
}

static void begin(struct Fabric* f, struct fi_info* hints) {
  char answer[256];
  ask("cmd=init pmi_version=1 pmi_subversion=1\n", answer, sizeof answer);
  open_all(f, hints);
  exchange(f);
}

static void close_all(struct Fabric* f) {
  EXPECT(fi_close(&f->ep->fid) == 0);
  EXPECT(fi_close(&f->cq->fid) == 0);
  EXPECT(fi_close(&f->av->fid) == 0);
  EXPECT(fi_close(&f->domain->fid) == 0);
  EXPECT(fi_close(&f->fabric->fid) == 0);
  fi_freeinfo(f->info);
}

static void end(struct Fabric* f) {
  close_all(f);
  char answer[256];
  ask("cmd=finalize\n", answer, sizeof answer);
}

// Polls until there is a completion.
static struct fi_cq_tagged_entry next_completion(struct fid_cq* cq) {
  struct fi_cq_tagged_entry entry;
  ssize_t got;
  while ((got = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN) {
  }
  if (got == -FI_EAVAIL) {
    struct fi_cq_err_entry error = {0};
    fi_cq_readerr(cq, &error, 0);
    fprintf(stderr, "completion with an error: %s\n", fi_strerror(error.err));
  }
  EXPECT(got == 1);
  return entry;
}
