/* descriptors SEED COUNT: posts descriptors with random bits, one process a node. Whatever they ask for, only
 * registered memory may change, and a call returns a code with a text. Prints how many were accepted. */
#include <string.h>
#include <unistd.h>

#include "rma_common.h"

enum { area_bytes = 4096, guard_bytes = 65536 };

static uint64_t state;
static uint64_t draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545f4914f6cdd1dULL;
}
static uint64_t below(uint64_t bound) {
  return (draw() >> 16) % bound;
}

/* An address in, around, or far from an area. */
static uint64_t address_near(RMA2_NLA area) {
  switch (below(5)) {
    case 0:
      return draw();
    case 1:
      return area - 1 - below(guard_bytes);
    case 2:
      return area + area_bytes - below(16);
    default:
      return area + below(area_bytes);
  }
}

int main(int argc, char** argv) {
  static unsigned char memory[guard_bytes + area_bytes + guard_bytes];
  unsigned char* const area = memory + guard_bytes;
  EXPECT(argc == 3);
  const int count = atoi(argv[2]);
  RMA2_Port port = open_port();
  RMA2_Region* region;
  const RMA2_Nodeid me = rma2_get_nodeid(port);
  state = strtoull(argv[1], NULL, 10) * 1000003 + me + 1;
  memset(memory, 0x5a, sizeof memory);
  /* The same address in all processes, which are copies of one. */
  const RMA2_NLA nla = register_at(port, area, area_bytes, &region);
  RMA2_Handle peers[2];
  for (uint16_t node = 0; node < 2; ++node) peers[node] = connect_to(port, node);
  int accepted = 0;
  for (int number = 0; number < count; ++number) {
    RMA2_Descriptor descriptor = {peers[below(2)], {draw(), address_near(nla), address_near(nla)}};
    uint64_t* const head = &descriptor.value[0];
    if (below(8) != 0) *head = (*head & ~UINT64_C(0xffffffff)) | below(2) << 16 | below(8) << 2 | 3;
    if (below(4) != 0) *head &= ~(UINT64_C(31) << 35); /* no modifiers */
    if (below(4) != 0) *head = (*head & ~(UINT64_C(0x7fffff) << 40)) | below(2 * area_bytes) << 40;
    const RMA2_ERROR error = rma2_post_descriptor(port, peers[below(2)], &descriptor);
    accepted += error == RMA2_SUCCESS;
    EXPECT(rma2_strerror(error)[0] != '\0');
    RMA2_Notification* notification;
    while (rma2_noti_probe(port, &notification) == RMA2_SUCCESS)
      check(rma2_noti_free(port, notification), "free");
    if (below(16) == 0) usleep(10);
  }
  usleep(100000); /* in virtual time: all is over */
  for (int at = 0; at < guard_bytes; ++at) EXPECT(memory[at] == 0x5a && area[area_bytes + at] == 0x5a);
  EXPECT(accepted > count / 100);
  printf("%d: %d of %d accepted\n", me, accepted, count);
  return 0;
}
