// All other ranks send many small messages to rank 0, which for a virtual second does not look at them. None
// is lost, and those of each rank arrive in order. Prints the most memory that rank 0 has used, in KiB.
// Argument: messages.
#include <apenet_compute.h>
#include <string.h>
#include <sys/resource.h>

#include "checks.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int messages = atoi(argv[1]);
  int rank = 0;
  int size = 0;
  CALL(ape_init());
  CALL(ape_rank(&rank));
  CALL(ape_size(&size));
  if (rank == 0) {
    ape_compute_seconds(1);
    for (int i = 0; i < messages; ++i) {
      for (int from = 1; from < size; ++from) {
        int got[2] = {-1, -1};
        CALL(ape_recv(got, sizeof got, from, 0, APE_AUTO));
        EXPECT(got[0] == from && got[1] == i);
      }
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%ld\n", usage.ru_maxrss);
  } else {
    for (int i = 0; i < messages; ++i) {
      const int data[2] = {rank, i};
      CALL(ape_send(data, sizeof data, 0, 0, APE_AUTO));
    }
  }
  CALL(ape_finalize());
  return 0;
}
