/* A stream of 1 MiB from rank 1 to rank 0; with an argument, beside a message of MPI of this size. */
#include <arpa/inet.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
static char data[1 << 20];

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(99)};
  int file = socket(AF_INET, SOCK_STREAM, 0);
  if (rank == 0) {
    bind(file, (struct sockaddr*)&address, sizeof address);
    listen(file, 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  address.sin_addr.s_addr = htonl(0x0a000001);
  if (rank == 0)
    file = accept(file, 0, 0);
  else if (connect(file, (struct sockaddr*)&address, sizeof address))
    return 1;
  const double began = MPI_Wtime();
  MPI_Request request = MPI_REQUEST_NULL;
  if (count > 1 && rank == 0) MPI_Irecv(data, sizeof data, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
  if (count > 1 && rank == 1) MPI_Isend(data, sizeof data, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
  if (rank == 1) {
    if (write(file, data, sizeof data) != sizeof data) return 1;
    shutdown(file, SHUT_WR);
  } else {
    while (read(file, data, 65536) > 0) continue;
    printf("%.3f us\n", 1e6 * (MPI_Wtime() - began));
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
