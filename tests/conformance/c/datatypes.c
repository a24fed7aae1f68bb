// Derived datatypes: data sent with one layout arrives with another, below and above the eager limit.
#include <stddef.h>
#include <string.h>

#include "check.h"

// A column of a matrix becomes a row.
static void transpose_column(struct World world, int rows, int columns) {
  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  int* matrix = malloc(sizeof(int) * (size_t)rows * (size_t)columns);
  int* row = malloc(sizeof(int) * (size_t)rows);
  for (int i = 0; i < rows * columns; ++i) matrix[i] = pattern(world.rank, 0, i);
  MPI_Datatype column;
  MPI_Type_vector(rows, 1, columns, MPI_INT, &column);
  MPI_Type_commit(&column);
  MPI_Sendrecv(matrix + 1, 1, column, right, 1, row, rows, MPI_INT, left, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < rows; ++i) CHECK(row[i] == pattern(left, 0, i * columns + 1));
  // And back: the receiver scatters contiguous data.
  memset(matrix, 0, sizeof(int) * (size_t)rows * (size_t)columns);
  MPI_Sendrecv(row, rows, MPI_INT, left, 2, matrix + 1, 1, column, right, 2, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < rows * columns; ++i) {
    const int is_sent = i % columns == 1;
    CHECK(matrix[i] == (is_sent ? pattern(world.rank, 0, i) : 0));
  }
  MPI_Type_free(&column);
  free(matrix);
  free(row);
}

struct Particle {
  char kind;
  double position[3];
  short charge;
};

static void send_structs(struct World world, int count) {
  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  const int lengths[3] = {1, 3, 1};
  const MPI_Aint offsets[3] = {offsetof(struct Particle, kind), offsetof(struct Particle, position),
                               offsetof(struct Particle, charge)};
  const MPI_Datatype parts[3] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT};
  MPI_Datatype bare;
  MPI_Datatype particle;
  MPI_Type_create_struct(3, lengths, offsets, parts, &bare);
  MPI_Type_create_resized(bare, 0, sizeof(struct Particle), &particle);
  MPI_Type_commit(&particle);
  struct Particle* outgoing = calloc((size_t)count, sizeof *outgoing);
  struct Particle* incoming = calloc((size_t)count, sizeof *incoming);
  for (int i = 0; i < count; ++i) {
    outgoing[i].kind = (char)(i % 100);
    outgoing[i].charge = (short)(world.rank + i);
    for (int axis = 0; axis < 3; ++axis) outgoing[i].position[axis] = i + 0.25 * axis + world.rank;
  }
  MPI_Status status;
  MPI_Sendrecv(outgoing, count, particle, right, 3, incoming, count, particle, left, 3, MPI_COMM_WORLD,
               &status);
  int received = 0;
  MPI_Get_count(&status, particle, &received);
  CHECK(received == count);
  for (int i = 0; i < count; ++i) {
    CHECK(incoming[i].kind == (char)(i % 100));
    CHECK(incoming[i].charge == (short)(left + i));
    for (int axis = 0; axis < 3; ++axis) CHECK(incoming[i].position[axis] == i + 0.25 * axis + left);
  }
  MPI_Type_free(&bare);
  MPI_Type_free(&particle);
  free(outgoing);
  free(incoming);
}

// The inner box of a cube is sent and received into a corner.
static void send_subarray(struct World world, int side) {
  const int partner = world.rank ^ 1;
  if (partner >= world.size) return;
  const int sizes[3] = {side, side, side};
  const int box[3] = {side - 2, side - 2, side - 2};
  const int inner[3] = {1, 1, 1};
  const int corner[3] = {0, 0, 0};
  MPI_Datatype out;
  MPI_Datatype in;
  MPI_Type_create_subarray(3, sizes, box, inner, MPI_ORDER_C, MPI_INT, &out);
  MPI_Type_create_subarray(3, sizes, box, corner, MPI_ORDER_C, MPI_INT, &in);
  MPI_Type_commit(&out);
  MPI_Type_commit(&in);
  const int volume = side * side * side;
  int* cube = malloc(sizeof(int) * (size_t)volume);
  int* landed = calloc((size_t)volume, sizeof(int));
  for (int i = 0; i < volume; ++i) cube[i] = pattern(world.rank, 7, i);
  MPI_Sendrecv(cube, 1, out, partner, 4, landed, 1, in, partner, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int z = 0; z < side; ++z) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const int inside = z < side - 2 && y < side - 2 && x < side - 2;
        const int from = ((z + 1) * side + y + 1) * side + x + 1;
        CHECK(landed[(z * side + y) * side + x] == (inside ? pattern(partner, 7, from) : 0));
      }
    }
  }
  MPI_Type_free(&out);
  MPI_Type_free(&in);
  free(cube);
  free(landed);
}

static void send_indexed(struct World world, int blocks) {
  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  int* lengths = calloc((size_t)blocks, sizeof(int));
  int* offsets = calloc((size_t)blocks, sizeof(int));
  int total = 0;
  int extent = 0;
  for (int i = 0; i < blocks; ++i) {
    lengths[i] = i % 5;  // some blocks are empty
    offsets[i] = extent;
    total += lengths[i];
    extent += lengths[i] + 1;
  }
  int* values = malloc(sizeof(int) * (size_t)extent);
  int* packed = malloc(sizeof(int) * (size_t)total);
  for (int i = 0; i < extent; ++i) values[i] = pattern(world.rank, 9, i);
  MPI_Datatype pieces;
  MPI_Type_indexed(blocks, lengths, offsets, MPI_INT, &pieces);
  MPI_Type_commit(&pieces);
  MPI_Sendrecv(values, 1, pieces, right, 5, packed, total, MPI_INT, left, 5, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  int next = 0;
  for (int i = 0; i < blocks; ++i) {
    for (int k = 0; k < lengths[i]; ++k) CHECK(packed[next++] == pattern(left, 9, offsets[i] + k));
  }
  MPI_Type_free(&pieces);
  free(lengths);
  free(offsets);
  free(values);
  free(packed);
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  const int rows[] = {3, 100, 1000, 20000, 200000};
  for (int i = 0; i < 5; ++i) transpose_column(world, rows[i], 3);
  send_structs(world, 2);
  send_structs(world, 5000);
  send_subarray(world, 5);
  send_subarray(world, 40);
  send_indexed(world, 11);
  send_indexed(world, 20000);
  return end_program(world);
}
