// What libraries for a global address space ask of a provider, as GASNet-EX and Sandia OpenSHMEM do: an
// endpoint for requests, one for replies, which share their receives, and one for remote memory, which has
// counters.
#include "fabric.h"

enum { rounds = 20, table_words = 512, region_key = 77, buffer_bytes = 1 << 16, most_bytes = 20000 };

// Requests and replies: endpoints that share a context each for transmits and receives.
struct Channel {
  struct fid_ep* ep;
  struct fid_cq* received;
  fi_addr_t peers[most_ranks];
};

static uint64_t table[table_words];
static char buffers[2][buffer_bytes], payload[most_bytes];
static struct fid_ep* shared;
static int finished[2];  // buffers that the provider has given back

static void open_channel(struct Fabric* f, struct Channel* channel, struct fid_stx* transmit) {
  struct fi_info* info = fi_dupinfo(f->info);
  info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  struct fi_cq_attr attributes = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_UNSPEC};
  EXPECT(fi_cq_open(f->domain, &attributes, &channel->received, NULL) == 0);
  EXPECT(fi_endpoint(f->domain, info, &channel->ep, NULL) == 0);
  EXPECT(fi_ep_bind(channel->ep, &f->av->fid, 0) == 0);
  EXPECT(fi_ep_bind(channel->ep, &f->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION) == 0);
  EXPECT(fi_ep_bind(channel->ep, &channel->received->fid, FI_RECV) == 0);
  EXPECT(fi_enable(channel->ep) == -FI_EOPBADSTATE);
  EXPECT(fi_ep_bind(channel->ep, &transmit->fid, 0) == 0);
  EXPECT(fi_ep_bind(channel->ep, &shared->fid, 0) == 0);
  EXPECT(fi_enable(channel->ep) == 0);
  EXPECT(fi_recv(channel->ep, payload, 1, NULL, FI_ADDR_UNSPEC, NULL) == -FI_EOPBADSTATE);
  fi_freeinfo(info);
}

static void exchange_channel(struct Fabric* f, struct Channel* channel, int number) {
  unsigned char name[name_bytes];
  size_t length = sizeof name;
  EXPECT(fi_getname(&channel->ep->fid, name, &length) == 0);
  publish(number * most_ranks + f->rank, name, length);
  meet();
  for (int rank = 0; rank < f->size; ++rank) {
    find(number * most_ranks + rank, name, length);
    EXPECT(fi_av_insert(f->av, name, 1, &channel->peers[rank], 0, NULL) == 1);
  }
}

static void post(int which) {
  struct iovec piece = {buffers[which], buffer_bytes};
  struct fi_msg message = {
      .msg_iov = &piece, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &finished[which]};
  EXPECT(fi_recvmsg(shared, &message, FI_MULTI_RECV) == 0);
}

// The next message at this endpoint, whose data is its sender's rank.
static int take(struct Channel* channel, size_t bytes) {
  struct fi_cq_data_entry entry;
  EXPECT(fi_cq_sread(channel->received, &entry, 1, NULL, -1) == 1);
  EXPECT(entry.len == bytes);
  EXPECT(((char*)entry.buf)[0] == 'a' && (bytes == 1 || ((char*)entry.buf)[bytes - 1] == 'a'));
  if ((entry.flags & FI_MULTI_RECV) != 0) post((int*)entry.op_context == &finished[1]);
  return (int)entry.data;
}

static void trade(struct Fabric* f, struct Channel* requests, struct Channel* replies) {
  const int right = (f->rank + 1) % f->size;
  for (int round = 0; round < rounds; ++round) {
    const size_t bytes = (size_t)(1 + round * (most_bytes - 1) / (rounds - 1));  // eager, then rendezvous
    EXPECT(fi_senddata(requests->ep, payload, bytes, NULL, f->rank, requests->peers[right], NULL) == 0);
    const int left = take(requests, bytes);
    EXPECT(left == (f->rank + f->size - 1) % f->size);
    EXPECT(fi_injectdata(replies->ep, payload, 8, f->rank, replies->peers[left]) == 0);
    EXPECT(take(replies, 8) == right);
  }
}

