"""Writes mpif.h and the modules mpi and mpi_f08 for gfortran (MPI 4.1, 19.1)."""

from __future__ import annotations

from collections.abc import Sequence

from apenet.host.fortran_shims import SENTINELS, common_block, is_string
from apenet.host.mpi_header import HANDLES, Constant, Parameter, Prototype, with_c_ptr

_KINDS = {"MPI_ADDRESS_KIND": 8, "MPI_OFFSET_KIND": 8, "MPI_COUNT_KIND": 8, "MPI_INTEGER_KIND": 4}
_LAYOUT = {"MPI_STATUS_SIZE": 5, "MPI_SOURCE": 3, "MPI_TAG": 4, "MPI_ERROR": 5}
# Both false: a call that does not block gets a copy of a part of an array, and the compiler may move code over a wait.
_PROMISES = ("MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING")
_LOGICALS = frozenset(
    ("flag", "reorder", "periods", "remain_dims", "commute", "high", "weighted", "quiet", "set_flag", "get_flag")
)
_CALLBACKS = [
    f"MPI_{kind}_{what}" for kind in ("COMM", "TYPE", "WIN") for what in ("NULL_COPY_FN", "DUP_FN", "NULL_DELETE_FN")
]
_SYNC_REG = [
    "subroutine MPI_F_sync_reg(buf)",
    "!GCC$ ATTRIBUTES NO_ARG_CHECK :: buf",
    "type(*), dimension(*) :: buf",
    "end subroutine MPI_F_sync_reg",
]
_C_PTR = "use, intrinsic :: iso_c_binding, only: c_ptr"
_FUNCTIONS = {"double": "double precision", "MPI_Aint": "integer(8)"}


def mpif_h(constants: Sequence[Constant]) -> str:
    """The include file: constants alone, in lines that fixed and free form both take."""
    lines = ["! Written by apenet."]
    for name, value in [*_KINDS.items(), *_LAYOUT.items()]:
        lines += [f"integer {name}", f"parameter ({name}={value})"]
    for constant in constants:
        kind = "integer*8" if constant.kind == "MPI_Offset" else "integer"
        lines += [f"{kind} {constant.name}", f"parameter ({constant.name}={constant.value})"]
    lines += _sentinels()
    for name in _PROMISES:
        lines += [f"logical {name}", f"parameter ({name}=.false.)"]
    for name in ("MPI_WTIME", "MPI_WTICK"):
        lines += [f"double precision {name}", f"external {name}"]
    for name in ("MPI_AINT_ADD", "MPI_AINT_DIFF"):
        lines += [f"integer*8 {name}", f"external {name}"]
    lines += [f"external {name}" for name in _CALLBACKS]
    return "".join(line + "\n" if line.startswith("!") else f"      {line}\n" for line in lines)


def module_mpi(prototypes: Sequence[Prototype], constants: Sequence[Constant]) -> str:
    """The module mpi, with an explicit interface of each procedure."""
    lines = ["! Written by apenet.", "module mpi", "implicit none"]
    for name, value in [*_KINDS.items(), *_LAYOUT.items()]:
        lines.append(f"integer, parameter :: {name} = {value}")
    for constant in constants:
        lines.append(_number(constant))
    lines += [f"logical, parameter :: {name} = .false." for name in _PROMISES]
    lines += _sentinels()
    lines += [f"external :: {name}" for name in _CALLBACKS]
    # A buffer that is given back may be any variable, from which a c_ptr cannot be told.
    allocating = [each for each in with_c_ptr(prototypes) if "detach" not in each.name]
    lines += ["interface", *_interfaces([*prototypes, *allocating], is_checked=True), *_SYNC_REG, "end interface"]
    for each in allocating:
        name = each.name.removesuffix("_cptr")
        lines += [f"interface {name}", f"procedure {name}, {each.name}", "end interface"]
    lines.append("end module mpi")
    return "\n".join(lines) + "\n"


