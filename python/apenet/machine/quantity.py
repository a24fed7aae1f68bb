"""What machine files are made of: sections, and parameters with their class and source."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

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
    """

    value: T
    origin: Origin = Field(alias="class")
    source: Text
    note: str = ""
