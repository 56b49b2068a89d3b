"""Turns the keywords of a profiler into the options of its session."""

from __future__ import annotations

from functools import reduce
from operator import or_

from marey._enumerations import ProfilerActivity, ProfilerState, RecordScope
from marey._marey import CALL_OPTIONS, Error, check_options, device_error
from marey._warnings import warn
from marey.compat.config import _ExperimentalConfig
from marey.recording.activities import (
    activity_of_device,
    check_filters,
    device_named,
    parse_activities,
    supported_activities,
    usable_devices,
)
from marey.recording.schedule import ProfilerAction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Literal, TypedDict

    from marey.recording.activities import Filters

    class SessionOptions(TypedDict, total=False):
        """Options of sessions that ``marey.profile`` takes besides its own."""

        name: str
        max_bytes: int | str
        policy: Literal["stop", "drop", "ring"]
        last: float
        sample: int
        record_values: bool
        record_command_line: bool
        concrete_inputs: bool
        with_nvtx: bool
        clock_exchange: str
        control: bool
        include: Iterable[str]
        exclude: Iterable[str]
        fold_libraries: bool
        min_duration_us: float
        max_depth: int
        call_budget: int
        call_lines: bool


# Activity type -> bit of device_activities.
_DEVICE_BITS = {
    "CONCURRENT_KERNEL": 1,
    "GPU_MEMCPY": 2,
    "GPU_MEMSET": 4,
    "CUDA_RUNTIME": 8,
    "XPU_RUNTIME": 8,
    "MTIA_RUNTIME": 8,
    "PRIVATEUSE1_RUNTIME": 8,
    "CUDA_DRIVER": 16,
    "XPU_DRIVER": 16,
    "PRIVATEUSE1_DRIVER": 16,
    "CUDA_SYNC": 32,
    "OVERHEAD": 64,
    "MTIA_CCP_EVENTS": 1,
    "HPU_OP": 1,
}
_USUAL_BITS = 0x5F
_WAITS = 32
_TIMES = 128
# CPU activity type -> scopes.
_SCOPES_OF_TYPES = {
    "USER_ANNOTATION": {RecordScope.USER_SCOPE},
    "CPU_OP": set(RecordScope)
    - {
        RecordScope.USER_SCOPE,
        RecordScope.PYTHON_FUNCTION,
        RecordScope.C_FUNCTION,
        RecordScope.GARBAGE_COLLECTION,
        RecordScope.DEVICE,
        RecordScope.DEVICE_RUNTIME,
    },
    "PYTHON_FUNCTION": {RecordScope.PYTHON_FUNCTION, RecordScope.C_FUNCTION, RecordScope.GARBAGE_COLLECTION},
    "CUDA_RUNTIME": {RecordScope.DEVICE_RUNTIME},
    "CUDA_DRIVER": {RecordScope.DEVICE_RUNTIME},
}


def choose_activities(
    activities: Iterable[Any] | None,
    use_cpu: bool,
    use_kineto: bool | None,
    filters: Mapping[ProfilerActivity, Iterable[str]] | None,
    is_for_device: bool = False,
) -> tuple[set[ProfilerActivity], Filters]:
    """Return (activities, {activity: type names to record}).

    Without activities, these are all that can be recorded on this machine; with a device, only the CPU, and
    choose_device() adds the device.
    """
    if not use_cpu and not use_kineto:
        raise Error("use_cpu=False requires use_kineto=True: nothing would be recorded otherwise")
    activities = list(activities) if activities is not None else []
    if activities:
        chosen, own = parse_activities(activities)
    else:
        chosen, own = {ProfilerActivity.CPU} if is_for_device else supported_activities(), {}
    own.update({activity: set(names) for activity, names in (filters or {}).items()})
    if not use_cpu:
        chosen = chosen - {ProfilerActivity.CPU}
    check_filters(own)
    return chosen, own


def choose_device(activities: set[ProfilerActivity], use_device: str | None, use_cuda: bool | None) -> str | None:
    """Return the device shown in tables, or None, and add its activity. Warn if it cannot be recorded."""
    if use_cuda:
        warn("use_cuda is deprecated: use use_device='cuda' or activities", FutureWarning, stacklevel=5)
        use_device = use_device or "cuda"
    if use_device is None:
        usable = usable_devices() if activities - {ProfilerActivity.CPU} else {}
        missing = sorted(activities - {ProfilerActivity.CPU, *usable})
        for activity in missing:
            warn(f"{activity.name} is not recorded: {_unavailable_reason(activity)}", stacklevel=5)
        return next((name for activity, name in sorted(usable.items()) if activity in activities), None)
    trouble = device_error(use_device)
    if trouble:
        warn(f"{use_device!r} is not recorded: {trouble}", stacklevel=5)
        return None
    activities.add(activity_of_device(use_device))
    return use_device


