"""NaN and the infinities in arguments: Python reads them in a model's JSON, and Temporal would carry each as null."""

from __future__ import annotations

import math
from typing import Any, cast


def as_text(value: Any) -> Any:
    """JSON in which such numbers are the texts that Pydantic reads as those numbers: "NaN", "Infinity", "-Infinity".

    Where a number is declared, it is read again as it was; where any JSON is taken, as another value.
    """
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: as_text(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [as_text(item) for item in cast("list[Any]", value)]
    return value
