// steps.ts: one bar per step; the slow ones are marked and compared with the median step.
import type { App } from './app'
import { add, el, fill, placeTip, prepare } from './dom'
import { clean, count, functionFirst, plural, time } from './format'
import { Grid } from './grid'
import { resultColumns } from './result_grid'
import { stepDifferencesColumns, type StepDifferencesRow, type StepsResult, type StepsRow, type StepStatisticsRow } from './results'
import { font } from './text'

type Difference = StepDifferencesRow
export type Step = StepsRow & { row?: number; track?: number }
// What the page needs of the result, with times from the beginning of the trace.
export interface StepReport { durations: StepStatisticsRow; steps: Step[]; slowest: { step: Step; differences: Difference[] }[] }

// The result by its slow steps, slowest first; null if there are no steps.
function reportOf(result: StepsResult): StepReport | null {
    const durations = result.step_statistics?.find(each => each.kind === 'duration')
    if (!durations) return null
    const steps: Step[] = result.steps.map(step => ({ ...step, start_ns: step.start_ns - result.step_window.window_start_ns }))
    const slow = new Map<number, Difference[]>()
    for (const each of result.step_differences) slow.set(each.range, [...slow.get(each.range) ?? [], each])
    const slowest = [...slow].flatMap(([range, differences]) => steps.filter(step => step.range === range).map(step => ({ step, differences })))
    return { durations, steps, slowest }
}

const axis = 66 // pixels of the chart's labels
const places: Record<string, string> = { inside: 'own thread', other_threads: 'other threads', devices: 'devices' }

const signed = (ns: number): string => (ns > 0 ? '+' : ns < 0 ? '−' : '') + time(Math.abs(ns))

// Whether a step is an outlier: it takes a fifth longer than the median step.
export function isSlow(step: Step, report: StepReport): boolean {
    return step.duration_ns > 1.2 * report.durations.median_ns && !step.is_partial
}

export class StepsView {
    readonly root = el('section.view', { 'aria-label': 'Steps' })
    private canvas = el<HTMLCanvasElement>('canvas', { role: 'img', 'aria-label': 'Duration of each step' })
    private chart = el('div.chart', {}, this.canvas)
    private note = el('span.note')
    private lower = el('div.step-tables')
    private report: StepReport | null = null
    private loaded = -1
    private hover = -1
    private tip = el('div.tip', { hidden: true })
    onStep: (step: Step) => void = () => {}
    onName: (name: string) => void = () => {}

    constructor(private app: App, chooser: HTMLElement) {
        add(this.chart, this.tip)
        add(this.root, el('div.toolbar', {}, chooser, this.note), this.chart, this.lower)
        new ResizeObserver(() => this.paint()).observe(this.chart)
        this.canvas.addEventListener('pointermove', event => this.move(event))
        this.canvas.addEventListener('pointerleave', () => { this.hover = -1; this.tip.hidden = true; this.paint() })
        this.canvas.addEventListener('click', event => { const step = this.report?.steps[this.at(event)]; if (step) this.onStep(step) })
    }

    forget(): void { this.loaded = -1 }

    // The report of a trace, with times from its beginning; null if it has no steps.
    async load(trace: number): Promise<StepReport | null> {
        if (!this.app.data.outline.traces[trace]?.has_steps) return null
        return reportOf(await this.app.data.json<StepsResult>('steps', { trace }))
    }

    async update(): Promise<void> {
        const { trace } = this.app.state
        if (this.loaded !== trace) {
            this.loaded = trace
            try {
                this.report = await this.load(trace)
            } catch (error) {
                this.report = null
                this.note.textContent = (error as Error).message
                return
            }
            this.show()
        }
        this.paint()
    }

