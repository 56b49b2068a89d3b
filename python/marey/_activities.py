"""Activities, scopes and device types that can be recorded, and profiler options."""

from enum import Enum, IntEnum, IntFlag

from marey import _marey
from marey._marey import Error


class _LikePyTorch:
    """Makes members equal to those of PyTorch's enumeration with the same name, which need not be imported.

    PyTorch's native enumerations are never equal to others: put Marey's on the left.
    """

    def __eq__(self, other):
        theirs = type(other)
        if theirs.__name__ == type(self).__name__ and theirs.__module__.startswith("torch."):
            return self.name == other.name
        return super().__eq__(other)

    def __hash__(self):
        return hash(self.value)


class ProfilerActivity(_LikePyTorch, Enum):
    """The kinds of activity that a profiler records."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5

    def __lt__(self, other):
        return self.value < other.value


class DeviceActivity(IntFlag):
    """The kinds of device activity; the numbers match ``marey::DeviceActivities`` in C++."""

    KERNELS = 1
    COPIES = 2
    SETS = 4
    CALLS = 8
    DRIVER_CALLS = 16
    WAITS = 32
    OVERHEAD = 64
    TIMES = 128


class RecordScope(_LikePyTorch, IntEnum):
    """The kinds of range; the numbers match ``marey::Scope`` in C++."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9
    PYTHON_FUNCTION = 10
    C_FUNCTION = 11
    GARBAGE_COLLECTION = 12
    DEVICE = 13
    DEVICE_RUNTIME = 14
    STEP = 15


class DeviceType(_LikePyTorch, IntEnum):
    """The kinds of device; the numbers match PyTorch's."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20


class ProfilerState(_LikePyTorch, Enum):
    """The way in which a profiler records."""

    Disabled = 0
    CPU = 1
    CUDA = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5
    KINETO = 6
    KINETO_GPU_FALLBACK = 7
    KINETO_PRIVATEUSE1_FALLBACK = 8
    KINETO_PRIVATEUSE1 = 9


class ActiveProfilerType(_LikePyTorch, Enum):
    """The kind of profiler or emitter that is running."""

    NONE = 0
    LEGACY = 1
    KINETO = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5


class _ExperimentalConfig:
    """Rarely needed options, given by position or keyword.

    Instances can be pickled and are compared by value.
    """

    _DEFAULTS = {
        "profiler_metrics": (),
        "profiler_measure_per_kernel": False,
        "verbose": False,
        "performance_events": (),
        "enable_cuda_sync_events": False,
        "adjust_profiler_step": False,
        "disable_external_correlation": False,
        "profile_all_threads": None,
        "capture_overload_names": False,
        "record_python_gc_info": False,
        "expose_kineto_event_metadata": False,
        "custom_profiler_config": "",
        "adjust_timestamps": False,
        "trace_only": False,
    }
    __slots__ = tuple(_DEFAULTS)

    def __init__(self, *values, **named):
        names = self.__slots__
        if len(values) > len(names):
            raise TypeError(f"_ExperimentalConfig takes at most {len(names)} values, got {len(values)}")
        given = dict(zip(names, values))
        for name, value in named.items():
            if name not in self._DEFAULTS:
                raise TypeError(f"_ExperimentalConfig has no option {name!r}")
            if name in given:
                raise TypeError(f"_ExperimentalConfig got multiple values for {name!r}")
            given[name] = value
        for name, default in self._DEFAULTS.items():
            value = given.get(name, default)
            setattr(self, name, list(value) if isinstance(default, tuple) else value)

    def _values(self):
        return tuple(getattr(self, name) for name in self.__slots__)

    def __reduce__(self):
        return (_ExperimentalConfig, self._values())

    def __eq__(self, other):
        return isinstance(other, _ExperimentalConfig) and self._values() == other._values()

    __hash__ = None

    def __repr__(self):
        changed = (
            f"{name}={getattr(self, name)!r}"
            for name, default in self._DEFAULTS.items()
            if getattr(self, name) != (list(default) if isinstance(default, tuple) else default)
        )
        return f"_ExperimentalConfig({', '.join(changed)})"


class ProfilerConfig:
    """The options of a profiler, in the form of PyTorch's native configuration object."""

    __slots__ = (
        "state",
        "report_input_shapes",
        "profile_memory",
        "with_stack",
        "with_flops",
        "with_modules",
        "experimental_config",
        "trace_id",
    )

    def __init__(
        self,
        state,
        report_input_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        experimental_config=None,
        trace_id="",
    ):
        self.state = state
        self.report_input_shapes = report_input_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.experimental_config = experimental_config if experimental_config is not None else _ExperimentalConfig()
        self.trace_id = trace_id

    def __repr__(self):
        return "ProfilerConfig(" + ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__) + ")"


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


def _parse_activities(items):
    """Return (activities, types to record of each) for activities and ``{activity: [type names]}`` items."""
    activities, filters = set(), {}

    def add(activity):
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


def _check_filters(filters):
    """Raise an error if a type name is not one of its activity's types."""
    for activity, names in filters.items():
        unknown = sorted(names - _ACTIVITY_TYPES[activity])
        if unknown:
            known = ", ".join(sorted(_ACTIVITY_TYPES[activity]))
            raise Error(f"unknown activity type {', '.join(unknown)} for {activity}; known types: {known}")


# Device types that are not listed here belong to PrivateUse1.
_ACTIVITY_OF_TYPE = {
    DeviceType.CUDA: ProfilerActivity.CUDA,
    DeviceType.HIP: ProfilerActivity.CUDA,
    DeviceType.XPU: ProfilerActivity.XPU,
    DeviceType.MTIA: ProfilerActivity.MTIA,
    DeviceType.HPU: ProfilerActivity.HPU,
}


def _usable_devices():
    """Return ``{activity: device name}`` for the devices that can be recorded on this machine."""
    usable = {}
    for name in dict.fromkeys(("cuda", *_marey.registered_devices())):
        if not _marey.device_error(name):
            usable.setdefault(_activity_of_device(name), name)
    return usable


def _activity_of_device(name):
    """Return the activity of a registered device."""
    return _ACTIVITY_OF_TYPE.get(_marey.find_device(name).type, ProfilerActivity.PrivateUse1)


def supported_activities():
    """Return the activities that can be recorded on this machine.

    A device without its own activity source is not included; select it with ``use_device``.
    """
    usable = _usable_devices().items()
    return {ProfilerActivity.CPU, *(activity for activity, name in usable if _marey.find_device(name).has_activities)}


def kineto_available():
    """Return True: traces can always be recorded. For compatibility with PyTorch."""
    return True
