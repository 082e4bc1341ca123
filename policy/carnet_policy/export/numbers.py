"""Numbers as exported policies compare them: whole ten-thousandths, so that no engine rounds."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

__all__ = ["number_facts", "units_of"]

LARGEST = (1 << 53) - 1  # whole numbers up to this are exact in every engine
SCALE = 10_000
_WIDE = Context(prec=400, rounding=ROUND_FLOOR)


def number_facts(value: int | float | Decimal) -> dict[str, Any]:
    """`units` (rounded down, held within LARGEST) and `more` (something was cut off) of a finite number."""
    units, more = _scaled(value)
    if units > LARGEST:
        return {"units": LARGEST, "more": True}
    return {"units": max(units, -LARGEST), "more": more and units >= -LARGEST}


def units_of(bound: int | float | Decimal) -> int | None:
    """A bound in units; None for one with more than four decimals, or so large that values near it are held back."""
    units, more = _scaled(bound)
    return None if more or abs(units) >= LARGEST else units


def _scaled(value: int | float | Decimal) -> tuple[int, bool]:
    if isinstance(value, int):
        return value * SCALE, False
    # The shortest digits of a float order as the floats do, and those of a whole one below 2**53 are its value.
    exact = value if isinstance(value, Decimal) else Decimal(repr(value))
    if abs(exact) > LARGEST:
        return (LARGEST + 1 if exact > 0 else -LARGEST - 1), False
    units = int(_WIDE.multiply(exact, Decimal(SCALE)).to_integral_value(ROUND_FLOOR))
    return units, exact != Decimal(units) / SCALE
