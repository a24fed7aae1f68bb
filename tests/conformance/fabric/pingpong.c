// Ping-pong between two ranks with one endpoint each.
#include "fabric.h"

enum { rounds = 10, largest_bytes = 1 << 16 };

static char ball[largest_bytes];

static void send_ball(struct Fabric* f, size_t bytes, uint64_t tag) {
  EXPECT(fi_tsend(f->ep, ball, bytes, NULL, f->peers[1 - f->rank], tag, NULL) == 0);
  EXPECT((next_completion(f->cq).flags & FI_SEND) != 0);
}

static void receive_ball(struct Fabric* f, size_t bytes, uint64_t tag) {
  memset(ball, 0, bytes);
  EXPECT(fi_trecv(f->ep, ball, bytes, NULL, f->peers[1 - f->rank], tag, 0, NULL) == 0);
  const struct fi_cq_tagged_entry entry = next_completion(f->cq);
  EXPECT((entry.flags & FI_RECV) != 0 && entry.len == bytes && entry.tag == tag);
  for (size_t i = 0; i < bytes; ++i) EXPECT(ball[i] == (char)(i * 7 + tag));
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void play(struct Fabric* f, size_t bytes) {
  const double began = now_us();
  for (uint64_t round = 0; round < rounds; ++round) {
    if (f->rank == 0) {
      for (size_t i = 0; i < bytes; ++i) ball[i] = (char)(i * 7 + round);
      send_ball(f, bytes, round);
    }
    receive_ball(f, bytes, round);
    if (f->rank == 1) send_ball(f, bytes, round);
  }
  if (f->rank == 0) printf("%zu bytes: %.3f us\n", bytes, (now_us() - began) / (2 * rounds));
}

int main(void) {
  struct Fabric f;
  begin(&f, hints_for(FI_TAGGED));
  EXPECT(f.size == 2);
  play(&f, 8);
  play(&f, largest_bytes);
  end(&f);
  if (f.rank == 0) printf("passed\n");
  return 0;
}
