"""Sets the flag without which PyTorch does not mark compiled regions and lookups."""

from __future__ import annotations

from torch.autograd import profiler as torch_profiler

_holders = 0  # guarded by the GIL
_before = False  # the flag before the first hold(): PyTorch's profiler may be running too


def hold() -> None:
    """Set the flag. Each call needs a release()."""
    global _holders, _before
    if _holders == 0:
        _before = torch_profiler._is_profiler_enabled
    _holders += 1
    torch_profiler._set_is_profiler_enabled(True)


def release() -> None:
    global _holders
    _holders -= 1
    if _holders == 0:
        torch_profiler._set_is_profiler_enabled(_before)
