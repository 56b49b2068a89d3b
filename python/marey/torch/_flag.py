"""PyTorch's flag that a profiler runs: it marks compiled regions and look-ups only then."""

from torch.autograd import profiler as torch_profiler

_holders = 0  # guarded by the GIL
_before = False  # the flag when the first came: a profiler of PyTorch's may run too


def hold():
    """Each needs its release()."""
    global _holders, _before
    if _holders == 0:
        _before = torch_profiler._is_profiler_enabled
    _holders += 1
    torch_profiler._set_is_profiler_enabled(True)


def release():
    global _holders
    _holders -= 1
    if _holders == 0:
        torch_profiler._set_is_profiler_enabled(_before)
