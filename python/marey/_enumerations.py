"""Enumerations of activities, scopes, devices and states; their numbers match C++ and PyTorch."""

from __future__ import annotations

from enum import Enum, IntEnum, IntFlag


class _LikePyTorch:
    """Makes members equal to those of PyTorch's enumeration with the same name, which need not be imported.

    PyTorch's native enumerations are never equal to others: put Marey's on the left.
    """

    name: str  # of the enumeration that it is mixed into; likewise `value`
    value: int

    def __eq__(self, other: object) -> bool:
        theirs = type(other)
        if theirs.__name__ == type(self).__name__ and theirs.__module__.startswith("torch."):
            return bool(self.name == getattr(other, "name", None))
        return super().__eq__(other)

    def __hash__(self) -> int:
        return hash(self.value)


class ProfilerActivity(_LikePyTorch, Enum):
    """The kinds of activity that a profiler records."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5

    def __lt__(self, other: ProfilerActivity) -> bool:
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
