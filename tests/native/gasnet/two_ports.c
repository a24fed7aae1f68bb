/* two_ports first|second: the program opens the process's port of an APENet card itself, before or after the
 * conduit of GASNet does, which takes all events of the port. */
#include <ape_rdma.h>
#include <gasnet.h>
#include <string.h>

int main(int argc, char** argv) {
  ape_rdma_port* port = NULL;
  const int is_first = strcmp(argv[1], "first") == 0;
  if (is_first && ape_rdma_open(APE_RDMA_ANY_PORT, &port) != APE_RDMA_OK) return 3;
  GASNET_SAFE(gasnet_init(&argc, &argv));
  if (ape_rdma_open(APE_RDMA_ANY_PORT, &port) != APE_RDMA_PORT_TAKEN) return 4;
  GASNET_SAFE(gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0));
  gasnet_exit(0);
}
