"""Writes the C functions behind MPI's Fortran procedures, for MPICH's headers and gfortran.

A procedure MPI_X is the external symbol mpi_x_, takes all arguments by reference, and the lengths of its strings after
them. MPICH's handles are integers in both languages, and so are statuses (MPI 4.1, 19.3.4 and 19.3.5), so arrays pass
through; gfortran's logical values are 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from apenet.host.mpi_header import Parameter, Prototype, with_c_ptr

SENTINELS = {
    "MPI_BOTTOM": "integer MPI_BOTTOM",
    "MPI_IN_PLACE": "integer MPI_IN_PLACE",
    "MPI_STATUS_IGNORE": "integer MPI_STATUS_IGNORE(5)",
    "MPI_STATUSES_IGNORE": "integer MPI_STATUSES_IGNORE(5,1)",
    "MPI_UNWEIGHTED": "integer MPI_UNWEIGHTED(1)",
    "MPI_WEIGHTS_EMPTY": "integer MPI_WEIGHTS_EMPTY(1)",
    "MPI_ERRCODES_IGNORE": "integer MPI_ERRCODES_IGNORE(1)",
}
"""Variables that a program passes for their address, and their declarations. Each is alone in a common block."""


def common_block(sentinel: str) -> str:
    """The common block of a sentinel."""
    return f"apenet_{sentinel.lower()}"


_HEAD = """#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(MPI_Comm) == 4 && sizeof(MPI_Status) == 20, "expected the headers of MPICH");

static void* buffer_in_c(const void* given) {
  if (given == apenet_mpi_bottom_) return MPI_BOTTOM;
  if (given == apenet_mpi_in_place_) return MPI_IN_PLACE;
  return (void*)given;
}

static MPI_Status* status_in_c(const void* given) {
  const int is_ignored = given == apenet_mpi_status_ignore_ || given == apenet_mpi_statuses_ignore_;
  return is_ignored ? MPI_STATUS_IGNORE : (MPI_Status*)given;
}

static int* weights_in_c(const void* given) {
  if (given == apenet_mpi_unweighted_) return (int*)MPI_UNWEIGHTED;
  if (given == apenet_mpi_weights_empty_) return (int*)MPI_WEIGHTS_EMPTY;
  return (int*)given;
}

/* A string of Fortran, without the blanks at its end. The caller frees it. */
static char* from_fortran(const char* text, size_t length) {
  while (length > 0 && text[length - 1] == ' ') --length;
  char* copy = malloc(length + 1);
  if (copy == NULL) abort();
  memcpy(copy, text, length);
  copy[length] = 0;
  return copy;
}

/* Room for any string of MPI. It holds the given one, which stays where MPI writes none. The caller frees it. */
static char* room(const char* given, size_t length) {
  char* text = calloc(length + 8192, 1);
  if (text == NULL) abort();
  memcpy(text, given, length);
  return text;
}

static void to_fortran(char* target, size_t length, const char* text) {
  const size_t used = strnlen(text, length);
  memcpy(target, text, used);
  memset(target + used, ' ', length - used);
}

/* Fortran counts from one. */
static void from_one(int* index) {
  if (*index != MPI_UNDEFINED) ++*index;
}

void mpi_init_(MPI_Fint* ierror) { *ierror = MPI_Init(NULL, NULL); }

/* The compiler must not keep a buffer in registers over this call. */
void mpi_f_sync_reg_(void* buffer) {}

void mpi_init_thread_(MPI_Fint* required, MPI_Fint* provided, MPI_Fint* ierror) {
  *ierror = MPI_Init_thread(NULL, NULL, *required, provided);
}
"""

# Fortran's callbacks take everything by reference and give their error code in the last argument.
_ATTRIBUTES = """
typedef void Copy@(MPI_Fint*, MPI_Fint*, MPI_Aint*, MPI_Aint*, MPI_Aint*, MPI_Fint*, MPI_Fint*);
typedef void Delete@(MPI_Fint*, MPI_Fint*, MPI_Aint*, MPI_Aint*, MPI_Fint*);
typedef struct Keyval@ {
  Copy@* copy;
  Delete@* erase;
  MPI_Aint extra_state;
} Keyval@;