    private show(): void {
        const { report } = this
        fill(this.lower)
        this.chart.hidden = !report
        if (!report) {
            this.note.textContent = ''
            add(this.lower, el('p.empty', {}, 'This trace has no steps. In Python, write your loop as for item in marey.steps(items), or call prof.step() after each iteration; in C++, begin its body with MAREY_RANGE_SCOPE(marey::Scope::Step, "step").'))
            return
        }
        const d = report.durations
        this.note.textContent = `${plural(report.steps.length, 'step')} · median ${time(d.median_ns)} · p90 ${time(d.p90_ns)} · slowest ${time(d.max_ns)}`
        report.slowest.forEach((slow, index) => {
            const step = slow.step
            if (step.duration_ns <= d.median_ns || (index > 0 && !isSlow(step, report))) return
            const excess = step.duration_ns - d.median_ns
            const own = (difference: Difference) => difference.slow_self_ns - difference.median_self_ns
            const shown = slow.differences.filter(each => Math.max(Math.abs(each.difference_ns), Math.abs(own(each))) >= excess / 100)
                .sort((a, b) => b.difference_ns - a.difference_ns)
            const grid = new Grid<Difference>(`What differs in ${step.name}`)
            const [name, ...others] = resultColumns(stepDifferencesColumns, shown, {
                name: { text: d => clean(d.name === null ? '(outside any range)' : functionFirst(d.name)) },
                place: { text: d => places[d.place] ?? d.place, width: '116px' },
                difference_ns: { text: d => signed(d.difference_ns), share: d => d.difference_ns / excess, width: '102px' },
                slow_total_ns: { title: 'This step' },
                median_total_ns: { title: 'Median step', width: '114px' },
                slow_count: { title: 'Calls', width: '98px', text: d => (d.slow_count === d.median_count ? count(d.slow_count) : `${count(d.slow_count)} (not ${count(d.median_count)})`) },
                median_count: null,
            })
            const self = { key: 'self', title: 'Self difference', help: 'The part of the difference that is not in ranges inside', number: true, width: '128px', value: own, text: (d: Difference) => signed(own(d)), share: (d: Difference) => own(d) / excess }
            const columns = name ? [name, ...others, self] : []
            grid.root.style.height = `${Math.min(shown.length, 12) * 26 + 34}px`
            grid.onOpen = difference => { if (difference.name) this.onName(difference.name) }
            grid.show(columns, shown, 'difference_ns')
            add(this.lower, el('div.step-table', {}, el('h3', {}, el('button.link', { onclick: () => this.onStep(step) }, clean(step.name, 80)),
                ` ${time(step.duration_ns)}, ${time(excess)} over the median`), grid.root))
        })
    }

    private get width(): number { return this.chart.clientWidth - 32 - axis }

    private paint(): void {
        const { report } = this, { theme } = this.app, width = this.width, height = 180
        if (!report || width < 10) return
        const context = prepare(this.canvas, width + axis, height + 24)
        const most = report.steps.reduce((most, step) => Math.max(most, step.duration_ns), 1), each = width / report.steps.length
        const span = this.app.state.selection
        context.font = font
        context.textBaseline = 'middle'
        const wide = Math.max(1, Math.min(96, each - (each > 4 ? 2 : 0)))
        report.steps.forEach((step, i) => {
            const tall = step.duration_ns / most * (height - 12), selected = span && span[0] <= step.start_ns && span[1] >= step.start_ns + step.duration_ns
            context.globalAlpha = step.is_partial ? 0.4 : isSlow(step, report) ? 0.8 : 1
            context.fillStyle = isSlow(step, report) ? theme.warn : selected ? theme.accent : i === this.hover ? theme.counter : theme.counterSoft
            context.fillRect(axis + i * each, height - tall, wide, tall)
        })
        context.globalAlpha = 1
        const line = height - report.durations.median_ns / most * (height - 12)
        context.strokeStyle = theme.muted
        context.setLineDash([4, 3])
        context.beginPath()
        context.moveTo(axis - 2, line)
        context.lineTo(width + axis, line)
        context.stroke()
        context.setLineDash([])
        context.fillStyle = theme.muted
        context.textAlign = 'right'
        context.fillText(time(report.durations.median_ns), axis - 6, line)
        if (Math.abs(line - 12) > 16) context.fillText(time(most), axis - 6, 12)
        context.textAlign = 'center'
        const every = Math.ceil(44 / each)
        report.steps.forEach((step, i) => { if (i % every === 0) context.fillText(String(step.number), axis + i * each + wide / 2, height + 12) })
        context.textAlign = 'left'
    }

    private at(event: MouseEvent): number {
        if (!this.report) return -1
        const index = Math.floor((event.offsetX - axis) / (this.width / this.report.steps.length))
        return index >= 0 && index < this.report.steps.length ? index : -1
    }

    private move(event: PointerEvent): void {
        const at = this.at(event), step = this.report?.steps[at]
        this.canvas.style.cursor = step ? 'pointer' : 'default'
        this.tip.hidden = !step
        if (step) {
            fill(this.tip, el('b', {}, clean(step.name, 100)), el('span', {}, time(step.duration_ns, 4)))
            placeTip(this.tip, this.chart, event.offsetX, event.offsetY)
        }
        if (at !== this.hover) { this.hover = at; this.paint() }
    }
}
