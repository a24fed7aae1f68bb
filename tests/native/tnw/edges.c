// The links of each rank's node that lead to a neighbour.
#include <stdio.h>
#include <tnw.h>

int main(void) {
  static const char* const names[TNW_LINKS] = {"x+", "x-", "y+", "y-", "z+", "z-"};
  int rank = 0;
  int size = 0;
  int at[3];
  int extents[3];
  if (tnw_open() != TNW_OK || tnw_rank(&rank, &size) != TNW_OK) return 1;
  if (tnw_coordinates(at, extents) != TNW_OK) return 1;
  printf("%d (%d,%d,%d):", rank, at[0], at[1], at[2]);
  for (int link = 0; link < TNW_LINKS; ++link) {
    int neighbour = 0;
    if (tnw_neighbour((tnw_link)link, &neighbour) == TNW_OK) printf(" %s", names[link]);
  }
  printf("\n");
  return tnw_close() == TNW_OK ? 0 : 1;
}
