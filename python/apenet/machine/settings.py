"""Settings: a machine's table with one `key.path=value` changed, as `--set` takes it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from apenet.base.errors import InputError, texts
from apenet.base.tomltext import MOST_KEY_PARTS, TomlError, parse_toml
from apenet.machine.near import did_you_mean, near_keys
from apenet.machine.rates import RATE_KEYS, clock_of, is_rate
from apenet.machine.schema import OVERRIDES, ROUTER_ALTERNATIVES, SHAPES, MachineFile, RawTable

# Keys that are no parameters: their values stand bare in the file.
_BARE = {("card", "kind"), ("machine", "name"), ("machine", "title"), ("machine", "summary")}


def setting_texts(settings: Iterable[str] | Mapping[str, object]) -> tuple[str, ...]:
    """Settings as texts `key.path=value`, from such or from keys and values."""
    if not isinstance(settings, Mapping):
        return texts("settings", settings)
    return texts("settings", [f"{key}={_as_toml(key, value)}" for key, value in settings.items()])


def _as_toml(key: str, value: object) -> str:
    """A value from Python as `--set` takes it; numpy's numbers and arrays as well."""
    if isinstance(value, str):
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return f"[{', '.join(_as_toml(key, one) for one in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    raise InputError("settings", f"{key}: {value!r}", "a number, a text, or a list of them")


def applied(table: RawTable, setting: str) -> RawTable:
    """A copy of the table with one `key.path=value` in it. Unknown keys are left to `check`."""
    key, equals, text = setting.partition("=")
    path = tuple(key.strip().split("."))
    sections = list(MachineFile.model_fields)
    is_section = path[0] in sections or difflib.get_close_matches(path[0], sections, n=1, cutoff=0.75)
    if equals and not is_section:
        meant = near_keys(key.strip(), table)
        if meant:
            raise InputError("--set", setting, f"key.path=value with a key of the machine: {did_you_mean(meant)}")
    is_key = all(re.fullmatch(r"[A-Za-z0-9_-]+", step) for step in path)
    if not equals or not is_key or not 2 <= len(path) <= MOST_KEY_PARTS:  # noqa: PLR2004
        raise InputError("--set", setting, "key.path=value, such as bus.clock_mhz=66")
    if path[0] in ("results", "partition"):
        what = "published results cannot be changed" if path[0] == "results" else "--partition takes any box"
        raise InputError("--set", setting, f"a parameter of the machine: {what}")
    value = text if is_rate(path[2:] if path[0] == "rail" else path) else _toml_value(text.strip(), setting)
    rails = table.get("rail", {})
    if path[0] == "rail" and isinstance(rails, dict) and path[1] not in rails:
        known = " or ".join(f"rail.{name}" for name in rails)
        raise InputError("--set", setting, f"a key of {known}" if known else "a key of a machine that has rails")
    if path[0] == "rail" and len(path) > 3 and isinstance(rail := rails[path[1]], dict):  # noqa: PLR2004
        changed = _changed(rail, path[2:], value, setting)
        return {**table, "rail": {**table["rail"], path[1]: changed}}
    return _changed(table, path, value, setting)


def _changed(table: RawTable, path: tuple[str, ...], value: object, setting: str) -> RawTable:
    """The same in the table of the machine, or of a rail."""
    if is_rate(path):
        path, value = clock_of(table, path, str(value), setting)
    if path == ("network", "topology"):
        table = _without_shape(table, value)
    if path[0] == "router":
        table = _without_alternatives(table, path[-1])
    entry = value if path in _BARE else {"value": value, "class": "set", "source": f"--set {setting}"}
    return _replaced(table, path, entry, setting)


def _without_shape(table: RawTable, topology: object) -> RawTable:
    """Another topology: what describes the shape of the old one goes with it."""
    network = table.get("network")
    shape = SHAPES.get(topology) if isinstance(topology, str) else None
    if shape is None or not isinstance(network, dict):
        return table
    known = ("topology", "link", *shape.needs, *shape.allows)
    kept = {key: value for key, value in network.items() if key in known or _is_set(value)}
    link, routing = kept.get("link"), kept.get("routing")
    if isinstance(link, dict) and "link" in shape.needs:
        kept["link"] = {key: value for key, value in link.items() if key in shape.overrides or key not in OVERRIDES}
    if "link" not in (*shape.needs, *shape.allows):
        kept.pop("link", None)
    if isinstance(routing, dict) and routing.get("value") not in shape.routings and not _is_set(routing):
        del kept["routing"]
    return {**table, "network": kept}


def _without_alternatives(table: RawTable, key: str) -> RawTable:
    """A router described in another way: how the file described it goes."""
    router = table.get("router")
    dropped = {
        old
        for one, other in ROUTER_ALTERNATIVES
        for ways in ((one, other), (other, one))
        if key in ways[0]
        for old in ways[1]
    }
    if not isinstance(router, dict) or not dropped:
        return table
    return {**table, "router": {old: entry for old, entry in router.items() if old not in dropped or _is_set(entry)}}


def _is_set(entry: object) -> bool:
    return isinstance(entry, dict) and entry.get("class") == "set"


def _toml_value(text: str, setting: str) -> Any:  # noqa: ANN401 (whatever TOML holds; checked afterwards)
    try:
        parsed = parse_toml(f"value = {text}")
    except TomlError:
        # A bare word or path is a text: the shell has already taken the quotes.
        if re.fullmatch(r"[A-Za-z./][A-Za-z0-9_./+-]*", text):
            return text
        number = re.fullmatch(r"([0-9.]+) ?[A-Za-z/]+", text)
        if number is not None:
            expected = f"{number[1]} without a unit, which is that of the key; rates are {', '.join(RATE_KEYS)}"
            raise InputError("--set", setting, expected) from None
        raise InputError("--set", setting, "a TOML value after '=', such as 66, 1.5, torus or [4,2,2]") from None
    if set(parsed) != {"value"}:
        raise InputError("--set", setting, "one TOML value after '='")
    return parsed["value"]


def _replaced(table: RawTable, path: tuple[str, ...], entry: object, setting: str) -> RawTable:
    step, rest = path[0], path[1:]
    if not rest:
        return {**table, step: entry}
    inner = table.get(step, {})
    if not isinstance(inner, dict) or "class" in inner:
        raise InputError("--set", setting, f'the key of a parameter: "{step}" is one itself, nothing is below it')
    return {**table, step: _replaced(inner, rest, entry, setting)}
