// All ranks change words of rank 0 at the same time: no change is lost, and each rank fetches a different
// value.
#include "fabric.h"

enum { increments = 20, most_words = 64 };

static uint64_t words[most_words];

// Rank 0 makes progress until all others have reported that they are done.
static void serve(struct Fabric* f) {
  char done;
  for (int rank = 1; rank < f->size; ++rank) {
    EXPECT(fi_trecv(f->ep, &done, 1, NULL, f->peers[rank], 1, 0, NULL) == 0);
  }
  for (int rank = 1; rank < f->size; ++rank) next_completion(f->cq);
}

static uint64_t fetch_add(struct Fabric* f, uint64_t address, uint64_t value) {
  uint64_t before = 0;
  EXPECT(fi_fetch_atomic(f->ep, &value, 1, NULL, &before, NULL, f->peers[0], address, 7, FI_UINT64, FI_SUM,
                         NULL) == 0);
  EXPECT((next_completion(f->cq).flags & FI_ATOMIC) != 0);
  return before;
}

// A lock: 0 is free.
static void take_lock(struct Fabric* f, uint64_t address) {
  const uint64_t free_value = 0;
  const uint64_t mine = (uint64_t)f->rank;
  uint64_t before = 0;
  do {
    EXPECT(fi_compare_atomic(f->ep, &mine, 1, NULL, &free_value, NULL, &before, NULL, f->peers[0], address, 7,
                             FI_UINT64, FI_CSWAP, NULL) == 0);
    next_completion(f->cq);
  } while (before != 0);
}

static void write_word(struct Fabric* f, uint64_t address, uint64_t value) {
  EXPECT(fi_atomic(f->ep, &value, 1, NULL, f->peers[0], address, 7, FI_UINT64, FI_ATOMIC_WRITE, NULL) == 0);
  next_completion(f->cq);
}

static uint64_t read_word(struct Fabric* f, uint64_t address) {
  uint64_t value = 0;
  EXPECT(fi_fetch_atomic(f->ep, NULL, 1, NULL, &value, NULL, f->peers[0], address, 7, FI_UINT64,
                         FI_ATOMIC_READ, NULL) == 0);
  next_completion(f->cq);
  return value;
}

static void work(struct Fabric* f, uint64_t address) {
  uint64_t last = 0;
  for (int i = 0; i < increments; ++i) {
    const uint64_t before = fetch_add(f, address, 1);
    EXPECT(i == 0 || before > last);
    last = before;
  }
  take_lock(f, address + 8);
  write_word(f, address + 16, read_word(f, address + 16) + 1);
  write_word(f, address + 8, 0);
  double halves[most_words / 2];
  for (int i = 0; i < most_words / 2; ++i) halves[i] = 0.5;
  EXPECT(fi_atomic(f->ep, halves, most_words / 2, NULL, f->peers[0], address + most_words / 2 * 8, 7,
                   FI_DOUBLE, FI_SUM, NULL) == 0);
  next_completion(f->cq);
  EXPECT(fi_tsend(f->ep, halves, 1, NULL, f->peers[0], 1, NULL) == 0);
  next_completion(f->cq);
}

int main(void) {
  struct Fabric f;
  begin(&f, hints_for(FI_TAGGED | FI_ATOMIC));
  struct fid_mr* region = NULL;
  EXPECT(fi_mr_reg(f.domain, words, sizeof words, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &region, NULL) ==
         0);
  publish(f.size + f.rank, (const unsigned char*)&(void*){words}, sizeof(void*));
  meet();
  uint64_t address = 0;
  find(f.size, (unsigned char*)&address, sizeof address);
  if (f.rank == 0) {
    serve(&f);
    EXPECT(words[0] == (uint64_t)(increments * (f.size - 1)));
    EXPECT(words[1] == 0 && words[2] == (uint64_t)(f.size - 1));
    for (int i = most_words / 2; i < most_words; ++i) {
      double sum = 0;
      memcpy(&sum, &words[i], sizeof sum);
      EXPECT(sum == 0.5 * (f.size - 1));
    }
    printf("passed\n");
  } else {
    work(&f, address);
  }
  EXPECT(fi_close(&region->fid) == 0);
  end(&f);
  return 0;
}
