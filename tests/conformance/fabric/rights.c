// Rank 1 writes to and reads from rank 0: with the key, without it, and beyond the region. Rank 0 only
// counts.
#include "fabric.h"

enum { bytes = 4096 };

static char memory[bytes], local[bytes];

static int error_of_next(struct Fabric* f) {
  struct fi_cq_tagged_entry entry;
  ssize_t got;
  while ((got = fi_cq_read(f->cq, &entry, 1)) == -FI_EAGAIN) {
  }
  if (got == 1) return 0;
  struct fi_cq_err_entry error = {0};
  EXPECT(fi_cq_readerr(f->cq, &error, 0) == 1);
  return error.err;
}

static int write_there(struct Fabric* f, uint64_t offset, uint64_t key) {
  EXPECT(fi_write(f->ep, local, 8, NULL, f->peers[0], offset, key, NULL) == 0);
  return error_of_next(f);
}

static int read_there(struct Fabric* f, uint64_t offset, uint64_t key) {
  EXPECT(fi_read(f->ep, local, 8, NULL, f->peers[0], offset, key, NULL) == 0);
  return error_of_next(f);
}

int main(void) {
  struct Fabric f;
  struct fi_info* hints = hints_for(FI_TAGGED | FI_RMA | FI_RMA_EVENT);
  hints->domain_attr->mr_mode = FI_MR_ENDPOINT;  // not FI_MR_VIRT_ADDR: remote addresses are offsets
  begin(&f, hints);
  EXPECT(f.info->domain_attr->mr_mode == 0);
  struct fid_mr* region = NULL;
  EXPECT(fi_mr_reg(f.domain, memory, bytes / 2, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 3, 0, &region, NULL) ==
         0);
  struct fi_cntr_attr attributes = {.events = FI_CNTR_EVENTS_COMP};
  struct fid_cntr* counter = NULL;
  EXPECT(fi_cntr_open(f.domain, &attributes, &counter, NULL) == 0);
  EXPECT(fi_mr_bind(region, &counter->fid, FI_REMOTE_WRITE) == 0);
  meet();
  if (f.rank == 1) {
    memset(local, 'x', sizeof local);
    EXPECT(write_there(&f, 0, 4) == FI_EKEYREJECTED);
    EXPECT(write_there(&f, bytes / 2 - 7, 3) == FI_EACCES);
    EXPECT(read_there(&f, bytes, 3) == FI_EACCES);
    EXPECT(write_there(&f, bytes / 2 - 8, 3) == 0);
    EXPECT(fi_writedata(f.ep, local, 8, NULL, 99, f.peers[0], 0, 3, NULL) == 0);
    EXPECT(error_of_next(&f) == 0);
  } else {
    EXPECT(fi_cntr_wait(counter, 2, -1) == 0);
    EXPECT(memory[0] == 'x' && memory[8] == 0 && memory[bytes / 2 - 9] == 0 && memory[bytes / 2 - 1] == 'x');
    EXPECT(memory[bytes / 2] == 0);
    EXPECT(next_completion(f.cq).data == 99);
    printf("passed\n");
  }
  EXPECT(fi_close(&region->fid) == 0);
  EXPECT(fi_close(&counter->fid) == 0);
  end(&f);
  return 0;
}
