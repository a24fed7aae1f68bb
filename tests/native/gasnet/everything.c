/* conformance.c in the configuration in which all memory of a process is open to the others: what it takes
 * for a segment there is static memory of the program. */
#define GASNET_SEGMENT_EVERYTHING 1
#include "conformance.c"
