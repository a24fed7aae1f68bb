/* GASNet-1: the core and the extended interface of the GASNet specification 1.8.1, on the cards of the
 * simulator.
 *
 * Compile with one of GASNET_SEQ, GASNET_PAR and GASNET_PARSYNC and link the library of the same mode:
 *   apenet cc --gasnet-seq | --gasnet-par | --gasnet-parsync prog.c
 * The names, arguments and rules are those of the specification (github BerkeleyLab/gasnet,
 * docs/gasnet.texi). docs/apis/gasnet.md says what is approximated, and what each call costs. Sizes are
 * bytes. */
#ifndef _INCLUDED_GASNET_H
#define _INCLUDED_GASNET_H

#include "gasnet_calls.h"
#include "gasnet_coll.h"

#endif
