/* One misuse, chosen by the argument; node 0 does it, or all. Prints nothing if GASNet lets it pass. */
#include <gasnet.h>
#include <string.h>

static const char* wanted;
static gasnet_token_t kept;
static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;

static int is(const char* name) {
  return strcmp(wanted, name) == 0;
}

static void done(gasnet_token_t token) {
  if (is("reply-to-reply")) gasnet_AMReplyShort0(token, 201);
}

static void handler(gasnet_token_t token) {
  kept = token;
  if (is("request-in-handler")) gasnet_AMRequestShort0(0, 201);
  if (is("poll-in-handler")) gasnet_AMPoll();
  if (is("put-in-handler")) gasnet_put_val(0, NULL, 0, 1);
  if (is("barrier-in-handler")) gasnet_barrier_notify(0, 0);
  if (is("lock-kept")) gasnet_hsl_lock(&lock);
  gasnet_AMReplyShort0(token, is("unknown-handler") ? 222 : 201);
  if (is("reply-twice")) gasnet_AMReplyShort0(token, 201);
}

int main(int argc, char** argv) {
  gasnet_handlerentry_t table[] = {{200, (void (*)())handler}, {201, (void (*)())done}};
  wanted = argv[1];
  if (is("node-before-init")) gasnet_mynode();
  GASNET_SAFE(gasnet_init(&argc, &argv));
  if (is("put-before-attach")) gasnet_put_val(0, NULL, 0, 1);
  GASNET_SAFE(gasnet_attach(table, 2, GASNET_PAGESIZE, 0));
  gasnet_seginfo_t segments[2];
  GASNET_SAFE(gasnet_getSegmentInfo(segments, 2));
  char* const there = segments[1].addr;
  char byte = 1;
  if (gasnet_mynode() == 0) {
    if (is("bad-argument")) GASNET_SAFE(gasnet_AMRequestShort0(7, 200));
    if (is("put-out-of-segment")) gasnet_put(1, there + GASNET_PAGESIZE, &byte, 1);
    if (is("get-across-the-end")) gasnet_get(&byte, 1, there + GASNET_PAGESIZE - 1, 2);
    if (is("no-such-node")) gasnet_memset(2, there, 0, 1);
    if (is("value-of-9-bytes")) gasnet_put_val(1, there, 0, 9);
    if (is("wait-without-notify")) gasnet_barrier_wait(0, 0);
    if (is("notify-twice")) {
      gasnet_barrier_notify(0, 0);
      gasnet_barrier_notify(0, 0);
    }
    if (is("nested-regions")) {
      gasnet_begin_nbi_accessregion();
      gasnet_begin_nbi_accessregion();
    }
    if (is("region-not-begun")) gasnet_end_nbi_accessregion();
    if (is("request-with-lock")) {
      gasnet_hsl_lock(&lock);
      gasnet_AMRequestShort0(1, 200);
    }
    if (is("lock-twice")) {
      gasnet_hsl_lock(&lock);
      gasnet_hsl_lock(&lock);
    }
    if (is("unlock-not-held")) gasnet_hsl_unlock(&lock);
    if (is("destroy-held")) {
      gasnet_hsl_lock(&lock);
      gasnet_hsl_destroy(&lock);
    }
    if (is("poll-in-section")) {
      gasnet_hold_interrupts();
      gasnet_AMPoll();
    }
    if (is("section-twice")) {
      gasnet_hold_interrupts();
      gasnet_hold_interrupts();
    }
    if (is("resume-outside")) gasnet_resume_interrupts();
    if (is("old-token")) {
      gasnet_AMRequestShort0(0, 200);
      GASNET_BLOCKUNTIL(kept != NULL);
      gasnet_AMReplyShort0(kept, 201);
    }
    gasnet_AMRequestShort0(1, 200);
  }
  for (;;) gasneti_await_progress();
}