static int copy_@(MPI_@ object, int keyval, void* state, void* in, void* out, int* flag) {
  const Keyval@* of = state;
  MPI_Fint code = MPI_SUCCESS, from = (MPI_Fint)object;
  MPI_Aint extra = of->extra_state, value = (MPI_Aint)in, copied = 0;
  of->copy(&from, &keyval, &extra, &value, &copied, flag, &code);
  *(void**)out = (void*)copied;
  return code;
}

static int erase_@(MPI_@ object, int keyval, void* value, void* state) {
  const Keyval@* of = state;
  MPI_Fint code = MPI_SUCCESS, from = (MPI_Fint)object;
  MPI_Aint extra = of->extra_state, old = (MPI_Aint)value;
  of->erase(&from, &keyval, &old, &extra, &code);
  return code;
}

void mpi_#_null_copy_fn_(MPI_Fint* object, MPI_Fint* keyval, MPI_Aint* extra, MPI_Aint* in, MPI_Aint* out,
                         MPI_Fint* flag, MPI_Fint* ierror) {
  *flag = 0;
  *ierror = MPI_SUCCESS;
}

void mpi_#_dup_fn_(MPI_Fint* object, MPI_Fint* keyval, MPI_Aint* extra, MPI_Aint* in, MPI_Aint* out,
                   MPI_Fint* flag, MPI_Fint* ierror) {
  *out = *in;
  *flag = 1;
  *ierror = MPI_SUCCESS;
}

void mpi_#_null_delete_fn_(MPI_Fint* object, MPI_Fint* keyval, MPI_Aint* value, MPI_Aint* extra,
                           MPI_Fint* ierror) {
  *ierror = MPI_SUCCESS;
}

/* What belongs to a key lives as long as the process: objects may outlive MPI_%_free_keyval. */
void mpi_#_create_keyval_(Copy@* copy, Delete@* erase, MPI_Fint* keyval, MPI_Aint* extra_state, MPI_Fint* ierror) {
  Keyval@* of = malloc(sizeof *of);
  if (of == NULL) abort();
  *of = (Keyval@){copy, erase, *extra_state};
  *ierror = MPI_%_create_keyval(copy_@, erase_@, keyval, of);
}

void mpi_#_set_attr_(MPI_Fint* object, MPI_Fint* keyval, MPI_Aint* value, MPI_Fint* ierror) {
  *ierror = MPI_%_set_attr((MPI_@)*object, *keyval, (void*)*value);
}

