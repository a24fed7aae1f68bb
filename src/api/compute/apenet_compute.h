/* apenet_compute.h: lets a program tell the simulated machine what it computes between communication
 * calls.
 *
 * Under `apenet run`, computation takes no virtual time unless it is measured or declared here. Outside
 * the simulator both calls do nothing. Only this header is needed, in C11 or C++; nothing needs to be
 * linked. */
#ifndef APENET_COMPUTE_H
#define APENET_COMPUTE_H

#ifdef __cplusplus
extern "C" {
#endif

/* The calling process has computed for this long on the simulated machine. Negative or non-finite values
 * are ignored. */
__attribute__((weak)) void ape_compute_seconds(double seconds);

/* The calling process has executed this many floating-point operations, at the machine's rate. */
__attribute__((weak)) void ape_compute_flops(double flops);

/* The library that `apenet run` preloads defines these functions; without it they are not called. (A macro
 * does not expand inside itself.) */
#define ape_compute_seconds(seconds) (ape_compute_seconds ? ape_compute_seconds(seconds) : (void)(seconds))
#define ape_compute_flops(flops) (ape_compute_flops ? ape_compute_flops(flops) : (void)(flops))

#ifdef __cplusplus
}
#endif

#endif
