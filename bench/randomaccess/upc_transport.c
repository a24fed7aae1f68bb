// A program of UPC, as its compiler makes GASNet calls of it: a remote word is read, changed and written.
// Over a conduit that has Active Messages only, as that of Kujat et al., GASNet makes a get a short request
// with a medium reply, and a put a medium request with a short reply. The arguments are two pointers, and the
// number of bytes of a get.
#include <string.h>

#include "gasnet_process.h"

enum { get_handler = 200, got_handler, put_handler, done_handler };

static volatile int answers;  // answers of the one access that is under way

static gasnet_handlerarg_t high(uint64_t word) {
  return (gasnet_handlerarg_t)(uint32_t)(word >> 32);
}

static gasnet_handlerarg_t low(uint64_t word) {
  return (gasnet_handlerarg_t)(uint32_t)word;
}

static uint64_t joined(gasnet_handlerarg_t upper, gasnet_handlerarg_t lower) {
  return (uint64_t)(uint32_t)upper << 32 | (uint32_t)lower;
}

static void serve_get(gasnet_token_t token, gasnet_handlerarg_t number_high, gasnet_handlerarg_t number_low,
                      gasnet_handlerarg_t to_high, gasnet_handlerarg_t to_low, gasnet_handlerarg_t bytes) {
  ++deliveries;
  check(gasnet_AMReplyMedium2(token, got_handler, word_of(joined(number_high, number_low)), (size_t)bytes,
                              to_high, to_low),
        "gasnet_AMReplyMedium2");
}

static void take_word(gasnet_token_t token, void* word, size_t bytes, gasnet_handlerarg_t to_high,
                      gasnet_handlerarg_t to_low) {
  (void)token;
  memcpy((void*)joined(to_high, to_low), word, bytes);
  ++answers;
}

static void serve_put(gasnet_token_t token, void* word, size_t bytes, gasnet_handlerarg_t number_high,
                      gasnet_handlerarg_t number_low) {
  ++deliveries;
  memcpy(word_of(joined(number_high, number_low)), word, bytes);
  took_update();
  check(gasnet_AMReplyShort0(token, done_handler), "gasnet_AMReplyShort0");
}

static void take_answer(gasnet_token_t token) {
  (void)token;
  ++answers;
}

void transport_open(void) {
  gasnet_handlerentry_t table[] = {{get_handler, (void (*)())serve_get},
                                   {got_handler, (void (*)())take_word},
                                   {put_handler, (void (*)())serve_put},
                                   {done_handler, (void (*)())take_answer}};
  open_process(table, sizeof table / sizeof table[0]);
}

bool transport_may_lose(void) {
  return true;
}

static void await_answer(void) {
  GASNET_BLOCKUNTIL(answers == 1);
  answers = 0;
}

static void update(gasnet_node_t rank, uint64_t number) {
  uint64_t word = 0;
  const uint64_t to = (uint64_t)&word;
  check(gasnet_AMRequestShort5(rank, get_handler, high(number), low(number), high(to), low(to), sizeof word),
        "gasnet_AMRequestShort5");
  await_answer();
  word ^= number;
  check(gasnet_AMRequestMedium2(rank, put_handler, &word, sizeof word, high(number), low(number)),
        "gasnet_AMRequestMedium2");
  await_answer();
}

void transport_send(int rank, const uint64_t* updates, int count) {
  for (int i = 0; i < count; ++i) update((gasnet_node_t)rank, updates[i]);
}
