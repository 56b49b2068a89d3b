"""Activities, scopes and device types that can be recorded, and profiler options."""

from collections.abc import Sequence
from enum import Enum, IntEnum, IntFlag

class ProfilerActivity(Enum):
    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5
    def __lt__(self, other: ProfilerActivity) -> bool: ...

class DeviceActivity(IntFlag):
    KERNELS = 1
    COPIES = 2
    SETS = 4
    CALLS = 8
    DRIVER_CALLS = 16
    WAITS = 32
    OVERHEAD = 64
    TIMES = 128

class RecordScope(IntEnum):
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

class DeviceType(IntEnum):
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

class ProfilerState(Enum):
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

class _ExperimentalConfig:
    profiler_metrics: list[str]
    profiler_measure_per_kernel: bool
    verbose: bool
    performance_events: list[str]
    enable_cuda_sync_events: bool
    adjust_profiler_step: bool
    disable_external_correlation: bool
    profile_all_threads: bool | None
    capture_overload_names: bool
    record_python_gc_info: bool
    expose_kineto_event_metadata: bool
    custom_profiler_config: str
    adjust_timestamps: bool
    trace_only: bool
    def __init__(
        self,
        profiler_metrics: Sequence[str] = (),
        profiler_measure_per_kernel: bool = False,
        verbose: bool = False,
        performance_events: Sequence[str] = (),
        enable_cuda_sync_events: bool = False,
        adjust_profiler_step: bool = False,
        disable_external_correlation: bool = False,
        profile_all_threads: bool | None = None,
        capture_overload_names: bool = False,
        record_python_gc_info: bool = False,
        expose_kineto_event_metadata: bool = False,
        custom_profiler_config: str = "",
        adjust_timestamps: bool = False,
        trace_only: bool = False,
    ) -> None: ...

class ProfilerConfig:
    state: ProfilerState
    report_input_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    with_modules: bool
    experimental_config: _ExperimentalConfig
    trace_id: str
    def __init__(
        self,
        state: ProfilerState,
        report_input_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        trace_id: str = "",
    ) -> None: ...

def supported_activities() -> set[ProfilerActivity]: ...
def kineto_available() -> bool: ...
