"""``python -m marey.torch._doctor``: what ``marey doctor`` says of PyTorch, as a line of marey._doctor."""

import torch

from marey._marey import Error
from marey.torch import _observer


def _line():
    """(state, fact, help)"""
    version = torch.__version__
    try:
        built = _observer.find_built()
        if built is not None:
            return "ok", f"{version}, with the observer {built}", ""
        compiler = " ".join(_observer.compiler())
    except Error as error:
        return "BAD", f"{version}: operators cannot be recorded", str(error)
    return "ok", f"{version}; {compiler} compiles the observer at first use, or now: python -m marey.torch", ""


if __name__ == "__main__":
    state, fact, help = _line()
    print("\t".join((state, "pytorch", fact, help)))
