/* Waits for a message that nobody sends. */
#include <stdio.h>
#include <tnw.h>

int main(void) {
  char byte = 0;
  const tnw_status status = tnw_open();
  if (status != TNW_OK) {
    fprintf(stderr, "tnw_open: %s\n", tnw_strerror(status));
    return 1;
  }
  tnw_credit(TNW_X_PLUS, 0, &byte, 1);
  tnw_wait(TNW_X_PLUS, 0, NULL);
  return 0;
}
