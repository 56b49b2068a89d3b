"""Turns the keywords of a profiler into the options of its session."""

from marey import _activities
from marey._activities import ProfilerActivity, ProfilerState, RecordScope
from marey._marey import Error, check_call_patterns, device_error, find_device
from marey._warnings import warn

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


def choose_activities(activities, use_cpu, use_kineto, filters, use_device=None):
    """Return (activities, {activity: type names to record}).

    Without activities, these are all that can be recorded on this machine; with a device, only the CPU, and
    choose_device() adds the device.
    """
    if not use_cpu and not use_kineto:
        raise Error("use_cpu=False requires use_kineto=True: nothing would be recorded otherwise")
    activities = list(activities) if activities is not None else []
    if activities:
        chosen, own = _activities._parse_activities(activities)
    else:
        chosen, own = {ProfilerActivity.CPU} if use_device else _activities.supported_activities(), {}
    own.update({activity: set(names) for activity, names in (filters or {}).items()})
    if not use_cpu:
        chosen = chosen - {ProfilerActivity.CPU}
    _activities._check_filters(own)
    return chosen, own


def choose_device(activities, use_device, use_cuda):
    """Return the device shown in tables, or None, and add its activity. Warn if it cannot be recorded."""
    if use_cuda:
        warn("use_cuda is deprecated: use use_device='cuda' or activities", FutureWarning, stacklevel=4)
        use_device = use_device or "cuda"
    if use_device is None:
        usable = _activities._usable_devices() if activities - {ProfilerActivity.CPU} else {}
        missing = sorted(activities - {ProfilerActivity.CPU, *usable})
        for activity in missing:
            warn(f"{activity.name} is not recorded: {_unavailable_reason(activity)}", stacklevel=4)
        return next((name for activity, name in sorted(usable.items()) if activity in activities), None)
    trouble = device_error(use_device)
    if trouble:
        warn(f"{use_device!r} is not recorded: {trouble}", stacklevel=4)
        return None
    activities.add(_activities._activity_of_device(use_device))
    return use_device


def _unavailable_reason(activity):
    if activity is ProfilerActivity.CUDA:
        return device_error("cuda")
    return "there is no such device"


def choose_devices(activities, use_device, filters, use_kineto, waits):
    """Return the devices and device activities to record, as keywords of Session.start."""
    usable = _activities._usable_devices() if activities - {ProfilerActivity.CPU} else {}
    if use_device is not None:
        usable[_activities._activity_of_device(use_device)] = use_device
    chosen = {activity: name for activity, name in usable.items() if activity in activities}
    bits = _TIMES if use_kineto is False else _union(_bits_of(activity, filters, waits) for activity in chosen)
    return {"devices": list(chosen.values()), "device_activities": bits}


def profiler_state(use_device, devices):
    """Return the ProfilerState for a device and the result of choose_devices()."""
    if use_device is None:
        return ProfilerState.KINETO
    is_timed = devices["device_activities"] & _TIMES or not find_device(use_device).has_activities
    is_private = _activities._activity_of_device(use_device) is ProfilerActivity.PrivateUse1
    if is_timed:
        return ProfilerState.KINETO_PRIVATEUSE1_FALLBACK if is_private else ProfilerState.KINETO_GPU_FALLBACK
    return ProfilerState.KINETO_PRIVATEUSE1 if is_private else ProfilerState.KINETO


def _bits_of(activity, filters, waits):
    names = filters.get(activity)
    bits = _USUAL_BITS if names is None else _union(_DEVICE_BITS.get(name, 0) for name in names)
    return bits | _WAITS if waits else bits


def _union(sets):
    """Return all bits combined."""
    together = 0
    for each in sets:
        together |= each
    return together


def choose_threads(threads, all_threads):
    """Return "all" or "tasks"."""
    if threads is None:
        return "tasks" if all_threads is False else "all"
    if threads not in ("all", "tasks"):
        raise ValueError(f"threads must be 'all' or 'tasks', not {threads!r}")
    return threads


def choose_scopes(scopes, activities, filters):
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


def check_number(option, number, most):
    """Raise an error unless it is an integer from 0 to `most`. A huge number is not printed."""
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{option} must be an integer, not {number!r}")
    if number < 0:
        raise ValueError(f"{option} must not be negative")
    if number > most:
        raise ValueError(f"{option} must be at most {most}")


def choose_calls(include, exclude, fold_libraries, min_duration_us, max_depth, call_budget, call_lines):
    """Return which calls to record, as keywords of Session.start."""
    check_number("max_depth", max_depth, (1 << 32) - 1)
    check_number("call_budget", call_budget, (1 << 64) - 1)
    if not isinstance(min_duration_us, (int, float)) or isinstance(min_duration_us, bool):
        raise TypeError(f"min_duration_us must be a number of microseconds, not {min_duration_us!r}")
    if not 0 <= min_duration_us <= 1e15:
        raise ValueError("min_duration_us must be a number of microseconds from 0 to 1e15")
    for option, flag in (("fold_libraries", fold_libraries), ("call_lines", call_lines)):
        if not isinstance(flag, bool):
            raise TypeError(f"{option} must be True or False, not {flag!r}")
    patterns = {"include": include, "exclude": exclude}
    for option, given in patterns.items():
        if isinstance(given, (str, bytes)):
            raise TypeError(f"{option} must be a sequence of patterns, not a single string: {given!r}")
        try:
            patterns[option] = tuple(given)
        except TypeError:
            raise TypeError(f"{option} must be a sequence of patterns, not {given!r}") from None
        check_call_patterns(patterns[option], option)
    return {
        **patterns,
        "fold_libraries": fold_libraries,
        "min_duration_us": float(min_duration_us),
        "max_depth": max_depth,
        "call_budget": call_budget,
        "call_lines": call_lines,
    }
