// One halo exchange of all faces by MPI's persistent requests and by apelib's halo, in one program and with
// equal data, for each size in the arguments.
#include <apelib.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, DIRECTIONS = 6 };

static void check(int code) {
  if (code == APE_OK) return;
  fprintf(stderr, "beside_mpi: %s\n", ape_last_error());
  exit(1);
}

static double exchange_by_mpi(MPI_Request* requests) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < ROUNDS; ++i) {
    MPI_Startall(2 * DIRECTIONS, requests);
    MPI_Waitall(2 * DIRECTIONS, requests, MPI_STATUSES_IGNORE);
  }
  return (MPI_Wtime() - start) / ROUNDS * 1e6;
}

static double exchange_by_apelib(ape_halo halo) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < ROUNDS; ++i) {
    check(ape_halo_start(halo));
    check(ape_halo_wait(halo));
  }
  return (MPI_Wtime() - start) / ROUNDS * 1e6;
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  check(ape_init());
  check(ape_rank(&rank));
  if (rank == 0) printf("# bytes of a face, us by MPI, us by apelib\n");
  for (int i = 1; i < argc; ++i) {
    const size_t bytes = strtoul(argv[i], NULL, 10);
    char* out = malloc(bytes * DIRECTIONS);
    char* in[2] = {calloc(DIRECTIONS, bytes), calloc(DIRECTIONS, bytes)};
    for (size_t b = 0; b < bytes * DIRECTIONS; ++b) out[b] = (char)(rank * 13 + b % 101);
    MPI_Request requests[2 * DIRECTIONS];
    ape_halo halo = APE_NO_HALO;
    check(ape_halo_create(&halo));
    for (int d = 0; d < DIRECTIONS; ++d) {
      int neighbor = 0;
      check(ape_neighbor(d, &neighbor));
      MPI_Recv_init(in[0] + d * bytes, (int)bytes, MPI_BYTE, neighbor, d ^ 1, MPI_COMM_WORLD, &requests[d]);
      MPI_Send_init(out + d * bytes, (int)bytes, MPI_BYTE, neighbor, d, MPI_COMM_WORLD,
                    &requests[DIRECTIONS + d]);
      check(ape_halo_face(halo, d, out + d * bytes, in[1] + d * bytes, bytes));
    }
    double times[2];
    // The first exchange of each is not measured.
    exchange_by_mpi(requests);
    times[0] = exchange_by_mpi(requests);
    exchange_by_apelib(halo);
    times[1] = exchange_by_apelib(halo);
    if (memcmp(in[0], in[1], bytes * DIRECTIONS) != 0) {
      fprintf(stderr, "beside_mpi: MPI and apelib have received different bytes\n");
      return 1;
    }
    check(ape_max(times, 2, APE_DOUBLE));
    if (rank == 0) printf("%zu %.3f %.3f\n", bytes, times[0], times[1]);
    for (int d = 0; d < 2 * DIRECTIONS; ++d) MPI_Request_free(&requests[d]);
    check(ape_halo_free(&halo));
    free(out);
    free(in[0]);
    free(in[1]);
  }
  check(ape_finalize());
  MPI_Finalize();
  return 0;
}
