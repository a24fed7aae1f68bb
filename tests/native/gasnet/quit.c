/* quit STATUS: node 1 exits, and the others wait for what never comes. Nodes 0 and 2 catch SIGQUIT. */
#include <gasnet.h>
#include <signal.h>
#include <unistd.h>

static int status;

static void shut_down(int number) {
  (void)number;
  printf("node %u shuts down\n", gasnet_mynode());
  gasnet_exit(status);
}

int main(int argc, char** argv) {
  status = atoi(argv[1]);
  GASNET_SAFE(gasnet_init(&argc, &argv));
  GASNET_SAFE(gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0));
  if (gasnet_mynode() == 0 || gasnet_mynode() == 2) signal(SIGQUIT, shut_down);
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  GASNET_SAFE(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS));
  if (gasnet_mynode() == 1) gasnet_exit(status);
  for (;;) {
    if (gasnet_mynode() % 2) gasnet_AMPoll();
    GASNET_BLOCKUNTIL(gasnet_mynode() % 2);
  }
}