def module_mpi_f08(prototypes: Sequence[Prototype], constants: Sequence[Constant]) -> str:
    """The module mpi_f08: handles and statuses have types, and the error code is optional."""
    pointing = {each.name.removesuffix("_cptr"): each for each in with_c_ptr(prototypes)}
    prototypes = [pointing.get(each.name, each) for each in prototypes]
    lines = ["! Written by apenet.", "module apenet_mpi_calls", "interface"]
    lines += [*_interfaces(prototypes, is_checked=False), "end interface", "end module apenet_mpi_calls"]
    lines += ["module mpi_f08", _C_PTR, "use apenet_mpi_calls, only: &"]
    lines += [", &\n".join(f"in_c_{each.name} => {each.name}" for each in prototypes)]
    lines += ["implicit none", "private :: c_ptr, " + ", ".join(f"in_c_{each.name}" for each in prototypes)]
    lines += ["interface", *_SYNC_REG, "end interface"]
    for name, kind in _KINDS.items():
        lines.append(f"integer, parameter :: {name} = {kind}")
    lines.append(f"integer, parameter :: MPI_STATUS_SIZE = {_LAYOUT['MPI_STATUS_SIZE']}")
    for handle in HANDLES:
        lines += [f"type, bind(C) :: MPI_{handle}", "integer :: MPI_VAL", f"end type MPI_{handle}"]
    lines += ["type, bind(C) :: MPI_Status", "integer :: internal(2)", "integer :: MPI_SOURCE, MPI_TAG, MPI_ERROR"]
    lines.append("end type MPI_Status")
    for constant in constants:
        if constant.kind.removeprefix("MPI_") in HANDLES:
            value = f"{constant.kind}({_literal(constant)})"
            lines.append(f"type({constant.kind}), parameter :: {constant.name} = {value}")
        else:
            lines.append(_number(constant))
    lines += [f"logical, parameter :: {name} = .false." for name in _PROMISES]
    lines += _sentinels({"MPI_STATUS_IGNORE": "MPI_STATUS_IGNORE", "MPI_STATUSES_IGNORE": "MPI_STATUSES_IGNORE(1)"})
    lines += [f"external :: {name}" for name in _CALLBACKS]
    for handle in HANDLES:
        lines += [f"interface operator ({sign})\nprocedure {name}_{handle}\nend interface" for sign, name in _SIGNS]
    lines.append("contains")
    for handle in HANDLES:
        lines += [_comparison(handle, sign, name) for sign, name in _SIGNS]
    for prototype in prototypes:
        lines += _procedure(prototype)
    lines.append("end module mpi_f08")
    return "\n".join(lines) + "\n"


_SIGNS = (("==", "equal"), ("/=", "differ"))


def _comparison(handle: str, sign: str, name: str) -> str:
    return (
        f"elemental logical function {name}_{handle}(a, b)\ntype(MPI_{handle}), intent(in) :: a, b\n"
        f"{name}_{handle} = a%MPI_VAL {sign} b%MPI_VAL\nend function {name}_{handle}"
    )


def _sentinels(statuses: dict[str, str] | None = None) -> list[str]:
    lines = []
    for name, declaration in SENTINELS.items():
        typed = (statuses or {}).get(name)
        lines.append(declaration if typed is None else f"type(MPI_Status) :: {typed}")
        lines += [f"common /{common_block(name)}/ {name}", f"save /{common_block(name)}/"]
    return lines


def _number(constant: Constant) -> str:
    kind = "integer(8)" if constant.kind == "MPI_Offset" else "integer"
    return f"{kind}, parameter :: {constant.name} = {_literal(constant)}"


def _literal(constant: Constant) -> str:
    suffix = "_8" if constant.kind == "MPI_Offset" else ""
    # gfortran refuses the literal -2147483648, and handles with the highest bit are negative numbers.
    wrapped = (constant.value + 2**31) % 2**32 - 2**31 if not suffix else constant.value
    return f"(-2147483647-1){suffix}" if wrapped == -(2**31) else f"{wrapped}{suffix}"


