"""The activities that a profiler can record on this machine."""

from __future__ import annotations

from marey import _marey
from marey._enumerations import DeviceType, ProfilerActivity
from marey._marey import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from marey._marey import RegisteredDevice

    Filters = dict[ProfilerActivity, set[str]]  # activity -> the types to record

_CPU_TYPES = frozenset(
    "CPU_OP CPU_INSTANT_EVENT USER_ANNOTATION EXTERNAL_CORRELATION XPU_RUNTIME XPU_DRIVER CUDA_RUNTIME CUDA_DRIVER "
    "PYTHON_FUNCTION PRIVATEUSE1_RUNTIME PRIVATEUSE1_DRIVER".split()
)
_ACTIVITY_TYPES = {
    ProfilerActivity.CPU: _CPU_TYPES,
    ProfilerActivity.CUDA: frozenset(
        "GPU_MEMCPY GPU_MEMSET GPU_USER_ANNOTATION CONCURRENT_KERNEL CUDA_RUNTIME CUDA_DRIVER OVERHEAD "
        "CUDA_SYNC".split()
    ),
    ProfilerActivity.XPU: frozenset("GPU_MEMCPY GPU_MEMSET CONCURRENT_KERNEL XPU_RUNTIME XPU_DRIVER".split()),
    ProfilerActivity.MTIA: frozenset("MTIA_CCP_EVENTS MTIA_RUNTIME MTIA_INSIGHT MTIA_COUNTERS".split()),
    ProfilerActivity.HPU: frozenset(["HPU_OP"]),
    ProfilerActivity.PrivateUse1: frozenset(
        "GPU_MEMCPY GPU_MEMSET GPU_USER_ANNOTATION CONCURRENT_KERNEL PRIVATEUSE1_RUNTIME PRIVATEUSE1_DRIVER".split()
    ),
}


def parse_activities(items: Iterable[Any]) -> tuple[set[ProfilerActivity], Filters]:
    """Return (activities, types to record of each) for activities and ``{activity: [type names]}`` items."""
    activities, filters = set(), {}

    def add(activity: Any) -> None:
        if not isinstance(activity, ProfilerActivity):
            raise TypeError(f"expected a ProfilerActivity or a dict of them, got {activity!r}")
        if activity in activities:
            raise ValueError(f"{activity} was given more than once")
        activities.add(activity)

    for item in items:
        if isinstance(item, dict):
            for activity, names in item.items():
                add(activity)
                filters[activity] = set(names)
        else:
            add(item)
    return activities, filters


def check_filters(filters: Filters) -> None:
    """Raise an error if a type name is not one of its activity's types."""
    for activity, names in filters.items():
        unknown = sorted(names - _ACTIVITY_TYPES[activity])
        if unknown:
            known = ", ".join(sorted(_ACTIVITY_TYPES[activity]))
            raise Error(f"unknown activity type {', '.join(unknown)} for {activity}; known types: {known}")


# Device types that are not listed here belong to PrivateUse1.
_ACTIVITY_OF_TYPE: dict[int, ProfilerActivity] = {
    DeviceType.CUDA: ProfilerActivity.CUDA,
    DeviceType.HIP: ProfilerActivity.CUDA,
    DeviceType.XPU: ProfilerActivity.XPU,
    DeviceType.MTIA: ProfilerActivity.MTIA,
    DeviceType.HPU: ProfilerActivity.HPU,
}


def usable_devices() -> dict[ProfilerActivity, str]:
    """Return ``{activity: device name}`` for the devices that can be recorded on this machine."""
    usable: dict[ProfilerActivity, str] = {}
    for name in dict.fromkeys(("cuda", *_marey.registered_devices())):
        if not _marey.device_error(name):
            usable.setdefault(activity_of_device(name), name)
    return usable


def activity_of_device(name: str) -> ProfilerActivity:
    """Return the activity of a registered device."""
    return _ACTIVITY_OF_TYPE.get(device_named(name).type, ProfilerActivity.PrivateUse1)


def device_named(name: str) -> RegisteredDevice:
    device = _marey.find_device(name)
    assert device is not None
    return device


def supported_activities() -> set[ProfilerActivity]:
    """Return the activities that can be recorded on this machine.

    A device without its own activity source is not included; select it with ``use_device``.
    """
    usable = usable_devices().items()
    return {ProfilerActivity.CPU, *(activity for activity, name in usable if device_named(name).has_activities)}
