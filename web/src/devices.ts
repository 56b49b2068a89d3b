// devices.ts: what `marey gpu` and `marey memory` report; rows lead into the timeline.
import type { App } from './app'
import { add, el, fill } from './dom'
import { bytes, clean, count, label, percent, plural, rulerTime, time } from './format'
import { Grid, type Column } from './grid'

interface Statistics { count: number; total_ns: number; mean_ns: number; max_ns: number }
interface Gap { start_ns: number; duration_ns: number; is_starved: boolean; before: string | null; after: string | null; host: { name: string | null; function: string | null; time_ns: number }[] }
interface Kernel { name: string; share: number; times: Statistics; mean_queue_ns: number | null; occupancy: number | null }
interface Transfer { direction: string; is_pageable: boolean; count: number; bytes: number; time_ns: number; gb_per_s: number | null }
interface GpuDevice {
    device: string; index: number; name: string | null; busy_ns: number; idle_ns: number; utilisation: number; kernels: { count: number; total_ns: number }
    copies: { count: number; total_ns: number }; longest_gaps: Gap[]; kernel_table: Kernel[]; transfers: Transfer[]
}
interface Gpu { window_start_ns: number; devices?: GpuDevice[]; findings?: { rule: string; share: number; text: string }[] }
interface Holder { path: string[]; allocations: number; allocated_bytes: number; total_allocated_bytes: number; freed_bytes: number; peak_bytes: number; kept_bytes: number }
interface MemoryDevice { device: string; index: number; peak_bytes: number; peak_time_ns: number; peak_reserved: number; allocations: number; allocated_bytes: number; kept_bytes: number; holders: Holder[] }
interface Memory { window_start_ns: number; devices?: MemoryDevice[] }

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
            if (outline.has_gpu) this.gpu(await this.app.data.json<Gpu>('gpu', { trace }))
            if (outline.has_memory) this.memory(await this.app.data.json<Memory>('memory', { trace, by: 'path' }))
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

    private gpu(gpu: Gpu): void {
        for (const finding of gpu.findings ?? []) add(this.body, el('p.finding', {}, clean(finding.text, 1000)))
        for (const device of gpu.devices ?? []) {
            const title = `${device.device}:${device.index}`
            add(this.body, el('h2', {}, `${title}${device.name ? ` · ${clean(device.name, 100)}` : ''}`), el('p.note', {},
                `busy ${time(device.busy_ns)} (${percent(device.utilisation)}) · ${plural(device.kernels.count, 'kernel')} ${time(device.kernels.total_ns)} · ${count(device.copies.count)} copies ${time(device.copies.total_ns)} · idle ${time(device.idle_ns)}`))
            const queued = device.kernel_table.some(k => k.mean_queue_ns !== null), occupied = device.kernel_table.some(k => k.occupancy !== null)
            this.table<Kernel>('Kernels', [text('name', 'Name', 'minmax(240px, 1fr)', k => clean(k.name)), amount('count', 'Count', k => k.times.count, count),
                { ...amount<Kernel>('total', 'Total', k => k.times.total_ns, time), share: k => k.share }, amount('mean', 'Mean', k => k.times.mean_ns, time), amount('max', 'Max', k => k.times.max_ns, time),
                ...(queued ? [amount<Kernel>('queue', 'Queue', k => k.mean_queue_ns, time)] : []), ...(occupied ? [amount<Kernel>('occupancy', 'Occupancy', k => k.occupancy, percent)] : [])], device.kernel_table, k => this.onName(k.name))
            const last = device.longest_gaps.reduce((most, g) => Math.max(most, g.start_ns - gpu.window_start_ns), 0)
            this.table<Gap>('Longest gaps', [amount('start', 'Start', g => g.start_ns - gpu.window_start_ns, v => rulerTime(v, 1000, last), '116px'), amount('duration', 'Idle', g => g.duration_ns, time),
                text('host', 'Host activity', 'minmax(200px, 1fr)', g => clean(g.host.slice(0, 2).map(h => `${label(h.name ?? h.function ?? 'no range')} ${time(h.time_ns)}`).join(', '))),
                text('after', 'Next work', 'minmax(160px, 1fr)', g => clean(g.after ?? ''))], device.longest_gaps,
            g => this.onTime(g.start_ns - gpu.window_start_ns, g.start_ns - gpu.window_start_ns + g.duration_ns))
            this.table<Transfer>('Copies', [text('direction', 'Direction', 'minmax(160px, 1fr)', t => t.direction + (t.is_pageable ? ', pageable' : '')), amount('count', 'Count', t => t.count, count),
                amount('bytes', 'Bytes', t => t.bytes, bytes), amount('time', 'Time', t => t.time_ns, time), amount('rate', 'GB/s', t => t.gb_per_s, v => v.toFixed(1))], device.transfers, () => {})
        }
    }

    private memory(memory: Memory): void {
        for (const device of memory.devices ?? []) {
            const peak = device.peak_time_ns - memory.window_start_ns
            add(this.body, el('h2', {}, `Memory · ${device.device}${device.index >= 0 ? `:${device.index}` : ''}`), el('p.note', {},
                `peak ${bytes(device.peak_bytes)} at `, el('button.link', { onclick: () => this.onTime(peak - 1e6, peak + 1e6) }, time(peak, 4)),
                ` · ${plural(device.allocations, 'allocation')}, ${bytes(device.allocated_bytes)} · kept ${bytes(device.kept_bytes)}`))
            this.table<Holder>('Held at the peak', [text('path', 'Allocated in', 'minmax(280px, 1fr)', h => clean([...h.path].reverse().map(label).join(' ‹ '))),
                { ...amount<Holder>('peak', 'At peak', h => h.peak_bytes, bytes), share: h => h.peak_bytes / (device.peak_bytes || 1) },
                { ...amount<Holder>('allocated', 'Allocated', h => h.allocated_bytes, bytes), help: 'Allocated in these ranges, without the ranges inside them' },
                { ...amount<Holder>('total', 'Total', h => h.total_allocated_bytes, bytes), help: 'Allocated in these ranges and the ranges inside them' },
                amount('freed', 'Freed', h => h.freed_bytes, bytes), amount('kept', 'Kept', h => h.kept_bytes, bytes), amount('count', 'Count', h => h.allocations, count)],
            device.holders, h => this.onName(h.path[h.path.length - 1] ?? ''))
        }
    }
}
