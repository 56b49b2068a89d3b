"""What a profiler records, from the keywords that it was given."""

from kymo import _activities
from kymo._activities import ProfilerActivity, RecordScope
from kymo._kymo import Error, check_call_patterns
from kymo._warnings import warn

_DEVICES = {
    "cuda": ProfilerActivity.CUDA,
    "xpu": ProfilerActivity.XPU,
    "mtia": ProfilerActivity.MTIA,
    "hpu": ProfilerActivity.HPU,
}
# The scopes of each kind of activity of the processor.
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


def choose_activities(activities, use_cpu, use_kineto, filters):
    """(the activities, {activity: the names of what to record of it})."""
    if not use_cpu and not use_kineto:
        raise Error("use_cpu=False needs use_kineto=True: nothing else would be recorded")
    activities = list(activities) if activities is not None else []
    chosen, own = _activities._parse_activities(activities) if activities else (_activities.supported_activities(), {})
    own.update({activity: set(names) for activity, names in (filters or {}).items()})
    if not use_cpu:
        chosen = chosen - {ProfilerActivity.CPU}
    _activities._check_filters(own)
    return chosen, own


def choose_device(activities, use_device, use_cuda):
    """The device to record, or None; adds its activity to the set."""
    supported = _activities.supported_activities()
    if use_cuda:
        warn("use_cuda is deprecated: give use_device='cuda' or activities", FutureWarning, stacklevel=4)
        use_device = use_device or "cuda"
    if use_device is None:
        return next((name for name, kind in _DEVICES.items() if kind in activities and kind in supported), None)
    activity = _DEVICES.get(use_device)
    if activity is None:
        warn(f"{use_device!r} is no known device: nothing of it is recorded", stacklevel=4)
        return None
    if activity not in supported:
        warn(f"{use_device} is not available here: nothing of it is recorded", stacklevel=4)
        return None
    activities.add(activity)
    return use_device


def choose_threads(threads, all_threads):
    """ "all" or "tasks"."""
    if threads is None:
        return "tasks" if all_threads is False else "all"
    if threads not in ("all", "tasks"):
        raise ValueError(f"threads must be 'all' or 'tasks', not {threads!r}")
    return threads


def choose_scopes(scopes, activities, filters):
    """The bits of the scopes to record; 0 means all."""
    wanted = set(RecordScope) if scopes is None else {RecordScope(scope) for scope in scopes}
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


def choose_calls(include, exclude, fold_libraries, min_duration_us, max_depth, call_budget, call_lines):
    """Which calls are recorded, as keywords of Session.start."""
    for option, number in (("max_depth", max_depth), ("call_budget", call_budget)):
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(f"{option} must be a whole number, not {number!r}")
        if number < 0:
            raise ValueError(f"{option} must not be negative, not {number}")
    if not isinstance(min_duration_us, (int, float)) or isinstance(min_duration_us, bool):
        raise TypeError(f"min_duration_us must be a number of microseconds, not {min_duration_us!r}")
    if not 0 <= min_duration_us <= 1e15:
        raise ValueError(f"min_duration_us must be a number of microseconds, not {min_duration_us}")
    for option, flag in (("fold_libraries", fold_libraries), ("call_lines", call_lines)):
        if not isinstance(flag, bool):
            raise TypeError(f"{option} must be True or False, not {flag!r}")
    patterns = {"include": include, "exclude": exclude}
    for option, given in patterns.items():
        if isinstance(given, (str, bytes)):
            raise TypeError(f"{option} must be a sequence of patterns, not one text: {given!r}")
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
