/* apenet_compute.h: how a program tells the simulated machine what it computes between two communication
 * calls.
 *
 * Under `apenet run` computation takes no virtual time unless it is measured or declared here. Outside the
 * simulator both calls do nothing, and nothing needs to be linked: C11 or C++, this header is all. */
#ifndef APENET_COMPUTE_H
#define APENET_COMPUTE_H

#ifdef __cplusplus
extern "C" {
#endif

/* The calling process has computed for this long on the simulated machine. Negative or not finite: ignored.
 */
__attribute__((weak)) void ape_compute_seconds(double seconds);

/* The calling process has done this many floating-point operations, at the machine's rate. */
__attribute__((weak)) void ape_compute_flops(double flops);

/* The library that `apenet run` preloads defines them; without it the calls are not made. (A macro does not
 * expand inside itself.) */
#define ape_compute_seconds(seconds) (ape_compute_seconds ? ape_compute_seconds(seconds) : (void)(seconds))
#define ape_compute_flops(flops) (ape_compute_flops ? ape_compute_flops(flops) : (void)(flops))

#ifdef __cplusplus
}
#endif

#endif
