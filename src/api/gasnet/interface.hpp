// The numbers and types of the public header. The mode does not matter to them.
#pragma once

#define GASNET_PAR 1
#include "api/gasnet/gasnet.h"
