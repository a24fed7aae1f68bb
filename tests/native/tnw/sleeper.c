/* The receiver gives credit and then sleeps for a second of virtual time, while 20000 messages come. */
#include <stdio.h>
#include <time.h>
#include <tnw.h>

enum { messages = 20000 };

int main(void) {
  static int taken[messages];
  int rank = 0, wrong = 0;
  if (tnw_open() != TNW_OK || tnw_rank(&rank, NULL) != TNW_OK) return 1;
  if (rank == 0) {
    for (int i = 0; i < messages; ++i) {
      if (tnw_put(TNW_X_PLUS, i % 2, &i, sizeof i) != TNW_OK) return 1;
    }
  } else {
    for (int i = 0; i < messages; ++i) {
      if (tnw_credit(TNW_X_MINUS, i % 2, &taken[i], sizeof taken[i]) != TNW_OK) return 1;
    }
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    for (int i = 0; i < messages; ++i) {
      wrong += tnw_wait(TNW_X_MINUS, i % 2, NULL) != TNW_OK || taken[i] != i;
    }
    printf("%d messages in order\n", messages - wrong);
  }
  return tnw_close() == TNW_OK && wrong == 0 ? 0 : 1;
}
