// devices.ts: what `marey gpu` and `marey memory` report; rows lead into the timeline.
import type { App } from './app'
import { add, el, fill } from './dom'
import { bytes, clean, count, label, percent, plural, rulerTime, time } from './format'
import { Grid, type Column } from './grid'
import { resultColumns } from './result_grid'
import { gpuGapsColumns, gpuKernelsColumns, gpuTransfersColumns, memoryHoldersColumns, type GpuResult, type MemoryResult } from './results'

interface Place { pid: number | null; device: string; device_index: number | null }
const at = (device: Place) => (row: Place): boolean => row.pid === device.pid && row.device === device.device && row.device_index === device.device_index
const placeName = (device: Place): string => device.device + (device.device_index === null ? '' : `:${device.device_index}`)

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
        grid.root.style.height = `${Math.min(rows.length, 12) * 26 + 48}px`
        add(this.body, el('h3', {}, title), grid.root)
        grid.show(columns, rows)
    }

    private gpu(gpu: GpuResult): void {
        for (const finding of gpu.gpu_findings ?? []) add(this.body, el('p.finding', {}, clean(finding.text, 1000)))
        for (const device of gpu.gpu_devices ?? []) {
            const title = placeName(device), kernels = gpu.gpu_kernels.filter(at(device)), gaps = gpu.gpu_gaps.filter(at(device)), start = gpu.gpu.window_start_ns
            add(this.body, el('h2', {}, `${title}${device.name ? ` · ${clean(device.name, 100)}` : ''}`), el('p.note', {},
                `busy ${time(device.busy_ns)} (${percent(device.utilisation)}) · ${plural(device.kernels, 'kernel')} ${time(device.kernels_ns)} · ${count(device.copies)} copies ${time(device.copies_ns)} · idle ${time(device.idle_ns)}`))
            this.table('Kernels', resultColumns(gpuKernelsColumns, kernels, { total_ns: { share: k => k.share } }), kernels, k => this.onName(k.name))
            const last = gaps.reduce((most, g) => Math.max(most, g.start_ns - start), 0)
            this.table('Longest gaps', resultColumns(gpuGapsColumns, gaps, {
                start_ns: { text: g => rulerTime(g.start_ns - start, 1000, last), width: '116px' },
                host_name: { text: g => clean(gpu.gpu_gap_hosts.filter(h => h.gap === g.gap).slice(0, 2).map(h => `${label(h.name ?? h.function ?? 'no range')} ${time(h.time_ns)}`).join(', ')) },
            }), gaps, g => this.onTime(g.start_ns - start, g.start_ns - start + g.duration_ns))
            const transfers = gpu.gpu_transfers.filter(at(device))
            this.table('Copies', resultColumns(gpuTransfersColumns, transfers), transfers, () => {})
        }
    }

    private memory(memory: MemoryResult): void {
        for (const device of memory.memory_devices ?? []) {
            const peak = device.peak_time_ns - memory.memory_window.window_start_ns
            add(this.body, el('h2', {}, `Memory · ${placeName(device)}`), el('p.note', {},
                `peak ${bytes(device.peak_bytes)} at `, el('button.link', { onclick: () => this.onTime(peak - 1e6, peak + 1e6) }, time(peak, 4)),
                ` · ${plural(device.allocations, 'allocation')}, ${bytes(device.allocated_bytes)} · kept ${bytes(device.kept_bytes)}`))
            const holders = memory.memory_holders.filter(at(device))
            this.table('Held at the peak', resultColumns(memoryHoldersColumns, holders, {
                path: { title: 'Allocated in', text: h => clean([...h.path].reverse().map(label).join(' ‹ ')) || 'no range' },
                peak_bytes: { share: h => h.peak_bytes / (device.peak_bytes || 1) },
            }), holders, h => this.onName(h.path[h.path.length - 1] ?? ''))
        }
    }
}
