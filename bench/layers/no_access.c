// For layers in which a process cannot read or write the memory of another one by itself.
#include "layer.h"

void layer_begin_access(int slot, long bytes, bool gets) {
  (void)slot;
  (void)bytes;
  fail("this layer has no %s", gets ? "get" : "put");
}

void layer_end_access(int slot) {
  (void)slot;
}