def _unavailable_reason(activity: ProfilerActivity) -> str:
    if activity is ProfilerActivity.CUDA:
        return device_error("cuda")
    return "there is no such device"


def choose_devices(
    activities: set[ProfilerActivity], use_device: str | None, filters: Filters, use_kineto: bool | None, waits: bool
) -> dict[str, Any]:
    """Return the devices and device activities to record, as keywords of Session.start."""
    usable = usable_devices() if activities - {ProfilerActivity.CPU} else {}
    if use_device is not None:
        usable[activity_of_device(use_device)] = use_device
    chosen = {activity: name for activity, name in usable.items() if activity in activities}
    bits = (
        _TIMES if use_kineto is False else reduce(or_, (_bits_of(activity, filters, waits) for activity in chosen), 0)
    )
    return {"devices": list(chosen.values()), "device_activities": bits}


def profiler_state(use_device: str | None, devices: dict[str, Any]) -> ProfilerState:
    """Return the ProfilerState for a device and the result of choose_devices()."""
    if use_device is None:
        return ProfilerState.KINETO
    is_timed = devices["device_activities"] & _TIMES or not device_named(use_device).has_activities
    is_private = activity_of_device(use_device) is ProfilerActivity.PrivateUse1
    if is_timed:
        return ProfilerState.KINETO_PRIVATEUSE1_FALLBACK if is_private else ProfilerState.KINETO_GPU_FALLBACK
    return ProfilerState.KINETO_PRIVATEUSE1 if is_private else ProfilerState.KINETO


def _bits_of(activity: ProfilerActivity, filters: Filters, waits: bool) -> int:
    names = filters.get(activity)
    bits = _USUAL_BITS if names is None else reduce(or_, (_DEVICE_BITS.get(name, 0) for name in names), 0)
    return bits | _WAITS if waits else bits


def choose_scopes(scopes: Iterable[RecordScope] | None, activities: set[ProfilerActivity], filters: Filters) -> int:
    """Return the scopes to record as bits; 0 means all."""
    wanted = set(RecordScope) if scopes is None else {RecordScope(int(scope)) for scope in scopes}
    if scopes is not None and not wanted:
        raise ValueError("scopes is empty: nothing would be recorded")
    if ProfilerActivity.CPU not in activities:
        wanted &= {RecordScope.STEP, RecordScope.DEVICE, RecordScope.DEVICE_RUNTIME}
    elif ProfilerActivity.CPU in filters:
        names = filters[ProfilerActivity.CPU]
        wanted &= {RecordScope.STEP, RecordScope.DEVICE}.union(*(_SCOPES_OF_TYPES.get(name, ()) for name in names))
    if wanted == set(RecordScope):
        return 0
    return sum(1 << scope for scope in wanted)


def check_arguments(
    schedule: Any, on_trace_ready: Any, experimental_config: Any, post_processing_timeout_s: float | None, c_calls: Any
) -> None:
    """Raise TypeError or ValueError if one of these arguments of ``marey.profile`` is wrong."""
    if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
        raise ValueError(f"post_processing_timeout_s must be non-negative, not {post_processing_timeout_s}")
    if c_calls not in (True, False, "fast", "all"):
        raise ValueError(f"c_calls must be True, False, 'fast' or 'all', not {c_calls!r}")
    if experimental_config is not None and not isinstance(experimental_config, _ExperimentalConfig):
        raise TypeError(f"experimental_config must be an _ExperimentalConfig, not {experimental_config!r}")
    for name, function in (("on_trace_ready", on_trace_ready), ("schedule", schedule)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be callable, not {function!r}")
    if schedule is not None and schedule(0) is ProfilerAction.DEVICE_STOPPED:
        raise ValueError("a schedule must not return DEVICE_STOPPED")


def choose_options(given: Mapping[str, Any], with_stack: bool) -> dict[str, Any]:
    """Return the session options given by keyword, checked. Warn if some of them have no effect."""
    options: dict[str, Any] = check_options(**given)
    ignored = [option for option, value in options.items() if value and option in CALL_OPTIONS]
    if ignored and not with_stack:
        warn(f"{', '.join(ignored)} ignored: calls are recorded only if with_stack=True", stacklevel=5)
    return options
