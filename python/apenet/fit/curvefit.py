"""Shared by the models of one measured curve: errors, and the JSON form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from apenet.fit.measurement import Measurement
from apenet.fit.statistics import CONFIDENCE, Alternative, Errors, Floats, errors

MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class CurveFit(ABC):
    """A model fitted to one measurement."""

    formula: ClassVar[str]
    units: ClassVar[dict[str, str]]

    measurement: Measurement
    fitted_us: Floats
    in_sample: Errors
    held_out: Errors
    held_out_percent: Floats
    """The error of each point in the fit without its size; NaN for an extrapolation."""
    warnings: tuple[str, ...] = ()
    compared: tuple[Alternative, ...] = ()
    """The models that were compared, if `auto` chose this one."""

    @property
    @abstractmethod
    def model(self) -> str:
        """The model's name as in --model."""

    @property
    @abstractmethod
    def parameters(self) -> int:
        """The number of fitted parameters."""

    @abstractmethod
    def parts_json(self) -> dict[str, Any]:
        """The results, under the model's own keys."""

    @classmethod
    def of(cls, measurement: Measurement, fitted_us: Floats, held_out_percent: Floats, **parts: Any) -> Self:  # noqa: ANN401 (the fields of a model)
        """A fit with its errors, from its times and those of the fits without each size."""
        tested = np.isfinite(held_out_percent)
        return cls(
            measurement=measurement,
            fitted_us=fitted_us,
            in_sample=errors(measurement.times_us / fitted_us - 1, measurement.sizes_bytes),
            held_out=errors(held_out_percent[tested] / 100, measurement.sizes_bytes[tested]),
            held_out_percent=held_out_percent,
            **parts,
        )

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet fit --json` prints."""
        return {
            "model": self.model,
            "formula": self.formula,
            "compared": [one.to_json() for one in self.compared],
            "input": input_json(self.measurement),
            "units": {**self.units, "size": "bytes", "errors": "percent"},
            "confidence": CONFIDENCE,
            **self.parts_json(),
            "in_sample": self.in_sample.to_json(),
            "held_out": {"scheme": "each size but the ends left out once", **self.held_out.to_json()},
            "points": points_json(self.measurement, self.fitted_us, self.held_out_percent),
            "warnings": [*self.measurement.notes, *self.warnings],
        }


def input_json(measurement: Measurement) -> dict[str, Any]:
    """The fitted measurement."""
    return {
        "file": measurement.file,
        "format": measurement.form,
        "section": measurement.section,
        "test": measurement.test,
        "definition": measurement.definition,
        "points": len(measurement),
        "size_bytes": [int(measurement.sizes_bytes.min()), int(measurement.sizes_bytes.max())],
        "channels": measurement.distinct_channels(),
    }


def points_json(measurement: Measurement, fitted_us: Floats, held_out_percent: Floats) -> list[dict[str, Any]]:
    """Every point with its errors."""
    rows = zip(
        measurement.sizes_bytes, measurement.channels, measurement.times_us, fitted_us, held_out_percent, strict=True
    )
    return [
        {
            "size_bytes": int(size),
            "channels": int(channels),
            "time_us": float(time),
            "fitted_us": float(fitted),
            "residual_percent": float(100 * (time / fitted - 1)),
            "held_out_percent": float(held_out) if np.isfinite(held_out) else None,
        }
        for size, channels, time, fitted, held_out in rows
    ]
