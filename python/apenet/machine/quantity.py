"""The parts of machine files: sections, and parameters with their class and source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=2**31)]
Origin = Literal["published", "derived", "fitted", "assumed", "set"]

T = TypeVar("T")


class Section(BaseModel):
    """A table of a machine file: its keys are known, its values have exactly their type."""

    # Validators are built when they are first used: most of the time of an import went into them.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True, defer_build=True)


class Quantity(Section, Generic[T]):
    """One parameter: value, class and source.

    The source says where a published number stands, how a derived one follows, what a fitted one was fitted to
    and why an assumed one was assumed. The class `set` is that of values given with `--set`.

    `range` holds the least and the largest plausible value of an assumed number, and `range_source` says why:
    `apenet reproduce --sensitivity` varies the number over it. `fitted_to` names the published results that a fitted
    number was fitted to, as KEY or KEY@SIZE: there the number is fitted again when others vary.
    """

    value: T
    origin: Origin = Field(alias="class")
    source: Text
    note: str = ""
    range: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    range_source: str = ""
    fitted_to: Annotated[list[Text], Field(min_length=1)] | None = None

    def problems(self) -> list[tuple[str, object, str]]:
        """Inconsistencies: key, value, expected."""
        if self.fitted_to and self.origin != "fitted":
            return [("fitted_to", self.fitted_to, 'none: a number of class "fitted" has them')]
        if self.range is None:
            return [("range_source", self.range_source, "none without a range")] if self.range_source else []
        if self.origin != "assumed" or not isinstance(self.value, int | float):
            return [("range", self.range, 'none: a range belongs to a number of class "assumed"')]
        low, high = self.range
        if low >= high:  # the value may be outside: a reader's experiment
            return [("range", self.range, "the least plausible value, and a larger one")]
        if not self.range_source:
            return [("range_source", None, "a text: why the value may be anywhere in the range")]
        return []


def quantities(section: Section, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Quantity[Any]]]:
    """All parameters below a section, with their keys."""
    for key in type(section).model_fields:
        value = getattr(section, key)
        if isinstance(value, Quantity):
            yield ".".join((*path, key)), value
        elif isinstance(value, Section):
            yield from quantities(value, (*path, key))
        elif isinstance(value, dict):
            for table, inner in value.items():
                if isinstance(inner, Section):
                    yield from quantities(inner, (*path, key, table))
