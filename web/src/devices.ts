// devices.ts: what `marey gpu` and `marey memory` report; rows lead into the timeline.
import type { App } from './app'
import { add, el, fill } from './dom'
import { bytes, clean, count, label, percent, plural, rulerTime, time } from './format'
import { Grid, type Column } from './grid'
import type { GpuGapsRow, GpuKernelsRow, GpuResult, GpuTransfersRow, MemoryHoldersRow, MemoryResult } from './results'

type Gap = GpuGapsRow
type Kernel = GpuKernelsRow
type Transfer = GpuTransfersRow
type Holder = MemoryHoldersRow
interface Place { pid: number | null; device: string; device_index: number | null }
const at = (device: Place) => (row: Place): boolean => row.pid === device.pid && row.device === device.device && row.device_index === device.device_index
const placeName = (device: Place): string => device.device + (device.device_index === null ? '' : `:${device.device_index}`)

const text = <Row>(key: string, title: string, width: string, get: (row: Row) => string): Column<Row> => ({ key, title, width, value: get, text: get })
const amount = <Row>(key: string, title: string, get: (row: Row) => number | null, show: (value: number) => string, width = '92px'): Column<Row> =>
    ({ key, title, width, number: true, value: get, text: row => { const value = get(row); return value === null ? '' : show(value) } })

export class DevicesView {
    readonly root = el('section.view', { 'aria-label': 'GPU and memory' })
    private body = el('div.reports', { tabindex: '0', role: 'region', 'aria-label': 'GPU and memory reports' })
    private loaded = -1
    onTime: (begin: number, end: number) => void = () => {}
    onName: (name: string) => void = () => {}

    constructor(private app: App, chooser: HTMLElement) { add(this.root, el('div.toolbar', {}, chooser), this.body) }

    forget(): void { this.loaded = -1 }

    async update(): Promise<void> {
        const { trace } = this.app.state, outline = this.app.data.outline.traces[trace]
        if (this.loaded === trace || !outline) return
        this.loaded = trace
        fill(this.body)
        try {
            if (outline.has_gpu) this.gpu(await this.app.data.json<GpuResult>('gpu', { trace }))
            if (outline.has_memory) this.memory(await this.app.data.json<MemoryResult>('memory', { trace, by: 'path' }))
        } catch (error) { add(this.body, el('p.warn', {}, (error as Error).message)) }
        if (!outline.has_gpu && !outline.has_memory)
            add(this.body, el('p.empty', {}, 'This trace has no GPU work and no memory reports. Record them with marey run --gpu and marey run --memory, or with marey.torch.profile(profile_memory=True).'))
    }

    private table<Row>(title: string, columns: Column<Row>[], rows: Row[], open: (row: Row) => void): void {
        if (!rows.length) return
        const grid = new Grid<Row>(title)
        grid.onOpen = open
        grid.root.style.height = `${Math.min(rows.length, 12) * 26 + 32}px`
        add(this.body, el('h3', {}, title), grid.root)
        grid.show(columns, rows)
    }

    private gpu(gpu: GpuResult): void {
        for (const finding of gpu.gpu_findings ?? []) add(this.body, el('p.finding', {}, clean(finding.text, 1000)))
        for (const device of gpu.gpu_devices ?? []) {
            const title = placeName(device), kernels = gpu.gpu_kernels.filter(at(device)), gaps = gpu.gpu_gaps.filter(at(device)), start = gpu.gpu.window_start_ns
            add(this.body, el('h2', {}, `${title}${device.name ? ` · ${clean(device.name, 100)}` : ''}`), el('p.note', {},
                `busy ${time(device.busy_ns)} (${percent(device.utilisation)}) · ${plural(device.kernels, 'kernel')} ${time(device.kernels_ns)} · ${count(device.copies)} copies ${time(device.copies_ns)} · idle ${time(device.idle_ns)}`))
            const queued = kernels.some(k => k.mean_queue_ns !== null), occupied = kernels.some(k => k.occupancy !== null)
            this.table<Kernel>('Kernels', [text('name', 'Name', 'minmax(240px, 1fr)', k => clean(k.name)), amount('count', 'Count', k => k.count, count),
                { ...amount<Kernel>('total', 'Total', k => k.total_ns, time), share: k => k.share }, amount('mean', 'Mean', k => k.mean_ns, time), amount('max', 'Max', k => k.max_ns, time),
                ...(queued ? [amount<Kernel>('queue', 'Queue', k => k.mean_queue_ns, time)] : []), ...(occupied ? [amount<Kernel>('occupancy', 'Occupancy', k => k.occupancy, percent)] : [])], kernels, k => this.onName(k.name))
            const last = gaps.reduce((most, g) => Math.max(most, g.start_ns - start), 0)
            this.table<Gap>('Longest gaps', [amount('start', 'Start', g => g.start_ns - start, v => rulerTime(v, 1000, last), '116px'), amount('duration', 'Idle', g => g.duration_ns, time),
                text('host', 'Host activity', 'minmax(200px, 1fr)', g => clean(gpu.gpu_gap_hosts.filter(h => h.gap === g.gap).slice(0, 2).map(h => `${label(h.name ?? h.function ?? 'no range')} ${time(h.time_ns)}`).join(', '))),
                text('after', 'Next work', 'minmax(160px, 1fr)', g => clean(g.after ?? ''))], gaps,
            g => this.onTime(g.start_ns - start, g.start_ns - start + g.duration_ns))
            this.table<Transfer>('Copies', [text('direction', 'Direction', 'minmax(160px, 1fr)', t => t.direction + (t.is_pageable ? ', pageable' : '')), amount('count', 'Count', t => t.count, count),
                amount('bytes', 'Bytes', t => t.bytes, bytes), amount('time', 'Time', t => t.time_ns, time), amount('rate', 'GB/s', t => t.gb_per_s, v => v.toFixed(1))], gpu.gpu_transfers.filter(at(device)), () => {})
        }
    }

    private memory(memory: MemoryResult): void {
        for (const device of memory.memory_devices ?? []) {
            const peak = device.peak_time_ns - memory.memory_window.window_start_ns
            add(this.body, el('h2', {}, `Memory · ${placeName(device)}`), el('p.note', {},
                `peak ${bytes(device.peak_bytes)} at `, el('button.link', { onclick: () => this.onTime(peak - 1e6, peak + 1e6) }, time(peak, 4)),
                ` · ${plural(device.allocations, 'allocation')}, ${bytes(device.allocated_bytes)} · kept ${bytes(device.kept_bytes)}`))
            this.table<Holder>('Held at the peak', [text('path', 'Allocated in', 'minmax(280px, 1fr)', h => clean([...h.path].reverse().map(label).join(' ‹ '))),
                { ...amount<Holder>('peak', 'At peak', h => h.peak_bytes, bytes), share: h => h.peak_bytes / (device.peak_bytes || 1) },
                { ...amount<Holder>('allocated', 'Allocated', h => h.allocated_bytes, bytes), help: 'Allocated in these ranges, without the ranges inside them' },
                { ...amount<Holder>('total', 'Total', h => h.total_allocated_bytes, bytes), help: 'Allocated in these ranges and the ranges inside them' },
                amount('freed', 'Freed', h => h.freed_bytes, bytes), amount('kept', 'Kept', h => h.kept_bytes, bytes), amount('count', 'Count', h => h.allocations, count)],
            memory.memory_holders.filter(at(device)), h => this.onName(h.path[h.path.length - 1] ?? ''))
        }
    }
}
