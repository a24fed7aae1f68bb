"""Writes the values of machines/*.toml as C++, for tests/support/machines.hpp: machine_tables.py OUT FILE..."""

import importlib.util
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

INHERIT = Path(__file__).parents[2] / "python" / "apenet" / "machine" / "inherit.py"
spec = importlib.util.spec_from_file_location("inherit", INHERIT)
inherit = importlib.util.module_from_spec(spec)
spec.loader.exec_module(inherit)

HEAD = """// Written by tests/support/machine_tables.py from machines/*.toml.
#include "support/machines.hpp"

namespace apenet::test {

schema::Entries machine_values(std::string_view name) {
  using Wholes [[maybe_unused]] = std::vector<std::int64_t>;
  using Numbers [[maybe_unused]] = std::vector<double>;
"""
TAIL = """  throw std::invalid_argument("no machine file " + std::string(name));
}

}  // namespace apenet::test
"""


def values(table: dict, path: tuple[str, ...] = ()) -> Iterator[tuple[str, object]]:
    """The values that the core describes a machine by, each with its full key."""
    for key, entry in table.items():
        if isinstance(entry, dict) and "value" in entry:
            yield ".".join((*path, key)), entry["value"]
        elif isinstance(entry, dict) and key != "results":
            yield from values(entry, (*path, key))
        elif (*path, key) == ("machine", "name") or (*path, key)[-2:] == ("card", "kind"):
            yield ".".join((*path, key)), entry


def tables(path: Path) -> dict:
    """The tables of a machine file, with those of its bases."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    for name, rail_base in inherit.rail_bases(table).items():
        below = tables(path.with_name(f"{rail_base}.toml"))
        table["rail"][name] = inherit.merged_rail(table["rail"][name], below)
    base = inherit.base_of(table)
    return table if base is None else inherit.merged(table, tables(path.with_name(f"{base}.toml")))


def literal(value: object) -> str:
    """A value as C++ writes it."""
    match value:
        case str():
            return f'std::string(R"({value})")'
        case list() if any(isinstance(one, float) for one in value):
            return f"Numbers{{{', '.join(repr(float(one)) for one in value)}}}"
        case list():
            return f"Wholes{{{', '.join(map(str, value))}}}"
        case int():
            return f"std::int64_t{{{value}}}"
        case _:
            return repr(value)


def table_of(path: Path) -> str:
    """The branch that returns the values of a machine file."""
    lines = [f'  if (name == "{path.stem}") {{', "    return {"]
    for key, value in values(tables(path)):
        text = (path.parent / str(value)).read_text(encoding="utf-8") if key.endswith("_file") else value
        lines.append(f'        {{"{key}", {literal(text)}}},')
    return "\n".join([*lines, "    };", "  }", ""])


if __name__ == "__main__":
    out, *files = map(Path, sys.argv[1:])
    out.write_text(HEAD + "".join(map(table_of, files)) + TAIL, encoding="utf-8")
