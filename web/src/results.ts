// results.ts: what the server sends of results. analyze_test writes this file (MAREY_WRITE_GOLDENS=1).
import type { ResultColumn } from './result_grid'

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
export const stepsColumns: ResultColumn[] = [
    { key: 'title', title: 'step', help: 'name and number', unit: 'none', is_number: false, is_name: true },
    { key: 'start_ns', title: 'start', help: 'start', unit: 'time', is_number: true, is_name: false },
    { key: 'duration_ns', title: 'duration', help: 'length', unit: 'ns', is_number: true, is_name: false },
    { key: 'change', title: 'vs median', help: 'difference to the median as a share of it', unit: 'change', is_number: true, is_name: false },
    { key: 'gap_ns', title: 'gap', help: 'time since the end of the previous step on its thread', unit: 'ns', is_number: true, is_name: false },
    { key: 'thread', title: 'thread', help: 'name of the thread', unit: 'none', is_number: false, is_name: false },
]
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
export const stepStatisticsColumns: ResultColumn[] = [
    { key: 'kind', title: 'times', help: 'duration or gap', unit: 'none', is_number: false, is_name: false },
    { key: 'count', title: 'count', help: 'number of these times', unit: 'count', is_number: true, is_name: false },
    { key: 'mean_ns', title: 'mean', help: 'mean of these times', unit: 'ns', is_number: true, is_name: false },
    { key: 'min_ns', title: 'min', help: 'shortest of these times', unit: 'ns', is_number: true, is_name: false },
    { key: 'median_ns', title: 'median', help: 'median of these times', unit: 'ns', is_number: true, is_name: false },
    { key: 'p90_ns', title: 'p90', help: '90th percentile of these times', unit: 'ns', is_number: true, is_name: false },
    { key: 'p99_ns', title: 'p99', help: '99th percentile of these times', unit: 'ns', is_number: true, is_name: false },
    { key: 'max_ns', title: 'max', help: 'longest of these times', unit: 'ns', is_number: true, is_name: false },
]
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
export const stepDifferencesColumns: ResultColumn[] = [
    { key: 'place', title: 'place', help: 'inside: on its own thread; other_threads and devices: at the same time', unit: 'none', is_number: false, is_name: false },
    { key: 'difference_ns', title: 'difference', help: 'difference of the times', unit: 'ns', is_number: true, is_name: false },
    { key: 'slow_count', title: 'count', help: 'ranges in the slow step', unit: 'count', is_number: true, is_name: false },
    { key: 'slow_total_ns', title: 'total', help: 'their time', unit: 'ns', is_number: true, is_name: false },
    { key: 'median_count', title: 'in median', help: 'ranges in the median step', unit: 'count', is_number: true, is_name: false },
    { key: 'median_total_ns', title: 'in median', help: 'their time', unit: 'ns', is_number: true, is_name: false },
    { key: 'name', title: 'name', help: 'name of the ranges', unit: 'none', is_number: false, is_name: true },
]
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
export const gpuDevicesColumns: ResultColumn[] = [
    { key: 'busy_ns', title: 'busy', help: 'time with any work running', unit: 'ns', is_number: true, is_name: false },
    { key: 'utilisation', title: 'used', help: 'busy time as a share of the window', unit: 'share', is_number: true, is_name: false },
    { key: 'kernels', title: 'kernels', help: 'number of kernels', unit: 'count', is_number: true, is_name: false },
    { key: 'kernels_ns', title: 'time', help: 'time of all kernels', unit: 'ns', is_number: true, is_name: false },
    { key: 'copies', title: 'copies', help: 'number of copies', unit: 'count', is_number: true, is_name: false },
    { key: 'copies_ns', title: 'time', help: 'time of all copies', unit: 'ns', is_number: true, is_name: false },
    { key: 'sets', title: 'sets', help: 'number of memory sets', unit: 'count', is_number: true, is_name: false },
    { key: 'gaps', title: 'gaps', help: 'periods without work', unit: 'count', is_number: true, is_name: false },
    { key: 'longest_gap_ns', title: 'longest', help: 'the longest of these periods', unit: 'ns', is_number: true, is_name: false },
]
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
export const gpuStreamsColumns: ResultColumn[] = [
    { key: 'stream', title: 'stream', help: 'number of the stream', unit: 'none', is_number: true, is_name: false },
    { key: 'busy_ns', title: 'busy', help: 'time with any work running', unit: 'ns', is_number: true, is_name: false },
    { key: 'utilisation', title: 'used', help: 'busy time as a share of the window', unit: 'share', is_number: true, is_name: false },
    { key: 'kernels', title: 'kernels', help: 'number of kernels', unit: 'count', is_number: true, is_name: false },
    { key: 'kernels_ns', title: 'time', help: 'time of all kernels', unit: 'ns', is_number: true, is_name: false },
    { key: 'copies', title: 'copies', help: 'number of copies', unit: 'count', is_number: true, is_name: false },
    { key: 'copies_ns', title: 'time', help: 'time of all copies', unit: 'ns', is_number: true, is_name: false },
    { key: 'sets', title: 'sets', help: 'number of memory sets', unit: 'count', is_number: true, is_name: false },
    { key: 'gaps', title: 'gaps', help: 'periods without work', unit: 'count', is_number: true, is_name: false },
    { key: 'longest_gap_ns', title: 'longest', help: 'the longest of these periods', unit: 'ns', is_number: true, is_name: false },
    { key: 'name', title: 'name', help: 'name of the stream', unit: 'none', is_number: false, is_name: true },
]
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
export const gpuLaunchesColumns: ResultColumn[] = [
    { key: 'title', title: 'launches', help: 'the kind in words', unit: 'none', is_number: false, is_name: false },
    { key: 'count', title: 'count', help: 'number of these times', unit: 'count', is_number: true, is_name: false },
    { key: 'mean_ns', title: 'mean', help: 'mean of these times', unit: 'ns', is_number: true, is_name: false },
    { key: 'min_ns', title: 'min', help: 'shortest of these times', unit: 'ns', is_number: true, is_name: false },
    { key: 'median_ns', title: 'median', help: 'median of these times', unit: 'ns', is_number: true, is_name: false },
    { key: 'p90_ns', title: 'p90', help: '90th percentile of these times', unit: 'ns', is_number: true, is_name: false },
    { key: 'p99_ns', title: 'p99', help: '99th percentile of these times', unit: 'ns', is_number: true, is_name: false },
    { key: 'max_ns', title: 'max', help: 'longest of these times', unit: 'ns', is_number: true, is_name: false },
]
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
export const gpuGapsColumns: ResultColumn[] = [
    { key: 'start_ns', title: 'at', help: 'start', unit: 'time', is_number: true, is_name: false },
    { key: 'duration_ns', title: 'idle', help: 'length', unit: 'ns', is_number: true, is_name: false },
    { key: 'place', title: 'place', help: 'before_first, between or after_last: where it is among the device\'s work', unit: 'none', is_number: false, is_name: false },
    { key: 'is_starved', title: 'starved', help: 'nothing was queued: the work after it was launched after it began', unit: 'none', is_number: false, is_name: false },
    { key: 'after', title: 'next work', help: 'the work after it', unit: 'none', is_number: false, is_name: false },
    { key: 'host_name', title: 'host activity', help: 'the range that the thread was in for most of it', unit: 'none', is_number: false, is_name: true },
]
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
export const gpuGapHostsColumns: ResultColumn[] = [
    { key: 'time_ns', title: 'time', help: 'time of the activity', unit: 'ns', is_number: true, is_name: false },
    { key: 'share', title: 'share', help: 'time as a share of all activity', unit: 'share', is_number: true, is_name: false },
    { key: 'activity', title: 'range', help: 'range and function in words', unit: 'none', is_number: false, is_name: true },
]
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
export const gpuIdleHostsColumns: ResultColumn[] = [
    { key: 'time_ns', title: 'time', help: 'time of the activity', unit: 'ns', is_number: true, is_name: false },
    { key: 'share', title: 'share', help: 'time as a share of all activity', unit: 'share', is_number: true, is_name: false },
    { key: 'activity', title: 'range', help: 'range and function in words', unit: 'none', is_number: false, is_name: true },
]
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
export const gpuKernelsColumns: ResultColumn[] = [
    { key: 'total_ns', title: 'time', help: 'time of all launches', unit: 'ns', is_number: true, is_name: false },
    { key: 'share', title: 'share', help: 'share of the time of all work of the device', unit: 'share', is_number: true, is_name: false },
    { key: 'count', title: 'count', help: 'number of launches', unit: 'count', is_number: true, is_name: false },
    { key: 'mean_ns', title: 'mean', help: 'mean time', unit: 'ns', is_number: true, is_name: false },
    { key: 'min_ns', title: 'min', help: 'shortest time', unit: 'ns', is_number: true, is_name: false },
    { key: 'max_ns', title: 'max', help: 'longest time', unit: 'ns', is_number: true, is_name: false },
    { key: 'mean_queue_ns', title: 'queue', help: 'mean time from the launching call to the kernel', unit: 'ns', is_number: true, is_name: false },
    { key: 'grid', title: 'grid', help: 'most frequent grid', unit: 'none', is_number: true, is_name: false },
    { key: 'block', title: 'block', help: 'its block', unit: 'none', is_number: true, is_name: false },
    { key: 'registers_per_thread', title: 'regs', help: 'registers of each thread', unit: 'none', is_number: true, is_name: false },
    { key: 'blocks_per_sm', title: 'blocks/SM', help: 'blocks for each multiprocessor', unit: 'ratio', is_number: true, is_name: false },
    { key: 'occupancy', title: 'occupancy', help: 'estimated occupancy', unit: 'share', is_number: true, is_name: false },
    { key: 'name', title: 'kernel', help: 'name of the kernel', unit: 'none', is_number: false, is_name: true },
]
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
export const gpuRangesColumns: ResultColumn[] = [
    { key: 'time_ns', title: 'time', help: 'time of that work', unit: 'ns', is_number: true, is_name: false },
    { key: 'share', title: 'share', help: 'share of the time of all work of the device', unit: 'share', is_number: true, is_name: false },
    { key: 'count', title: 'launched', help: 'pieces of work launched', unit: 'count', is_number: true, is_name: false },
    { key: 'name', title: 'range', help: 'the range or function', unit: 'none', is_number: false, is_name: true },
]
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
export const gpuFunctionsColumns: ResultColumn[] = [
    { key: 'time_ns', title: 'time', help: 'time of that work', unit: 'ns', is_number: true, is_name: false },
    { key: 'share', title: 'share', help: 'share of the time of all work of the device', unit: 'share', is_number: true, is_name: false },
    { key: 'count', title: 'launched', help: 'pieces of work launched', unit: 'count', is_number: true, is_name: false },
    { key: 'name', title: 'function', help: 'the range or function', unit: 'none', is_number: false, is_name: true },
]
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
export const gpuTransfersColumns: ResultColumn[] = [
    { key: 'transfer', title: 'direction', help: 'both in words', unit: 'none', is_number: false, is_name: false },
    { key: 'count', title: 'count', help: 'number of transfers', unit: 'count', is_number: true, is_name: false },
    { key: 'bytes', title: 'bytes', help: 'sum of these sizes', unit: 'bytes', is_number: true, is_name: false },
    { key: 'time_ns', title: 'time', help: 'time of all transfers', unit: 'ns', is_number: true, is_name: false },
    { key: 'gb_per_s', title: 'GB/s', help: 'bytes per nanosecond', unit: 'ratio', is_number: true, is_name: false },
]
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
export const gpuCallsColumns: ResultColumn[] = [
    { key: 'total_ns', title: 'time', help: 'time of all calls', unit: 'ns', is_number: true, is_name: false },
    { key: 'count', title: 'count', help: 'number of calls', unit: 'count', is_number: true, is_name: false },
    { key: 'mean_ns', title: 'mean', help: 'mean time', unit: 'ns', is_number: true, is_name: false },
    { key: 'median_ns', title: 'median', help: 'median time', unit: 'ns', is_number: true, is_name: false },
    { key: 'p99_ns', title: 'p99', help: '99th percentile of the time', unit: 'ns', is_number: true, is_name: false },
    { key: 'max_ns', title: 'max', help: 'longest time', unit: 'ns', is_number: true, is_name: false },
    { key: 'name', title: 'call', help: 'name of the function', unit: 'none', is_number: false, is_name: true },
]
export interface GpuWaitsRow {
    thread: string | null
    thread_id: number | null
    count: number
    time_ns: number
    idle_after_ns: number
}
export const gpuWaitsColumns: ResultColumn[] = [
    { key: 'count', title: 'waits', help: 'number of waits', unit: 'count', is_number: true, is_name: false },
    { key: 'time_ns', title: 'time', help: 'time of all waits', unit: 'ns', is_number: true, is_name: false },
    { key: 'idle_after_ns', title: 'idle after', help: 'time that a device was idle from the end of a wait until the thread\'s next launch', unit: 'ns', is_number: true, is_name: false },
]
export interface GpuWaitCallersRow {
    thread: string | null
    thread_id: number | null
    name: string | null
    count: number
    time_ns: number
}
export const gpuWaitCallersColumns: ResultColumn[] = [
    { key: 'name', title: 'range', help: 'name of the range', unit: 'none', is_number: false, is_name: true },
    { key: 'count', title: 'waits', help: 'number of waits', unit: 'count', is_number: true, is_name: false },
    { key: 'time_ns', title: 'time', help: 'time of these waits', unit: 'ns', is_number: true, is_name: false },
]
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
export const gpuFindingsColumns: ResultColumn[] = [
    { key: 'rule', title: 'rule', help: 'name of the rule; docs/guide/gpu.md has the thresholds', unit: 'none', is_number: false, is_name: false },
    { key: 'share', title: 'share', help: 'the number that was compared with the threshold', unit: 'share', is_number: true, is_name: false },
    { key: 'text', title: 'text', help: 'the problem in one sentence', unit: 'none', is_number: false, is_name: true },
]
export interface GpuEvidenceRow {
    finding: number
    what: string
    count: number | null
    time_ns: number | null
}
export const gpuEvidenceColumns: ResultColumn[] = [
    { key: 'what', title: 'what', help: 'what was counted or measured', unit: 'none', is_number: false, is_name: true },
    { key: 'count', title: 'count', help: 'number', unit: 'count', is_number: true, is_name: false },
    { key: 'time_ns', title: 'time', help: 'time', unit: 'ns', is_number: true, is_name: false },
]
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
export const memoryHoldersColumns: ResultColumn[] = [
    { key: 'path', title: 'path', help: 'names of the ranges, outermost first', unit: 'none', is_number: false, is_name: true },
    { key: 'peak_bytes', title: 'at peak', help: 'held at the peak', unit: 'bytes', is_number: true, is_name: false },
    { key: 'peak_allocations', title: 'peak count', help: 'number of these allocations', unit: 'count', is_number: true, is_name: false },
    { key: 'allocated_bytes', title: 'taken', help: 'allocated in these ranges, without the ranges inside them', unit: 'bytes', is_number: true, is_name: false },
    { key: 'allocations', title: 'taken count', help: 'number of these', unit: 'count', is_number: true, is_name: false },
    { key: 'total_allocated_bytes', title: 'total', help: 'allocated in these ranges and the ranges inside them', unit: 'bytes', is_number: true, is_name: false },
    { key: 'freed_bytes', title: 'freed', help: 'freed in these ranges, wherever it was allocated', unit: 'bytes', is_number: true, is_name: false },
    { key: 'kept_bytes', title: 'kept', help: 'allocated here and not freed in the window', unit: 'bytes', is_number: true, is_name: false },
    { key: 'kept_allocations', title: 'kept count', help: 'number of these', unit: 'count', is_number: true, is_name: false },
]
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
export const memoryRefusalsColumns: ResultColumn[] = [
    { key: 'time_ns', title: 'at', help: 'when it was', unit: 'time', is_number: true, is_name: false },
    { key: 'asked_bytes', title: 'requested', help: 'size of the request', unit: 'bytes', is_number: true, is_name: false },
    { key: 'allocated_bytes', title: 'held', help: 'held at that time', unit: 'bytes', is_number: true, is_name: false },
    { key: 'reserved_bytes', title: 'reserved', help: 'reserved at that time', unit: 'bytes', is_number: true, is_name: false },
    { key: 'path', title: 'path', help: 'names of the ranges, outermost first', unit: 'none', is_number: false, is_name: true },
]
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
export const findingsColumns: ResultColumn[] = [
    { key: 'id', title: 'finding', help: 'the rule; docs/guide/explain.md has the thresholds', unit: 'none', is_number: false, is_name: false },
    { key: 'gain_ns', title: 'up to', help: 'the largest possible gain; of function.self, that of twice the speed', unit: 'ns', is_number: true, is_name: false },
    { key: 'gain_share', title: 'share', help: 'the same as a share of the window', unit: 'share', is_number: true, is_name: false },
    { key: 'gain_bytes', title: 'memory', help: 'the largest possible gain of memory', unit: 'bytes', is_number: true, is_name: false },
    { key: 'certainty', title: 'certainty', help: 'certain: a sum of what was recorded; likely: the gain may be much smaller; possible: there may be a reason that a trace cannot show', unit: 'none', is_number: false, is_name: false },
    { key: 'claim', title: 'claim', help: 'the finding in one sentence', unit: 'none', is_number: false, is_name: true },
]
export interface FindingEvidenceRow {
    finding: number
    count: number | null
    time_ns: number | null
    bytes: number | null
    text: string
}
export const findingEvidenceColumns: ResultColumn[] = [
    { key: 'finding', title: 'finding', help: 'number of the finding', unit: 'none', is_number: true, is_name: false },
    { key: 'count', title: 'count', help: 'how many', unit: 'count', is_number: true, is_name: false },
    { key: 'time_ns', title: 'time', help: 'how long', unit: 'ns', is_number: true, is_name: false },
    { key: 'bytes', title: 'memory', help: 'how much', unit: 'bytes', is_number: true, is_name: false },
    { key: 'text', title: 'evidence', help: 'what was counted', unit: 'none', is_number: false, is_name: true },
]
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
export const diffColumns: ResultColumn[] = [
    { key: 'verdict', title: 'verdict', help: 'with several runs: slower, faster, same or cannot tell', unit: 'none', is_number: false, is_name: false },
    { key: 'difference', title: 'change', help: 'new minus old', unit: 'ns', is_number: true, is_name: false },
    { key: 'old', title: 'old', help: 'mean of the old runs, in the unit of the metric', unit: 'ns', is_number: true, is_name: false },
    { key: 'new', title: 'new', help: 'mean of the new runs', unit: 'ns', is_number: true, is_name: false },
    { key: 'change', title: 'change %', help: 'relative; with several runs, of their geometric means', unit: 'change', is_number: true, is_name: false },
    { key: 'change_low', title: 'from', help: 'lower end of its 95% interval', unit: 'change', is_number: true, is_name: false },
    { key: 'change_high', title: 'to', help: 'upper end of its 95% interval', unit: 'change', is_number: true, is_name: false },
]
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
export const diffRowsColumns: ResultColumn[] = [
    { key: 'verdict', title: 'verdict', help: 'with several runs: slower, faster, same or cannot tell', unit: 'none', is_number: false, is_name: false },
    { key: 'difference', title: 'change', help: 'new minus old', unit: 'ns', is_number: true, is_name: false },
    { key: 'old', title: 'old', help: 'mean of the old runs, in the unit of the metric', unit: 'ns', is_number: true, is_name: false },
    { key: 'new', title: 'new', help: 'mean of the new runs', unit: 'ns', is_number: true, is_name: false },
    { key: 'change', title: 'change %', help: 'relative; with several runs, of their geometric means', unit: 'change', is_number: true, is_name: false },
    { key: 'change_low', title: 'from', help: 'lower end of its 95% interval', unit: 'change', is_number: true, is_name: false },
    { key: 'change_high', title: 'to', help: 'upper end of its 95% interval', unit: 'change', is_number: true, is_name: false },
    { key: 'old_calls', title: 'calls', help: 'mean number of calls', unit: 'count', is_number: true, is_name: false },
    { key: 'new_calls', title: 'new calls', help: 'mean number of calls', unit: 'count', is_number: true, is_name: false },
    { key: 'match', title: 'match', help: 'how the row was found in the old runs: same, line (on another line), moved (below another parent), guess (of the same kind at the same position), new or gone', unit: 'none', is_number: false, is_name: false },
    { key: 'name', title: 'name', help: 'name in the new runs; of gone rows, in the old ones', unit: 'none', is_number: false, is_name: true },
]
export interface DiffTotalsRow {
    kind: string
    old: number
    old_most: number
    new: number
    new_most: number
    differs: boolean
}
export const diffTotalsColumns: ResultColumn[] = [
    { key: 'old', title: 'old', help: 'in the old run; of several, the least', unit: 'count', is_number: true, is_name: false },
    { key: 'new', title: 'new', help: 'in the new run; of several, the least', unit: 'count', is_number: true, is_name: false },
]
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
export const diffCountsColumns: ResultColumn[] = [
    { key: 'old', title: 'old', help: 'in the old run; of several, the least', unit: 'count', is_number: true, is_name: false },
    { key: 'new', title: 'new', help: 'in the new run; of several, the least', unit: 'count', is_number: true, is_name: false },
    { key: 'name', title: 'name', help: 'the name', unit: 'none', is_number: false, is_name: true },
]
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
export const diffStepsColumns: ResultColumn[] = [
    { key: 'side', title: 'steps', help: 'old or new', unit: 'none', is_number: false, is_name: false },
    { key: 'count', title: 'count', help: 'number of steps', unit: 'count', is_number: true, is_name: false },
    { key: 'mean_ns', title: 'mean', help: 'mean of steps', unit: 'ns', is_number: true, is_name: false },
    { key: 'min_ns', title: 'min', help: 'shortest of steps', unit: 'ns', is_number: true, is_name: false },
    { key: 'median_ns', title: 'median', help: 'median of steps', unit: 'ns', is_number: true, is_name: false },
    { key: 'p90_ns', title: 'p90', help: '90th percentile of steps', unit: 'ns', is_number: true, is_name: false },
    { key: 'p99_ns', title: 'p99', help: '99th percentile of steps', unit: 'ns', is_number: true, is_name: false },
    { key: 'max_ns', title: 'max', help: 'longest of steps', unit: 'ns', is_number: true, is_name: false },
]
export interface DiffWarningsRow {
    code: string
    old: string
    new: string
    text: string
}
export const diffWarningsColumns: ResultColumn[] = [
    { key: 'code', title: 'code', help: 'short and stable name', unit: 'none', is_number: false, is_name: false },
    { key: 'old', title: 'old', help: 'what the old runs have', unit: 'none', is_number: false, is_name: false },
    { key: 'new', title: 'new', help: 'what the new runs have', unit: 'none', is_number: false, is_name: false },
    { key: 'text', title: 'text', help: 'the reason in one sentence', unit: 'none', is_number: false, is_name: true },
]
export interface DiffResult {
    diff: DiffRow
    diff_rows: DiffRowsRow[]
    diff_totals: DiffTotalsRow[]
    diff_counts: DiffCountsRow[]
    diff_steps: DiffStepsRow[]
    diff_warnings: DiffWarningsRow[]
}