// Writes of a rank into its own words of all tables, then counts in rank 0's.
static void access_memory(struct Fabric* f, struct fid_cntr* writes, struct fid_cntr* reads) {
  const uint64_t mine = 100 + f->rank;
  const struct iovec piece = {(void*)&mine, sizeof mine};
  for (int rank = 0; rank < f->size; ++rank) {
    const struct fi_rma_iov there = {.addr = 8 * (1 + (uint64_t)f->rank), .len = 8, .key = region_key};
    const struct fi_msg_rma message = {&piece, NULL, 1, f->peers[rank], &there, 1, NULL, 0};
    EXPECT(fi_writemsg(f->ep, &message, FI_INJECT | FI_DELIVERY_COMPLETE) == 0);
  }
  EXPECT(fi_cntr_wait(writes, (uint64_t)f->size, -1) == 0);
  const uint64_t one = 1;
  uint64_t before = ~(uint64_t)0;
  for (int round = 0; round < rounds; ++round) {
    EXPECT(fi_fetch_atomic(f->ep, &one, 1, NULL, &before, NULL, f->peers[0], 0, region_key, FI_UINT64, FI_SUM,
                           NULL) == 0);
    EXPECT(fi_cntr_wait(reads, (uint64_t)round + 1, -1) == 0);
    EXPECT(before >= (uint64_t)round && before < (uint64_t)(f->size * rounds));
  }
  uint64_t read = 0;
  EXPECT(fi_read(f->ep, &read, 8, NULL, f->peers[0], 8 * (1 + (uint64_t)f->rank), region_key, NULL) == 0);
  EXPECT(fi_cntr_wait(reads, rounds + 1, -1) == 0);
  EXPECT(read == mine);
}

// Until all have come here, which rank 0 collects and tells.
static void wait_for_all(struct Fabric* f, struct Channel* requests, struct Channel* replies) {
  if (f->rank > 0) {
    EXPECT(fi_injectdata(requests->ep, payload, 1, f->rank, requests->peers[0]) == 0);
    EXPECT(take(replies, 1) == 0);
    return;
  }
  for (int others = 1; others < f->size; ++others) EXPECT(take(requests, 1) > 0);
  for (int rank = 1; rank < f->size; ++rank)
    EXPECT(fi_injectdata(replies->ep, payload, 1, 0, replies->peers[rank]) == 0);
}

int main(void) {
  struct Fabric f;
  struct fi_info* hints = hints_for(FI_MSG | FI_MULTI_RECV | FI_RMA | FI_ATOMIC);
  hints->domain_attr->mr_mode = 0;  // keys that the program requests, addresses that are offsets
  hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
  hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = 0;
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  begin(&f, hints);
  memset(payload, 'a', sizeof payload);

  struct fid_cntr *writes = NULL, *reads = NULL;
  EXPECT(fi_cntr_open(f.domain, NULL, &writes, NULL) == 0);
  EXPECT(fi_cntr_open(f.domain, NULL, &reads, NULL) == 0);
  EXPECT(fi_ep_bind(f.ep, &writes->fid, FI_WRITE) == 0);
  EXPECT(fi_ep_bind(f.ep, &reads->fid, FI_READ) == 0);
  struct fid_mr* region = NULL;
  EXPECT(fi_mr_reg(f.domain, table, sizeof table, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, region_key, 0, &region,
                   NULL) == 0);

  struct fid_stx* transmit = NULL;
  EXPECT(fi_stx_context(f.domain, NULL, &transmit, NULL) == 0);
  EXPECT(fi_srx_context(f.domain, NULL, &shared, NULL) == 0);
  const size_t least = most_bytes;
  EXPECT(fi_setopt(&shared->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least) == 0);
  struct Channel channels[2];
  for (int i = 0; i < 2; ++i) open_channel(&f, &channels[i], transmit);
  for (int i = 0; i < 2; ++i) exchange_channel(&f, &channels[i], i + 1);
  for (int i = 0; i < 2; ++i) post(i);
  EXPECT(fi_close(&shared->fid) == -FI_EBUSY);

  trade(&f, &channels[0], &channels[1]);
  access_memory(&f, writes, reads);
  wait_for_all(&f, &channels[0], &channels[1]);
  for (int rank = 0; rank < f.size; ++rank) EXPECT(table[1 + rank] == 100 + (uint64_t)rank);
  if (f.rank == 0) {
    EXPECT(table[0] == (uint64_t)(f.size * rounds));
    printf("passed\n");
  }

  EXPECT(fi_close(&region->fid) == 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT(fi_close(&channels[i].ep->fid) == 0);
    EXPECT(fi_close(&channels[i].received->fid) == 0);
  }
  EXPECT(fi_close(&shared->fid) == 0 && fi_close(&transmit->fid) == 0);
  EXPECT(fi_close(&f.ep->fid) == 0);
  EXPECT(fi_close(&writes->fid) == 0 && fi_close(&reads->fid) == 0);
  open_endpoint(&f);  // for end()
  end(&f);
  return 0;
}
