"""The actions of a profiler, and schedules that choose one for each step."""

from collections.abc import Callable
from enum import Enum

class ProfilerAction(Enum):
    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4

def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]: ...
def always_record(step: int) -> ProfilerAction: ...
