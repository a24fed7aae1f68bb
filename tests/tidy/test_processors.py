"""What one processor has and another has not stands behind a question for the processor."""

import re

import pytest
from project import code, cxx_files, name

# System calls that the kernel has on x86-64, and not on aarch64.
OLD_CALLS = [
    "access",
    "alarm",
    "arch_prctl",
    "chmod",
    "chown",
    "creat",
    "dup2",
    "epoll_create",
    "epoll_wait",
    "eventfd",
    "fork",
    "getdents",
    "getpgrp",
    "inotify_init",
    "lchown",
    "link",
    "lstat",
    "mkdir",
    "mknod",
    "open",
    "pause",
    "pipe",
    "poll",
    "readlink",
    "rename",
    "rmdir",
    "select",
    "signalfd",
    "stat",
    "symlink",
    "time",
    "unlink",
    "utime",
    "utimes",
    "vfork",
]
OLD = re.compile(rf"\bSYS_(?:{'|'.join(OLD_CALLS)})\b")


def lines_for_every_processor(source):
    """The lines that are compiled on processors other than x86-64, with their numbers."""
    of_one = []  # for each #if around the line: whether the block is for x86-64 only
    others = []  # whether the blocks before it were for all others
    for number, line in enumerate(source.splitlines(), 1):
        directive = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)", line)
        if directive is None:
            if not any(of_one):
                yield number, line
            continue
        kind, condition = directive.groups()
        if kind in ("elif", "else"):
            of_one[-1] = others[-1]
        elif kind == "endif":
            of_one.pop()
            others.pop()
        else:
            of_one.append("__x86_64__" in condition and "!" not in condition)
            others.append("!defined(__x86_64__)" in condition)


def test_blocks_for_x86_64_are_recognised():
    source = "a\n#if defined(__x86_64__)\nb\n#if 1\nc\n#endif\n#else\nd\n#endif\ne\n"
    assert [line for _, line in lines_for_every_processor(source)] == ["a", "d", "e"]
    opposite = "#if !defined(__x86_64__)\nf\n#else\ng\n#endif\nh\n"
    assert [line for _, line in lines_for_every_processor(opposite)] == ["f", "h"]


@pytest.mark.parametrize("path", cxx_files("src"), ids=name)
def test_old_calls_are_asked_for_by_the_header_that_every_processor_has(path):
    """That is runtime/ipc/old_calls.hpp."""
    found = [f"{number}: {line}" for number, line in lines_for_every_processor(code(path)) if OLD.search(line)]
    assert found == []
