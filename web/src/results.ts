// results.ts: what the server sends of results. analyze_test writes this file (MAREY_WRITE_GOLDENS=1).
export interface AveragesRow {
    name: string
    scope: string
    device: string
    count: number
    total_ns: number
    self_ns: number
    device_total_ns: number
    self_device_ns: number
    min_ns: number
    p50_ns: number
    p90_ns: number
    p99_ns: number
    max_ns: number
    threads: number
    unfinished: number
    async_count: number
    cpu_memory_bytes: number
    self_cpu_memory_bytes: number
    device_memory_bytes: number
    self_device_memory_bytes: number
    flops: number | null
    first_range: number | null
}
export interface AveragesResult {
    averages: AveragesRow[]
}
export interface TreeTotalsRow {
    recorded_ns: number
    device_ns: number
    by_thread: boolean
    bottom_up: boolean
}
export interface TreeRow {
    node: number
    parent: number | null
    depth: number
    total_ns: number
    share: number
    self_ns: number
    count: number
    name: string
    is_async: boolean
    is_device: boolean
    is_thread: boolean
    step: number | null
    thread: string | null
    thread_id: number | null
}
export interface TreeResult {
    tree_totals: TreeTotalsRow
    tree: TreeRow[]
}
export interface HotPathRow {
    node: number
    parent: number | null
    depth: number
    total_ns: number
    share: number
    self_ns: number
    count: number
    name: string
    is_async: boolean
    is_device: boolean
    is_thread: boolean
    step: number | null
    thread: string | null
    thread_id: number | null
}
export interface HeaviestRow {
    total_ns: number
    share: number
    self_ns: number
    count: number
    path: string[]
    is_async: boolean
    is_device: boolean
    is_thread: boolean
    step: number | null
    thread: string | null
    thread_id: number | null
}
export interface HotResult {
    tree_totals: TreeTotalsRow
    hot_path: HotPathRow[]
    heaviest: HeaviestRow[]
}
export interface StepWindowRow {
    window_start_ns: number
    window_end_ns: number
}
export interface StepsRow {
    number: number
    name: string
    title: string
    range: number
    start_ns: number
    duration_ns: number
    change: number | null
    gap_ns: number | null
    is_partial: boolean
    is_median: boolean
    thread: string | null
    thread_id: number | null
}
export interface StepStatisticsRow {
    kind: string
    count: number
    total_ns: number
    mean_ns: number
    stdev_ns: number
    min_ns: number
    median_ns: number
    p90_ns: number
    p99_ns: number
    max_ns: number
}
export interface StepDifferencesRow {
    step: number
    range: number
    place: string
    difference_ns: number
    slow_count: number
    slow_total_ns: number
    slow_self_ns: number
    median_count: number
    median_total_ns: number
    median_self_ns: number
    name: string | null
}
export interface StepsResult {
    step_window: StepWindowRow
    steps: StepsRow[]
    step_statistics: StepStatisticsRow[]
    step_differences: StepDifferencesRow[]
}
export interface GpuRow {
    window_start_ns: number
    window_end_ns: number
    clock_readings: number | null
    clock_median_error_ns: number | null
    clock_worst_error_ns: number | null
}
export interface GpuDevicesRow {
    pid: number | null
    device: string
    device_index: number | null
    name: string | null
    sm_count: number | null
    busy_ns: number
    idle_ns: number
    utilisation: number
    kernels: number
    kernels_ns: number
    copies: number
    copies_ns: number
    sets: number
    sets_ns: number
    others: number
    others_ns: number
    gaps: number
    mean_gap_ns: number
    median_gap_ns: number
    longest_gap_ns: number
    first_ns: number
    last_ns: number
    kernel_busy_ns: number
    copy_busy_ns: number
    overlap_ns: number
    concurrent_ns: number
    most_concurrent: number
    starved_short_ns: number
    starved_short_gaps: number
    starved_long_ns: number
    starved_long_gaps: number
    early: number
    unlaunched: number
    outside: number
    short_kernels: number
    short_kernels_ns: number
}
export interface GpuStreamsRow {
    pid: number | null
    device: string
    device_index: number | null
    stream: number | null
    busy_ns: number
    idle_ns: number
    utilisation: number
    kernels: number
    kernels_ns: number
    copies: number
    copies_ns: number
    sets: number
    sets_ns: number
    others: number
    others_ns: number
    gaps: number
    mean_gap_ns: number
    median_gap_ns: number
    longest_gap_ns: number
    name: string
}
export interface GpuLaunchesRow {
    pid: number | null
    device: string
    device_index: number | null
    kind: string
    title: string
    count: number
    total_ns: number
    mean_ns: number
    stdev_ns: number
    min_ns: number
    median_ns: number
    p90_ns: number
    p99_ns: number
    max_ns: number
}
export interface GpuGapsRow {
    pid: number | null
    device: string
    device_index: number | null
    gap: number
    start_ns: number
    duration_ns: number
    place: string
    is_starved: boolean
    thread: string | null
    thread_id: number | null
    before: string | null
    after: string | null
    host_name: string | null
    host_ns: number | null
}
export interface GpuGapHostsRow {
    pid: number | null
    device: string
    device_index: number | null
    gap: number | null
    time_ns: number
    share: number | null
    name: string | null
    function: string | null
    activity: string | null
}
export interface GpuIdleHostsRow {
    pid: number | null
    device: string
    device_index: number | null
    time_ns: number
    share: number | null
    name: string | null
    function: string | null
    activity: string | null
}
export interface GpuKernelsRow {
    pid: number | null
    device: string
    device_index: number | null
    total_ns: number
    share: number
    count: number
    mean_ns: number
    min_ns: number
    median_ns: number
    p99_ns: number
    max_ns: number
    queued: number
    mean_queue_ns: number | null
    grid: number[] | null
    block: number[] | null
    registers_per_thread: number | null
    shared_bytes: number | null
    shapes: number
    blocks_per_sm: number | null
    warps_per_sm: number | null
    occupancy: number | null
    small_grid_ns: number
    low_occupancy_ns: number
    name: string
}
export interface GpuRangesRow {
    pid: number | null
    device: string
    device_index: number | null
    time_ns: number
    share: number | null
    count: number
    short_kernels: number
    name: string | null
}
export interface GpuFunctionsRow {
    pid: number | null
    device: string
    device_index: number | null
    time_ns: number
    share: number | null
    count: number
    short_kernels: number
    name: string | null
}
export interface GpuTransfersRow {
    pid: number | null
    device: string
    device_index: number | null
    direction: string
    is_pageable: boolean
    transfer: string
    count: number
    sized: number
    bytes: number | null
    time_ns: number
    sized_ns: number
    gb_per_s: number | null
}
export interface GpuCallsRow {
    total_ns: number
    count: number
    mean_ns: number
    min_ns: number
    median_ns: number
    p99_ns: number
    max_ns: number
    name: string
}
export interface GpuWaitsRow {
    thread: string | null
    thread_id: number | null
    count: number
    time_ns: number
    idle_after_ns: number
}
export interface GpuWaitCallersRow {
    thread: string | null
    thread_id: number | null
    name: string | null
    count: number
    time_ns: number
}
export interface GpuFindingsRow {
    finding: number
    rule: string
    pid: number | null
    device: string
    device_index: number | null
    thread: string | null
    thread_id: number | null
    share: number
    text: string
}
export interface GpuEvidenceRow {
    finding: number
    what: string
    count: number | null
    time_ns: number | null
}
export interface GpuResult {
    gpu: GpuRow
    gpu_devices: GpuDevicesRow[]
    gpu_streams: GpuStreamsRow[]
    gpu_launches: GpuLaunchesRow[]
    gpu_gaps: GpuGapsRow[]
    gpu_gap_hosts: GpuGapHostsRow[]
    gpu_idle_hosts: GpuIdleHostsRow[]
    gpu_kernels: GpuKernelsRow[]
    gpu_ranges: GpuRangesRow[]
    gpu_functions: GpuFunctionsRow[]
    gpu_transfers: GpuTransfersRow[]
    gpu_calls: GpuCallsRow[]
    gpu_waits: GpuWaitsRow[]
    gpu_wait_callers: GpuWaitCallersRow[]
    gpu_findings: GpuFindingsRow[]
    gpu_evidence: GpuEvidenceRow[]
}
export interface MemoryWindowRow {
    window_start_ns: number
    window_end_ns: number
}
export interface MemoryDevicesRow {
    pid: number | null
    device: string
    device_index: number | null
    has_totals: boolean
    allocations: number
    allocated_bytes: number
    frees: number
    freed_bytes: number
    start_bytes: number
    end_bytes: number
    peak_bytes: number
    peak_time_ns: number
    peak_reserved_bytes: number
    peak_unknown_bytes: number
    kept_allocations: number
    kept_bytes: number
    earlier_frees: number
    earlier_bytes: number
    unseen_frees: number
}
export interface MemoryHoldersRow {
    pid: number | null
    device: string
    device_index: number | null
    path: string[]
    name: string | null
    peak_bytes: number
    peak_allocations: number
    allocated_bytes: number
    allocations: number
    total_allocated_bytes: number
    freed_bytes: number
    kept_bytes: number
    kept_allocations: number
}
export interface MemoryRefusalsRow {
    pid: number | null
    device: string
    device_index: number | null
    time_ns: number
    thread: string | null
    thread_id: number | null
    asked_bytes: number
    allocated_bytes: number
    reserved_bytes: number
    path: string[]
}
export interface MemoryResult {
    memory_window: MemoryWindowRow
    memory_devices: MemoryDevicesRow[]
    memory_holders: MemoryHoldersRow[]
    memory_refusals: MemoryRefusalsRow[]
}
export interface SuspendedCallsRow {
    pid: number | null
    name: string
    number: number
    start_ns: number
    end_ns: number
    running_ns: number
    suspended_ns: number
    parts: number
    began_before: boolean
    finished: boolean
    task: string | null
}
export interface CallsResult {
    suspended_calls: SuspendedCallsRow[]
}
export interface TasksRow {
    pid: number | null
    name: string
    coroutine: string
    number: number
    start_ns: number
    end_ns: number
    run_ns: number
    await_ns: number
    steps: number
    threads: number[]
    finished: boolean
}
export interface TasksResult {
    tasks: TasksRow[]
}
export interface StacksRow {
    stack: string
    value: number
}
export interface StacksResult {
    stacks: StacksRow[]
}
export interface WindowRow {
    session_id: number
    session_name: string
    start_ns: number
    end_ns: number
    duration_ns: number
    finished: boolean
    max_bytes: number
    policy: string
    ceiling_reached: boolean
    log_bytes: number
}
export interface ProcessesRow {
    pid: number
    node: number | null
    executable: string
    host: string
    command_line: string
    realtime_offset_ns: number
}
export interface ThreadsRow {
    thread: string | null
    thread_id: number
    os_tid: number
    process: number
    birth_ns: number
    death_ns: number
    ranges: number
    async_ranges: number
    instants: number
    counters: number
    dropped: number
    overwritten_chunks: number
    resyncs: number
    clamped: number
}
export interface ClockRow {
    source: string
    ticks_per_second: number
    pairs: number
    max_error_ns: number
    extrapolated: boolean
}
export interface ClocksRow {
    host: string
    reference: string
    offset_ns: number
    rate: number
    error_ns: number | null
    evidence: string
    method: string
}
export interface CostsNsRow {
}
export interface OverheadRow {
    total_ns: number
    busiest_thread_share: number
}
export interface ProblemsRow {
    code: string
    text: string
    count: number
}
export interface InfoResult {
    ranges: number
    instants: number
    counters: number
    allocation_reports: number
    links: number
    window: WindowRow
    processes: ProcessesRow[]
    threads: ThreadsRow[]
    clock: ClockRow
    clocks: ClocksRow[]
    costs_ns: CostsNsRow
    overhead: OverheadRow
    problems: ProblemsRow[]
}
export interface FoundRangesRow {
    at_ns: number
    duration_ns: number
    pid: number | null
    thread: string | null
    thread_id: number | null
    name: string
    file: string
    row: number
}
export interface FindResult {
    found_ranges: FoundRangesRow[]
}
export interface NowProcessesRow {
    pid: number
    rank: number | null
    host: string
    program: string
    command_line: string
    state: string
    exit_code: number | null
    exit_signal: number | null
    recorded_ns: number
    idle_ns: number | null
    file: string | null
    bytes: number | null
    end_realtime_ns: number
    other_threads: number
    in_flight: number
}
export interface NowRangesRow {
    pid: number | null
    thread: string | null
    thread_id: number | null
    level: number
    open_ns: number
    usual_ns: number | null
    is_waiting: boolean
    name: string
}
export interface NowTasksRow {
    pid: number | null
    task: string | null
    suspended_ns: number
    coroutine: string | null
    awaits: string | null
}
export interface NowDevicesRow {
    pid: number | null
    device: string
    device_index: number | null
    last: string
    idle_ns: number
}
export interface NowResult {
    now_processes: NowProcessesRow[]
    now_ranges: NowRangesRow[]
    now_tasks: NowTasksRow[]
    now_devices: NowDevicesRow[]
}
export interface RankTotalsRow {
    world_size: number | null
    collectives: number
    unmatched: number
    unfinished: number
    mismatched: number
    unsynchronised: number
    agreeing: number
    disagreeing: number
    mean_step_ns: number
    worst_rank: number | null
    step_without_worst_ns: number
}
export interface RanksRow {
    rank: number
    host: string
    pid: number
    steps: number
    step_mean_ns: number
    step_median_ns: number
    step_p99_ns: number
    step_max_ns: number
    compute_ns: number
    input_ns: number
    communication_ns: number
    overlap_ns: number
    exposed_ns: number
    waiting_ns: number
    delayed_ns: number
    critical_ns: number
    collectives: number
    step_compute_ns: number
    step_input_ns: number
    step_communication_ns: number
    step_exposed_ns: number
    step_waiting_ns: number
    times_last: number
    step_delayed_ns: number
    step_critical_ns: number
    clock_error_ns: number | null
}
export interface RankStepsRow {
    number: number
    ranks: number
    duration_ns: number
    most_work_ns: number
    slowest: number
    median_work_ns: number
    imbalance: number
}
export interface RankCriticalPathRow {
    time_ns: number
    share: number | null
    count: number
    rank: number
    name: string
    is_collective: boolean
    title: string | null
}
export interface RankFindingsRow {
    rule: string
    rank: number | null
    host: string
    share: number
    text: string
}
export interface RankClocksRow {
    host: string
    reference: string
    offset_ns: number
    rate: number
    error_ns: number | null
    method: string
    exchanges: number
    messages: number
    collectives: number
    wall_clocks: number
}
export interface RanksResult {
    rank_totals: RankTotalsRow
    ranks: RanksRow[]
    rank_steps: RankStepsRow[]
    rank_critical_path: RankCriticalPathRow[]
    rank_findings: RankFindingsRow[]
    rank_clocks: RankClocksRow[]
    problems: ProblemsRow[]
}
