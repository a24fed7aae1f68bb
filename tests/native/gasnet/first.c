#include <gasnet.h>
#include <string.h>
static volatile int pongs, mediums, longs;
static char *seg;
static void ping(gasnet_token_t t, gasnet_handlerarg_t a, gasnet_handlerarg_t b) { GASNET_SAFE(gasnet_AMReplyShort2(t, 201, a + b, 0)); }
static void pong(gasnet_token_t t, gasnet_handlerarg_t a, gasnet_handlerarg_t b) { (void)t; (void)b; pongs += a; }
static void med(gasnet_token_t t, void *p, size_t n, gasnet_handlerarg_t a) {
  for (size_t i = 0; i < n; i++) if (((char *)p)[i] != (char)(i + a)) abort();
  mediums++; GASNET_SAFE(gasnet_AMReplyMedium1(t, 203, p, n, a)); }
static void medr(gasnet_token_t t, void *p, size_t n, gasnet_handlerarg_t a) { (void)t; (void)p; (void)n; (void)a; mediums++; }
static void lng(gasnet_token_t t, void *p, size_t n, gasnet_handlerarg_t a) {
  for (size_t i = 0; i < n; i++) if (((char *)p)[i] != (char)(i + a)) abort();
  longs++; GASNET_SAFE(gasnet_AMReplyShort0(t, 205)); }
static void lngr(gasnet_token_t t) { (void)t; longs++; }
int main(int argc, char **argv) {
  gasnet_handlerentry_t h[] = {{200, (void (*)())ping}, {201, (void (*)())pong}, {202, (void (*)())med}, {203, (void (*)())medr}, {204, (void (*)())lng}, {205, (void (*)())lngr}};
  GASNET_SAFE(gasnet_init(&argc, &argv));
  GASNET_SAFE(gasnet_attach(h, 6, 1 << 20, 0));
  gasnet_node_t me = gasnet_mynode(), n = gasnet_nodes();
  gasnet_seginfo_t *s = malloc(n * sizeof *s);
  GASNET_SAFE(gasnet_getSegmentInfo(s, n));
  seg = s[me].addr;
  gasnet_node_t to = (me + 1) % n;
  GASNET_SAFE(gasnet_AMRequestShort2(to, 200, 3, 4));
  GASNET_BLOCKUNTIL(pongs == 7);
  static char buf[8192];
  for (int i = 0; i < 8192; i++) buf[i] = (char)(i + 5);
  GASNET_SAFE(gasnet_AMRequestMedium1(to, 202, buf, 8192, 5));
  GASNET_BLOCKUNTIL(mediums == 2);
  GASNET_SAFE(gasnet_AMRequestLong1(to, 204, buf, 8192, (char *)s[to].addr + 100, 5));
  GASNET_BLOCKUNTIL(longs == 2);
  gasnet_barrier_notify(1, 0);
  GASNET_SAFE(gasnet_barrier_wait(1, 0));
  gasnet_put(to, (char *)s[to].addr + 50000, buf, 8192);
  char back[8192];
  gasnet_get(back, to, (char *)s[to].addr + 50000, 8192);
  if (memcmp(back, buf, 8192)) abort();
  gasnet_memset(to, (char *)s[to].addr + 50000, 9, 100);
  if (gasnet_get_val(to, (char *)s[to].addr + 50098, 2) != 0x0909) abort();
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  GASNET_SAFE(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS));
  if (me == 0) printf("passed\n");
  gasnet_exit(0);
}
