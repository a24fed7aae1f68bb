/* Divides the lattice of the arguments, and prints how. */
#include <apelib.h>

#include "checks.h"

enum { MOST = 8 };

static void print(const char* what, const int* values, int count) {
  printf("%s:", what);
  for (int i = 0; i < count; ++i) printf(" %d", values[i]);
  printf("\n");
}

/* The links of the machine between two ranks. */
static int distance(int one, int other) {
  int count, extents[APE_MAX_DIMS], at[APE_MAX_DIMS], there[APE_MAX_DIMS], links = 0;
  EXPECT(ape_dims(&count, extents) == APE_OK);
  EXPECT(ape_coords(one, at) == APE_OK && ape_coords(other, there) == APE_OK);
  for (int d = 0; d < count; ++d) {
    const int up = (there[d] - at[d] + extents[d]) % extents[d];
    links += up < extents[d] - up ? up : extents[d] - up;
  }
  return links;
}

int main(int argc, char** argv) {
  QMP_verbose(1);
  CALL(QMP_init_msg_passing(&argc, &argv, QMP_THREAD_SINGLE, NULL));
  int lattice[MOST];
  const int count = argc - 1;
  EXPECT(count <= MOST && argv[argc] == NULL);
  for (int d = 0; d < count; ++d) lattice[d] = atoi(argv[1 + d]);
  CALL(QMP_layout_grid(lattice, count));
  const int node = QMP_get_node_number();
  int links[MOST];
  for (int d = 0; d < count; ++d) {
    int at[MOST];
    for (int i = 0; i < count; ++i) at[i] = QMP_get_logical_coordinates()[i];
    ++at[d];
    float farthest = (float)distance(node, QMP_get_node_number_from(at));
    CALL(QMP_max_float(&farthest));
    links[d] = (int)farthest;
  }
  if (QMP_is_primary_node()) {
    print("machine", QMP_get_allocated_dimensions(), QMP_get_allocated_number_of_dimensions());
    print("grid", QMP_get_logical_dimensions(), QMP_get_logical_number_of_dimensions());
    print("subgrid", QMP_get_subgrid_dimensions(), count);
    print("links to the neighbours", links, count);
    int* const first = QMP_get_logical_coordinates_from(1 % QMP_get_number_of_nodes());
    print("node 1", first, count);
    free(first);
  }
  QMP_finalize_msg_passing();
  return 0;
}