def _interfaces(prototypes: Sequence[Prototype], *, is_checked: bool) -> list[str]:
    lines = []
    for prototype in prototypes:
        names = [each.name for each in prototype.parameters]
        if prototype.result in _FUNCTIONS:
            lines.append(f"function {prototype.name}({', '.join(names)})")
            lines.append(f"{_FUNCTIONS[prototype.result]} :: {prototype.name}")
        else:
            lines.append(f"subroutine {prototype.name}({', '.join([*names, 'ierror'])})")
            lines += [_C_PTR] if any(each.kind == "c_ptr" for each in prototype.parameters) else []
        for parameter in prototype.parameters:
            lines += _dummy(parameter, is_checked=is_checked)
        if prototype.result in _FUNCTIONS:
            lines.append(f"end function {prototype.name}")
        else:
            lines += ["integer :: ierror", f"end subroutine {prototype.name}"]
    return lines


def _dummy(parameter: Parameter, *, is_checked: bool) -> list[str]:
    """Its declaration. Unchecked, statuses and arrays of handles take any type."""
    name = parameter.name
    if _is_choice(parameter) or (not is_checked and (parameter.kind == "MPI_Status" or _is_handles(parameter))):
        return [f"!GCC$ ATTRIBUTES NO_ARG_CHECK :: {name}", f"type(*), dimension(*) :: {name}"]
    if parameter.kind == "MPI_Status":
        return [f"integer :: {name}(5{', *' if _is_many(parameter) else ''})"]
    return [_plain(parameter)]


def _plain(parameter: Parameter) -> str:
    name = parameter.name
    if parameter.kind.endswith("_function"):
        return f"external :: {name}"
    if is_string(parameter):
        return f"character(len=*) :: {name}"
    if parameter.kind == "c_ptr":
        return f"type(c_ptr) :: {name}"
    if name in ("attribute_val", "extra_state", "baseptr"):
        return f"integer(8) :: {name}"
    kind = "integer"
    if parameter.kind in ("MPI_Aint", "MPI_Offset", "MPI_Count"):
        kind = "integer(8)"
    elif name in _LOGICALS and parameter.kind == "int":
        kind = "logical"
    extents = "(3, *)" if parameter.extents.count("[") > 1 else "(*)" if _is_many(parameter) else ""
    return f"{kind} :: {name}{extents}"


def _is_choice(parameter: Parameter) -> bool:
    return parameter.kind == "void" and parameter.name not in ("attribute_val", "extra_state", "baseptr")


def _is_many(parameter: Parameter) -> bool:
    return parameter.is_array or parameter.name.startswith("array_of_") or parameter.name.endswith("weights")


def _is_handles(parameter: Parameter) -> bool:
    return bool(parameter.handle) and _is_many(parameter)


def _procedure(prototype: Prototype) -> list[str]:
    names = [each.name for each in prototype.parameters]
    declared = []
    for parameter in prototype.parameters:
        if parameter.handle or parameter.kind == "MPI_Status":
            kind = parameter.kind
            declared.append(f"type({kind}) :: {parameter.name}{'(*)' if _is_many(parameter) else ''}")
        else:
            declared += _dummy(parameter, is_checked=True)
    passed = [
        f"{each.name}%MPI_VAL" if each.handle and not _is_many(each) else each.name for each in prototype.parameters
    ]
    called = f"in_c_{prototype.name}"
    name = prototype.name.removesuffix("_cptr")
    if prototype.result in _FUNCTIONS:
        head = f"function {name}({', '.join(names)})"
        result = [f"{_FUNCTIONS[prototype.result]} :: {name}"]
        return [head, *declared, *result, f"{name} = {called}({', '.join(passed)})", f"end function {name}"]
    return [
        f"subroutine {name}({', '.join([*names, 'ierror'])})",
        *declared,
        "integer, optional :: ierror",
        "integer :: code",
        f"call {called}({', '.join([*passed, 'code'])})",
        "if (present(ierror)) ierror = code",
        f"end subroutine {name}",
    ]
