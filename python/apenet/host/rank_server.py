"""Forks the ranks of a Python script from one interpreter, which has imported numpy if the script does.

A hundred interpreters that each import numpy take many seconds to start; forked ones share that work. The program's
own interpreter runs this file, so it imports nothing of this package:

    python rank_server.py PLAN SCRIPT ARGUMENT...

PLAN is the descriptor of a JSON plan from `launch.py`: the variables of each rank, and its descriptors in the order
input, output, error, process manager. The server writes the process ids to standard output as a JSON list. Then it
ends, before any rank begins, and the ranks become children of the run's supervisor.
"""

from __future__ import annotations

import builtins
import gc
import importlib.machinery
import importlib.util
import json
import os
import sys
import time
import types
from typing import Any

# numpy is safe to share: its import starts no thread and opens no file. (Each rank renews its random state.)
_SHARED_MODULE = "numpy"


def _serve(plan: dict[str, Any], script: str) -> None:
    """Forks the ranks. Returns in the ranks only."""
    with open(script, "rb") as file:  # noqa: PTH123 - as the interpreter does it
        code = compile(file.read(), script, "exec", dont_inherit=True)
    if _imports(code, _SHARED_MODULE) and importlib.util.find_spec(_SHARED_MODULE) is not None:
        importlib.import_module(_SHARED_MODULE)
    gc.freeze()  # otherwise every rank's first garbage collection writes to, and so copies, all shared pages
    gate, hold = os.pipe()
    process_ids = []
    for rank in plan["ranks"]:
        process_id = os.fork()
        if process_id == 0:
            os.close(hold)
            _become(rank, gate, plan["descriptors"], plan["manager"])
            _run(code, script)
        os.setpgid(process_id, process_id)
        process_ids.append(process_id)
    os.write(1, json.dumps(process_ids).encode())
    os._exit(0)


def _imports(code: types.CodeType, module: str) -> bool:
    """Whether the code, or any function in it, imports the module."""
    if any(name == module or name.startswith(f"{module}.") for name in code.co_names):
        return True
    return any(_imports(part, module) for part in code.co_consts if isinstance(part, types.CodeType))


def _become(rank: dict[str, Any], gate: int, descriptors: list[int], manager_number: int) -> None:
    """Turns this process into a rank: process group, descriptors, environment."""
    os.setpgid(0, 0)
    *streams, manager = rank["descriptors"]
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for descriptor in descriptors:
        if descriptor != manager:
            os.close(descriptor)
    os.environ.update(rank["environment"])
    time.time()  # the shim sees the rank's variables before the script can change them
    os.read(gate, 1)  # returns when the server has ended
    os.close(gate)
    if manager != manager_number:
        os.dup2(manager, manager_number)
        os.close(manager)
    random = sys.modules.get(f"{_SHARED_MODULE}.random")
    if random is not None:
        random.seed()


def _run(code: types.CodeType, script: str) -> None:
    """Runs the script as the interpreter would, and ends the process."""
    main = types.ModuleType("__main__")
    main.__dict__.update(
        __file__=script,
        __builtins__=builtins,
        __loader__=importlib.machinery.SourceFileLoader("__main__", script),
        __cached__=None,
    )
    sys.modules["__main__"] = main
    try:
        exec(code, main.__dict__)  # noqa: S102 - the user's program
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # reported in the same way as the interpreter does
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.exit(1)
    sys.exit(0)


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[1])) as _file:
        _plan = json.load(_file)
    _server, sys.argv[:] = (
        sys.modules["__main__"],
        sys.argv[2:],
    )  # keeps the module alive after it is no longer __main__
    sys.orig_argv[1:] = sys.argv
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(sys.argv[0]))  # noqa: PTH120
    _serve(_plan, sys.argv[0])
