/* Half a round trip of 8 bytes in us: by a communicator that prefers the first card, and one the second. */
#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 20 };

static double half_round_trip_us(MPI_Comm comm, int rank) {
  char word[8] = {0};
  MPI_Barrier(comm);
  double begin = MPI_Wtime();
  for (int round = 0; round < ROUNDS; ++round) {
    if (rank == 0) {
      MPI_Send(word, sizeof word, MPI_CHAR, 1, 0, comm);
      MPI_Recv(word, sizeof word, MPI_CHAR, 1, 0, comm, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(word, sizeof word, MPI_CHAR, 0, 0, comm, MPI_STATUS_IGNORE);
      MPI_Send(word, sizeof word, MPI_CHAR, 0, 0, comm);
    }
  }
  return (MPI_Wtime() - begin) / (2 * ROUNDS) * 1e6;
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int card = 0; card < 2; ++card) {
    const char name[2] = {(char)('0' + card), 0};
    MPI_Info info;
    MPI_Comm comm;
    MPI_Info_create(&info);
    MPI_Info_set(info, "multi_nic_pref_nic", name);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    double time_us = half_round_trip_us(comm, rank);
    if (rank == 0) printf("%.4f\n", time_us);
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
  }
  MPI_Finalize();
  return 0;
}
