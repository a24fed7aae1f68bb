/* The name by which most programs include it. */
#include "cuda_runtime_api.h"
