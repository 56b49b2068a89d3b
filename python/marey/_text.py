"""Texts for people: durations, and names without control characters."""

from __future__ import annotations

_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))


def duration_text(ns: float) -> str:
    """Return a duration with three digits and its unit: "1.25 s", "340 us"."""
    for unit, name in _UNITS:
        if abs(ns) >= unit * 0.9995 or unit == 1:
            value = ns / unit
            return f"{value:.0f} {name}" if abs(value) >= 99.95 else f"{value:.3g} {name}"
    raise AssertionError  # the last unit fits everything


def duration_ns(text: str) -> float:
    """Return the nanoseconds of "50ms", "1.5 s", "20us" or "100 ns"; raise ValueError for other texts."""
    import re

    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(s|ms|us|ns)\s*", text)
    if match is None:
        raise ValueError(f"invalid time {text!r}: expected a number with a unit (s, ms, us or ns), such as 50ms")
    return float(match[1]) * next(unit for unit, name in _UNITS if name == match[2])


def dotted(name: str) -> str:
    """Return "shop.cart.Cart.load" for "shop/cart.py(12): Cart.load"; other names unchanged."""
    import re

    match = re.fullmatch(r"(.*?)(?:/__init__)?\.py\(\d+\): (.*)", name, re.DOTALL)
    return f"{match[1].replace('/', '.').lstrip('.')}.{match[2]}" if match is not None else name


def printable(text: str) -> str:
    """Return the text with control characters, and those that change the direction of writing, escaped."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
