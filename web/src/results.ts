// results.ts: what the server sends of results. analyze_test writes this file (MAREY_WRITE_GOLDENS=1).
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
export interface FindingsRow {
    finding: number
    id: string
    gain_ns: number | null
    gain_share: number | null
    gain_bytes: number | null
    is_fault: boolean
    certainty: string
    claim: string
    name: string | null
    advice: string
    command: string
    start_ns: number | null
    duration_ns: number | null
    pid: number | null
    thread: string | null
    thread_id: number | null
}
export interface FindingEvidenceRow {
    finding: number
    count: number | null
    time_ns: number | null
    bytes: number | null
    text: string
}
export interface ExplainResult {
    findings: FindingsRow[]
    finding_evidence: FindingEvidenceRow[]
}
export interface DiffRow {
    by: string
    metric: string
    old_runs: number
    new_runs: number
    in_turns: boolean
    per_step: boolean
    verdict: string | null
    difference: number
    old: number
    new: number
    change: number | null
    change_low: number | null
    change_high: number | null
    more_runs: number | null
    old_window_ns: number
    new_window_ns: number
}
export interface DiffRowsRow {
    verdict: string | null
    difference: number
    old: number
    new: number
    change: number | null
    change_low: number | null
    change_high: number | null
    more_runs: number | null
    old_calls: number
    new_calls: number
    match: string
    is_device: boolean
    name: string
    old_name: string | null
    path: string[]
    old_path: string[]
}
export interface DiffTotalsRow {
    kind: string
    old: number
    old_most: number
    new: number
    new_most: number
    differs: boolean
}
export interface DiffCountsRow {
    kind: string
    old: number
    old_most: number
    new: number
    new_most: number
    differs: boolean
    match: string
    causes: number
    name: string
    old_name: string | null
    path: string[]
    inside: string[]
}
export interface DiffStepsRow {
    side: string
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
export interface DiffWarningsRow {
    code: string
    old: string
    new: string
    text: string
}
export interface DiffResult {
    diff: DiffRow
    diff_rows: DiffRowsRow[]
    diff_totals: DiffTotalsRow[]
    diff_counts: DiffCountsRow[]
    diff_steps: DiffStepsRow[]
    diff_warnings: DiffWarningsRow[]
}
