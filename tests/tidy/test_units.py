"""Names of numbers include the unit: keys of the machine files, and integers of the descriptions."""

import re
import types
import typing

from project import code, cxx_files, name
from pydantic import BaseModel

from apenet.machine.published import UNITS, PublishedResult
from apenet.machine.quantity import Quantity
from apenet.machine.schema import CARDS, MachineFile
from apenet.machine.units import split_unit

# Plain counts, whose names say what is counted.
COUNTS = {
    "buffer_flits",
    "cables",
    "channels",
    "children",
    "coalesce_events",
    "dims",
    "messages_per_ack",
    "packets_per_update",
    "pcie_generation",
    "nodes",
    "ports",
    "queues",
    "receive_buffer_packets",
    "receive_engines",
    "virtual_channels",
    "injection_fifos",
    "ejection_ports",
    "virtual_lanes",
    "outstanding_rdma_reads",
    "outstanding_reads",
    "parents",
    "uncached_factor",
}
# Probabilities and fractions.
RATIOS = {"bit_error_rate", "link_fraction", "loss_probability"}
# Not numbers, or (value) with the unit in another key.
BARE = {
    "arbitration",
    "caches",
    "duplex",
    "channel_selection",
    "graph_file",
    "injection_rule",
    "routing",
    "same_node",
    "switching",
    "table_file",
    "topology",
    "value",
}


def sections(model: type[BaseModel]) -> typing.Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        annotation = field.annotation
        candidates = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
        for candidate in candidates:
            if isinstance(candidate, type) and issubclass(candidate, BaseModel) and not issubclass(candidate, Quantity):
                yield from sections(candidate)


MODELS = sorted({*sections(MachineFile), *CARDS.values()}, key=lambda model: model.__name__)


def test_keys_of_machine_files():
    assert MODELS
    for model in MODELS:
        for key, field in model.model_fields.items():
            is_quantity = "Quantity" in str(field.annotation)
            if is_quantity and key not in COUNTS | RATIOS | BARE:
                assert split_unit(key)[1], f"{model.__name__}.{key} has no unit"


def test_published_results_name_the_unit_of_their_value():
    for quantity in typing.get_args(PublishedResult.model_fields["quantity"].annotation):
        assert quantity.rpartition(".")[2] in UNITS
        assert split_unit(quantity)[1] or quantity in RATIOS


def test_integers_of_descriptions():
    counts = COUNTS | {"card_channels", "rail", "seed"}
    paths = [path for path in cxx_files("src") if path.name == "description.hpp"]
    assert paths
    for path in paths:
        for field in re.findall(r"^\s+std::u?int\d+_t (\w+)\b[^(;]*;", code(path), flags=re.MULTILINE):
            assert field in counts or split_unit(field)[1], f"{name(path)}: {field} has no unit"


def test_times_of_the_conversation():
    """The protocol between processes does not use the type Time, so every integer time has the suffix _ps."""
    for path in cxx_files("src/runtime/ipc"):
        for field in re.findall(r"\bstd::int64_t (\w*(?:time|clock|deadline|horizon|latency)\w*)\b", code(path)):
            assert field.endswith(("_ps", "_bytes", "_bytes_per_second")), f"{name(path)}: {field}"
