/* The global calls: on any communicator, and those without one on the default communicator. */
#ifndef QMP_GLOBAL_H
#define QMP_GLOBAL_H

#include <string.h>

#include "checks.h"

static void multiply(void* inout, void* in) {
  ((double*)inout)[0] *= ((double*)in)[0];
  ((double*)inout)[1] = 2 * ((double*)inout)[1] + ((double*)in)[1];
}

static void global(QMP_comm_t comm) {
  const int own = QMP_comm_get_node_number(comm), count = QMP_comm_get_number_of_nodes(comm);
  const double total = count * (count + 1) / 2.0;
  CALL(QMP_comm_barrier(comm));
  char text[5000];
  for (size_t bytes = 0; bytes <= sizeof text; bytes += 2500) {
    memset(text, own, sizeof text);
    CALL(QMP_comm_broadcast(comm, text, bytes));
    for (size_t i = 0; i < sizeof text; ++i) EXPECT(text[i] == (i < bytes ? 0 : own));
  }
  int integer = own + 1;
  CALL(QMP_comm_sum_int(comm, &integer));
  EXPECT(integer == (int)total);
  uint64_t large = UINT64_MAX;
  CALL(QMP_comm_sum_uint64_t(comm, &large));
  EXPECT(large == UINT64_MAX * (uint64_t)count);
  float single = own + 1, singles[3] = {own + 1, 1, 0.5F};
  CALL(QMP_comm_sum_float(comm, &single));
  CALL(QMP_comm_sum_float_array(comm, singles, 3));
  EXPECT(single == total && singles[0] == total && singles[1] == count && singles[2] == count / 2.0F);
  double real = own + 1, reals[3] = {own + 1, 1, 0.5}, tiny = own == 0 ? 1 : 0x1p-53;
  CALL(QMP_comm_sum_double(comm, &real));
  CALL(QMP_comm_sum_double_array(comm, reals, 3));
  EXPECT(real == total && reals[0] == total && reals[1] == count && reals[2] == count / 2.0);
  CALL(QMP_comm_sum_double_extended(comm, &tiny));
  EXPECT(tiny == (double)(1 + (count - 1) * (long double)0x1p-53));
  long double extended = own + 1, extendeds[2] = {own + 1, 1 + 0x1p-60L};
  CALL(QMP_comm_sum_long_double(comm, &extended));
  CALL(QMP_comm_sum_long_double_array(comm, extendeds, 2));
  EXPECT(extended == total && extendeds[0] == total && extendeds[1] == count * (1 + 0x1p-60L));
  single = own;
  CALL(QMP_comm_max_float(comm, &single));
  EXPECT(single == count - 1);
  single = own + 7;
  CALL(QMP_comm_min_float(comm, &single));
  EXPECT(single == 7);
  real = -own;
  CALL(QMP_comm_max_double(comm, &real));
  EXPECT(real == 0);
  real = -own;
  CALL(QMP_comm_min_double(comm, &real));
  EXPECT(real == 1 - count);
  unsigned long bits = 1UL << own, expected = 0;
  for (int i = 0; i < count; ++i) expected ^= 1UL << i;
  CALL(QMP_comm_xor_ulong(comm, &bits));
  EXPECT(bits == expected);
  double both[2] = {own + 1, 1};
  CALL(QMP_comm_binary_reduction(comm, both, sizeof both, multiply));
  double factorial = 1;
  for (int i = 2; i <= count; ++i) factorial *= i;
  EXPECT(both[0] == factorial);
  double same[2] = {both[1], -both[1]};
  CALL(QMP_comm_max_double(comm, &same[0]));
  CALL(QMP_comm_max_double(comm, &same[1]));
  EXPECT(same[0] == both[1] && same[1] == -both[1]);
  FAILS(QMP_INVALID_ARG, QMP_comm_binary_reduction(comm, both, sizeof both, NULL));
  const int parts[] = {0, 1, 24, 9000};
  for (int p = 0; p < 4; ++p) {
    const int part = parts[p];
    char* const out = malloc((size_t)(part * count + 1));
    char* const in = malloc((size_t)(part * count + 1));
    for (int to = 0; to < count; ++to) memset(out + to * part, 16 * own + to, (size_t)part);
    CALL(QMP_comm_alltoall(comm, in, out, part));
    for (int i = 0; i < part * count; ++i) EXPECT(in[i] == (char)(16 * (i / part) + own));
    free(out);
    free(in);
  }
  FAILS(QMP_INVALID_ARG, QMP_comm_alltoall(comm, NULL, NULL, 1));
  FAILS(QMP_INVALID_ARG, QMP_comm_sum_double_array(comm, reals, -1));
  FAILS(QMP_INVALID_ARG, QMP_comm_sum_int(comm, NULL));
}

static void global_on_the_default(int node, int nodes) {
  int integer = 1;
  uint64_t large = 2;
  float single = 3, low = node, high = node, singles[] = {4};
  double real = 5, extended = 6, least = node, greatest = node, reals[] = {7};
  long double wide = 8, wides[] = {9};
  unsigned long bits = 5;
  char text = (char)node;
  double pair[2] = {2, 0};
  CALL(QMP_barrier());
  CALL(QMP_broadcast(&text, 1));
  CALL(QMP_sum_int(&integer));
  CALL(QMP_sum_uint64_t(&large));
  CALL(QMP_sum_float(&single));
  CALL(QMP_sum_float_array(singles, 1));
  CALL(QMP_sum_double(&real));
  CALL(QMP_sum_double_extended(&extended));
  CALL(QMP_sum_double_array(reals, 1));
  CALL(QMP_sum_long_double(&wide));
  CALL(QMP_sum_long_double_array(wides, 1));
  CALL(QMP_max_float(&high));
  CALL(QMP_min_float(&low));
  CALL(QMP_max_double(&greatest));
  CALL(QMP_min_double(&least));
  CALL(QMP_xor_ulong(&bits));
  CALL(QMP_binary_reduction(pair, sizeof pair, multiply));
  EXPECT(text == 0 && integer == nodes && large == 2 * (uint64_t)nodes && single == 3 * nodes);
  EXPECT(singles[0] == 4 * nodes && real == 5 * nodes && extended == 6 * nodes && reals[0] == 7 * nodes);
  EXPECT(wide == 8 * nodes && wides[0] == 9 * nodes && high == nodes - 1 && low == 0);
  EXPECT(greatest == nodes - 1 && least == 0 && bits == (nodes % 2 ? 5 : 0) &&
         pair[0] == (double)(1 << nodes));
}

#endif
