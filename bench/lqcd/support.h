// What every file of this folder may need.
#ifndef APENET_LQCD_SUPPORT_H
#define APENET_LQCD_SUPPORT_H

#include <stddef.h>

// Both end the program: with status 1, and with status 2 for bad input.
void fail(const char* format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void refuse(const char* option, const char* value, const char* expected) __attribute__((noreturn));

// Zeroed memory, from a cache line's boundary on. Fails if there is none.
void* allocate(size_t count, size_t bytes);

// Virtual time, or the host's outside a simulation. From the second of the first call on: a double holds the
// nanoseconds of that, but not those of a clock that has run for years.
double time_us(void);

// Four numbers of at least 1, such as 4x4x4x8.
void parse_extents(const char* option, const char* text, int extents[4]);
double parse_number(const char* option, const char* text, double least, double most);

#endif