/* The attributes of MPI itself are addresses of integers in C. */
void mpi_#_get_attr_(MPI_Fint* object, MPI_Fint* keyval, MPI_Aint* value, MPI_Fint* flag, MPI_Fint* ierror) {
  void* found = NULL;
  *ierror = MPI_%_get_attr((MPI_@)*object, *keyval, &found, flag);
  if (*ierror != MPI_SUCCESS || !*flag) return;
  const int k = *keyval;
  const int is_integer = k == MPI_TAG_UB || k == MPI_HOST || k == MPI_IO || k == MPI_WTIME_IS_GLOBAL ||
                         k == MPI_UNIVERSE_SIZE || k == MPI_LASTUSEDCODE || k == MPI_APPNUM ||
                         k == MPI_WIN_DISP_UNIT || k == MPI_WIN_CREATE_FLAVOR || k == MPI_WIN_MODEL;
  *value = is_integer ? *(int*)found : k == MPI_WIN_SIZE ? *(MPI_Aint*)found : (MPI_Aint)found;
}
"""

_WRITTEN_BY_HAND = frozenset(("MPI_Init", "MPI_Init_thread")) | frozenset(
    f"MPI_{kind}_{what}" for kind in ("Comm", "Type", "Win") for what in ("create_keyval", "set_attr", "get_attr")
)

# Indices among requests, which count from one in Fortran: of the name in C, and how many there are.
_INDICES = {
    "MPI_Waitany": "from_one(indx);",
    "MPI_Testany": "from_one(indx);",
    "MPI_Waitsome": "for (int i = 0; i < *outcount; ++i) from_one(&array_of_indices[i]);",
    "MPI_Testsome": "for (int i = 0; i < *outcount; ++i) from_one(&array_of_indices[i]);",
}


def is_string(parameter: Parameter) -> bool:
    """Whether it is a character string."""
    return parameter.kind == "char" and parameter.pointers + parameter.is_array == 1


def shims(prototypes: Sequence[Prototype]) -> str:
    """The text of a C file with a function for each of the prototypes."""
    parts = ["/* Written by apenet. */", "#include <mpi.h>"]
    parts += [f"_Alignas(16) int {common_block(name)}_[{5 if 'STATUS' in name else 1}];" for name in SENTINELS]
    parts.append(_HEAD)
    for short, name in (("Comm", "Comm"), ("Type", "Datatype"), ("Win", "Win")):
        parts.append(_ATTRIBUTES.replace("@", name).replace("%", short).replace("#", short.lower()))
    written = [*prototypes, *with_c_ptr(prototypes)]
    parts += [_shim(each) for each in written if each.name not in _WRITTEN_BY_HAND]
    return "\n".join(parts) + "\n"


def _shim(prototype: Prototype) -> str:
    strings = [each for each in prototype.parameters if is_string(each)]
    taken = [_declared(each) for each in prototype.parameters]
    passed = ", ".join(_passed(each) for each in prototype.parameters)
    if prototype.result != "int":
        return (
            f"{prototype.result} {prototype.name.lower()}_({', '.join(taken) or 'void'}) "
            f"{{ return {prototype.name}({passed}); }}\n"
        )
    taken += ["MPI_Fint* ierror", *(f"size_t {each.name}_length" for each in strings)]
    before, after = [], []
    for each in strings:
        maker = "from_fortran" if each.is_constant else "room"
        before.append(f"char* {each.name}_in_c = {maker}({each.name}, {each.name}_length);")
        if not each.is_constant:
            after.append(f"if (*ierror == MPI_SUCCESS) to_fortran({each.name}, {each.name}_length, {each.name}_in_c);")
        after.append(f"free({each.name}_in_c);")
    for each in prototype.parameters:
        if each.kind == "MPI_File" and each.pointers:
            before.append(f"MPI_File {each.name}_in_c = MPI_File_f2c(*{each.name});")
            after.append(f"*{each.name} = MPI_File_c2f({each.name}_in_c);")
        if _is_discarded(each):
            before.append(f"void* {each.name}_in_c = NULL;")
    if prototype.name in _INDICES:
        after.append(f"if (*ierror == MPI_SUCCESS || *ierror == MPI_ERR_IN_STATUS) {{ {_INDICES[prototype.name]} }}")
    lines = [*before, f"*ierror = {prototype.name.removesuffix('_cptr')}({passed});", *after]
    body = "".join(f"  {line}\n" for line in lines)
    return f"void {prototype.name.lower()}_({', '.join(taken)}) {{\n{body}}}\n"


def _declared(parameter: Parameter) -> str:
    kind = "MPI_Fint" if parameter.kind in ("int", "MPI_File") else parameter.kind
    if parameter.kind.endswith("_function"):
        return f"{kind}* {parameter.name}"
    if parameter.extents.count("[") > 1:
        return f"{kind} {parameter.name}{parameter.extents}"
    if kind == "c_ptr":
        return f"void* {parameter.name}"
    return f"{'const ' if parameter.is_constant else ''}{kind}* {parameter.name}"


def _is_discarded(parameter: Parameter) -> bool:
    """An address for which mpif.h and the module mpi have no room: there this argument is any variable."""
    return parameter.kind == "void" and parameter.name == "buffer_addr"


def _passed(parameter: Parameter) -> str:
    name = parameter.name
    if _is_discarded(parameter):
        return f"&{name}_in_c"
    if is_string(parameter):
        return f"{name}_in_c"
    if parameter.kind == "MPI_File":
        return f"&{name}_in_c" if parameter.pointers else f"MPI_File_f2c(*{name})"
    if not parameter.pointers and not parameter.is_array:
        return f"*{name}"
    translation = ""
    if parameter.kind == "MPI_Status":
        translation = "status_in_c"
    elif parameter.kind == "void" and name != "baseptr":
        translation = "buffer_in_c"
    elif "weights" in name:
        translation = "weights_in_c"
    return f"{translation}({name})" if translation else name
