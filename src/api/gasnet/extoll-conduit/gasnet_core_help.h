/* GASNet's conduit for EXTOLL: it uses GASNet's helpers and adds none. */
#ifndef _IN_GASNET_H
#error "clients include gasnet.h"
#endif
#ifndef _GASNET_CORE_HELP_H
#define _GASNET_CORE_HELP_H

#include <gasnet_help.h>

#endif
