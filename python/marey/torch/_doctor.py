"""``python -m marey.torch._doctor``: prints the PyTorch line of ``marey doctor``."""

from __future__ import annotations

import torch

from marey._marey import Error
from marey.torch import _observer


def _line() -> tuple[str, str, str]:
    """Return (state, fact, help)."""
    version = torch.__version__
    try:
        built = _observer.find_built()
        if built is not None:
            return "ok", f"{version}, observer: {built}", ""
        compiler = " ".join(_observer.compiler())
    except Error as error:
        return "BAD", f"{version}: operators cannot be recorded", str(error)
    return "ok", f"{version}; {compiler} will compile the observer on first use (in advance: python -m marey.torch)", ""


if __name__ == "__main__":
    state, fact, help = _line()
    print("\t".join((state, "pytorch", fact, help)))
