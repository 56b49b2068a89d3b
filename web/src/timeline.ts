// timeline.ts: the timeline: lanes of boxes, counters and instants over time.
import type { App } from './app'
import { add, el, fill, placeTip, prepare } from './dom'
import { bytes, clean, count, plain, rulerStep, rulerTime, time, whole } from './format'
import { gap, layOut, rowHeight, trackLane, type Lane } from './lanes'
import { Pictures } from './pictures'
import type { Arrow, At, Outline, Range } from './protocol'
import { boxAt, Raster, type Boxes } from './raster'
import type { Span } from './state'
import { drawArrows, drawCounter, drawInstants, drawLabels, type Area } from './drawing'
import { font, fitting } from './text'

const headerWidth = 216
const rulerHeight = 26
const bandHeight = 18

export interface Step { number: number; name: string; begin: number; end: number; slow: boolean }
interface Under { lane: Lane; level: number; time: number; box: number; boxes?: Boxes | undefined }

export class Timeline {
    readonly root = el('section.timeline', { 'aria-label': 'Timeline' })
    private ruler = el<HTMLCanvasElement>('canvas.ruler', { 'aria-hidden': 'true' })
    private scroller = el('div.lanes', { tabindex: '0', 'aria-label': 'Tracks', role: 'region' })
    private headers = el('div.headers')
    private canvas = el<HTMLCanvasElement>('canvas.boxes', { role: 'img', 'aria-label': 'Ranges of the visible tracks over time' })
    private tip = el('div.tip', { hidden: true })
    private filter = el<HTMLInputElement>('input.filter', { type: 'search', placeholder: 'Filter tracks', 'aria-label': 'Filter tracks', spellcheck: 'false' })
    private aligned = el<HTMLButtonElement>('button.toggle', { title: 'Align both timelines at a step, or where they start' })
    private alignment = el('div.alignment', { hidden: true }, el('button', { title: 'Previous step (,)', 'aria-label': 'Previous step', onclick: () => this.onStep(-1) }, '‹'),
        this.aligned, el('button', { title: 'Next step (.)', 'aria-label': 'Next step', onclick: () => this.onStep(1) }, '›'))
    // Go to the next or previous step that all traces have; align by steps, or by the start.
    onStep: (by: 1 | -1) => void = () => {}
    onAlign: () => void = () => {}
    aligns = false // there are steps that both traces have
    readonly pictures: Pictures
    private raster = new Raster()
    private lanes: Lane[] = []
    private laidOut = ''
    private outline: Outline | null = null // that the lanes are of
    private frame = 0
    private heldUntil = 0 // a moment until which the old picture stays
    private drag: { from: number; to: number; pan: boolean; window: Span; x: number; y: number } | null = null
    private hover: Under | null = null
    private hoverTimer = 0
    private target: Span | null = null // of an animation
    cursor = NaN // the time under the pointer
    arrows: { trace: number; arrows: Arrow[] } = { trace: 0, arrows: [] }
    selected: { trace: number; range: Pick<Range, 'track' | 'depth' | 'start_ns' | 'duration_ns' | 'name'> } | null = null
    steps: Step[][] = [] // per trace, in its time; one band each

    constructor(private app: App) {
        this.pictures = new Pictures(app.data)
        this.pictures.onChange = () => this.draw()
        const corner = el('div.corner', {}, this.filter, this.alignment)
        add(this.scroller, this.headers)
        add(this.root, corner, this.ruler, this.scroller, this.canvas, this.tip)
        this.aligned.addEventListener('click', () => this.onAlign())
        this.filter.addEventListener('input', () => app.store.set({ tracks: this.filter.value }, 'replace'))
        this.scroller.addEventListener('scroll', () => this.draw())
        this.listen()
        new ResizeObserver(() => this.draw()).observe(this.root)
    }

    // Lays the lanes out again, after a change of the outline or of the state. There can be 20,000 of them, so moving the
    // window must not do it.
    update(): void {
        const { tracks, collapsed, pinned, hidden } = this.app.state
        const key = JSON.stringify([tracks, collapsed, pinned, hidden])
        if (key === this.laidOut && this.outline === this.app.data.outline) {
            this.draw()
            return
        }
        this.laidOut = key
        this.outline = this.app.data.outline
        const { lanes, height } = layOut(this.app.data.outline, this.app.state)
        this.lanes = lanes
        if (document.activeElement !== this.filter) this.filter.value = this.app.state.tracks
        this.headers.style.height = `${height + 40}px`
        this.draw()
    }

    // Shows what two timelines are aligned by; null: their start.
    showAlignment(step: number | null): void {
        this.alignment.hidden = !this.aligns
        this.aligned.textContent = step === null ? 'aligned by start' : `aligned at step ${step}`
        this.aligned.setAttribute('aria-pressed', String(step !== null))
    }

    // Keeps the picture until that of other data is whole, but not for long.
    hold(): void { this.heldUntil = performance.now() + 1000 }

    draw(): void {
        if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.paint() })
    }

    // Scrolls so that a range is visible.
    reveal(trace: number, track: number, depth: number): void {
        const id = trackLane(trace, track)
        const lane = this.lanes.find(l => l.id === id)
        if (!lane) return
        const top = lane.top + (lane.collapsed ? 0 : depth * rowHeight), height = this.scroller.clientHeight
        if (top < this.scroller.scrollTop + 10 || top + rowHeight > this.scroller.scrollTop + height - 10)
            this.scroller.scrollTop = top - height / 3
    }

    // Moves the window smoothly.
    glide(to: Span): void {
        const limited = this.app.limit(to)
        if (this.target) { this.target = limited; return }
        this.target = limited
        const step = () => {
            if (!this.target) return
            const [a, b] = this.app.window, [c, d] = this.target
            const near = Math.abs(a - c) + Math.abs(b - d) < (d - c) * 0.004
            this.app.store.set({ window: near ? this.target : [a + (c - a) * 0.45, b + (d - b) * 0.45] }, 'replace')
            if (near) this.target = null
            else requestAnimationFrame(step)
        }
        step()
    }

    // Where a running animation will end.
    get goal(): Span { return this.target ?? this.app.window }

    stop(): void { this.target = null }

    private get area(): Area {
        const width = Math.max(10, this.scroller.clientWidth - headerWidth)
        const window = this.app.window
        return { left: 0, width, begin: window[0], perPixel: (window[1] - window[0]) / width, top: this.scroller.scrollTop, height: this.scroller.clientHeight }
    }

    // The same in the time of a trace.
    private local(area: Area, trace: number): Area { return { ...area, begin: area.begin - this.app.data.shift(trace) } }

    private paint(): void {
        const area = this.area
        if (this.root.hidden || area.height < 1) return
        const first = this.lanes.filter(lane => lane.top + lane.height + gap >= area.top && lane.top <= area.top + area.height)
        if (performance.now() < this.heldUntil && !this.isWhole(first, area)) {
            setTimeout(() => this.draw(), 50)
            return
        }
        this.heldUntil = 0
        const context = prepare(this.canvas, area.width, area.height)
        context.font = font
        context.textBaseline = 'middle'
        this.paintHeaders(first)
        this.paintGrid(context, area)
        for (const lane of first) this.paintLane(context, lane, this.local(area, lane.trace))
        this.paintSelected(context, area)
        drawArrows(context, this.local(area, this.arrows.trace), this.app.theme, this.arrows.arrows, end => this.place(this.arrows.trace, end.track, end.depth))
        this.paintOver(context, area)
        this.paintRuler(area)
        this.root.dataset['ready'] = this.pictures.loading ? '0' : '1'
    }

    // Whether the boxes of these lanes and the names of their sites are there; asks for those that are missing.
    private isWhole(lanes: Lane[], area: Area): boolean {
        const shown = lanes.filter(lane => lane.kind === 'ranges')
        const boxes = shown.map(lane => this.pictures.get(lane, this.app.windowOf(lane.trace), Math.round(area.width * (devicePixelRatio || 1)))?.boxes)
        return boxes.every((its, i) => its && [...its.sites].filter(site => this.app.colour(shown[i]!.trace, site) < 0).length === 0)
    }

    private place(trace: number, track: number, depth: number): { top: number; height: number } | null {
        const id = trackLane(trace, track)
        const lane = this.lanes.find(l => l.id === id)
        if (!lane) return null
        const height = this.levelHeight(lane)
        return { top: lane.top + Math.min(depth, lane.levels - 1) * height, height }
    }

    private levelHeight(lane: Lane): number { return lane.collapsed ? lane.height / Math.max(1, lane.levels) : rowHeight }

    private paintGrid(context: CanvasRenderingContext2D, area: Area): void {
        const step = rulerStep(area.perPixel * 110)
        context.fillStyle = this.app.theme.grid
        for (let t = Math.ceil(area.begin / step) * step; t < area.begin + area.width * area.perPixel; t += step)
            context.fillRect(Math.round((t - area.begin) / area.perPixel), 0, 1, area.height)
    }

    private paintLane(context: CanvasRenderingContext2D, lane: Lane, area: Area): void {
        const y = lane.top - area.top, theme = this.app.theme
        if (lane.kind === 'group') {
            context.clearRect(0, y, area.width, lane.height) // its header lies below and is as wide
            return
        }
        if (lane.kind === 'pending') {
            context.fillStyle = theme.panel
            context.fillRect(0, y, area.width, lane.height)
            return
        }
        const ratio = devicePixelRatio || 1
        const entry = this.pictures.get(lane, this.app.windowOf(lane.trace), Math.round(area.width * ratio))
        if (entry?.counter) drawCounter(context, area, theme, lane, entry.counter, y, this.app.data.outline.traces[lane.trace]?.window?.duration_ns ?? 0)
        if (entry?.instants) drawInstants(context, area, this.app, lane, entry.instants, y)
        if (entry?.boxes) this.paintBoxes(context, lane, entry.boxes, area, y)
    }

    private paintBoxes(context: CanvasRenderingContext2D, lane: Lane, boxes: Boxes, area: Area, y: number): void {
        const ratio = devicePixelRatio || 1, theme = this.app.theme
        const level = this.levelHeight(lane), hits = this.app.hits[lane.trace]
        const neutral = theme.dark ? 0xff3a332d : 0xffe6e2df, dimmed = theme.dark ? 0xff2b2621 : 0xfff1efed
        const colour = (site: number) => {
            if (hits && !hits.has(site)) return dimmed
            const index = this.app.colour(lane.trace, site)
            return index < 0 ? neutral : theme.boxes[index]!
        }
        this.raster.draw(context, boxes, { begin: area.begin, perPixel: area.perPixel / ratio, width: Math.round(area.width * ratio) },
            0, Math.round(y * ratio), level * ratio, colour)
        if (lane.collapsed) return
        context.fillStyle = theme.page
        for (let l = 1; l <= boxes.levels; l++) context.fillRect(0, y + l * level - 1, area.width, 1)
        drawLabels(context, area, this.app, lane, boxes, y, hits ?? null)
    }

    private paintSelected(context: CanvasRenderingContext2D, area: Area): void {
        if (!this.selected) return
        const { trace, range } = this.selected
        const place = this.place(trace, range.track, range.depth)
        if (!place) return
        const left = (range.start_ns + this.app.data.shift(trace) - area.begin) / area.perPixel, width = Math.max(2, range.duration_ns / area.perPixel)
        context.strokeStyle = this.app.theme.strong
        context.lineWidth = 2
        const from = Math.max(-4, left), to = Math.min(area.width + 4, left + width)
        if (to > from) context.strokeRect(from, place.top - area.top, to - from, place.height - 1)
    }

    // The selected span, marks and the cursor, above everything.
    private paintOver(context: CanvasRenderingContext2D, area: Area): void {
        const theme = this.app.theme, span = this.span
        const x = (t: number) => Math.round((t - area.begin) / area.perPixel)
        if (span) {
            const [a, b] = [x(span[0]), x(span[1])]
            context.fillStyle = theme.dim
            context.fillRect(0, 0, Math.max(0, a), area.height)
            context.fillRect(b, 0, Math.max(0, area.width - b), area.height)
            context.fillStyle = theme.accent
            context.fillRect(a - 1, 0, 1, area.height)
            context.fillRect(b, 0, 1, area.height)
        }
        context.fillStyle = theme.warn
        for (const mark of this.app.state.marks) context.fillRect(x(mark), 0, 1, area.height)
        if (!Number.isNaN(this.cursor) && !this.drag) {
            context.fillStyle = theme.muted
            context.globalAlpha = 0.5
            context.fillRect(x(this.cursor), 0, 1, area.height)
            context.globalAlpha = 1
        }
    }

    // The selection, or the one that is being drawn.
    private get span(): Span | null {
        if (this.drag && !this.drag.pan && Math.abs(this.drag.to - this.drag.from) > this.area.perPixel * 3)
            return [Math.min(this.drag.from, this.drag.to), Math.max(this.drag.from, this.drag.to)]
        return this.app.state.selection
    }

    private paintRuler(area: Area): void {
        const bands = this.bands
        this.root.style.setProperty('--bands', String(bands.length))
        const context = prepare(this.ruler, area.width, rulerHeight + bands.length * bandHeight)
        const theme = this.app.theme
        const x = (t: number) => (t - area.begin) / area.perPixel
        context.font = font
        context.textBaseline = 'middle'
        const end = area.begin + area.width * area.perPixel
        const step = rulerStep(area.perPixel * 110)
        const span = this.span
        if (span) {
            context.fillStyle = theme.accentSoft
            context.fillRect(x(span[0]), 0, x(span[1]) - x(span[0]), rulerHeight)
        }
        for (let t = Math.ceil(area.begin / step) * step; t < end; t += step) {
            context.fillStyle = theme.line
            context.fillRect(Math.round(x(t)), rulerHeight - 7, 1, 7)
            context.fillStyle = theme.muted
            const text = rulerTime(t, step, end), left = Math.round(x(t)) + 4
            if (left + context.measureText(text).width <= area.width) context.fillText(text, left, rulerHeight / 2)
        }
        if (span) {
            const text = time(span[1] - span[0], 4), middle = (Math.max(0, x(span[0])) + Math.min(area.width, x(span[1]))) / 2
            const width = context.measureText(text).width + 10
            context.fillStyle = theme.accent
            context.fillRect(middle - width / 2, 4, width, rulerHeight - 8)
            context.fillStyle = theme.page
            context.fillText(text, middle - width / 2 + 5, rulerHeight / 2)
        }
        context.fillStyle = theme.warn
        for (const mark of this.app.state.marks) {
            context.fillRect(Math.round(x(mark)), 0, 1, rulerHeight)
            context.fillRect(Math.round(x(mark)), 0, 6, 6)
        }
        bands.forEach((trace, index) => this.paintSteps(context, this.local(area, trace), this.steps[trace]!, rulerHeight + index * bandHeight))
    }

    // The traces whose steps are shown: all if they are aligned by them.
    private get bands(): number[] { return this.steps.map((_, trace) => trace).filter(trace => this.steps[trace]!.length && (this.aligns || trace === this.app.state.trace)) }

    private paintSteps(context: CanvasRenderingContext2D, area: Area, steps: Step[], top: number): void {
        const theme = this.app.theme
        steps.forEach((step, index) => {
            const left = (step.begin - area.begin) / area.perPixel, right = (step.end - area.begin) / area.perPixel
            if (right < 0 || left > area.width) return
            context.fillStyle = step.slow ? theme.warn : theme.accent
            context.globalAlpha = step.slow ? 0.35 : index % 2 ? 0.12 : 0.22
            context.fillRect(left, top, Math.max(1, right - left - 1), bandHeight - 1)
            context.globalAlpha = 1
            context.fillStyle = theme.text
            const from = Math.max(0, left) + 4
            context.fillText(fitting(context, step.name, Math.min(right, area.width) - from - 4), from, top + 9)
        })
    }

    private paintHeaders(lanes: Lane[]): void {
        const key = lanes.map(l => `${l.id} ${l.top} ${l.height} ${l.collapsed} ${l.note}`).join('|')
        if (this.headers.dataset['key'] === key) return
        this.headers.dataset['key'] = key
        fill(this.headers, ...lanes.map(lane => this.header(lane)))
    }

    private header(lane: Lane): HTMLElement {
        const { store } = this.app
        const toggle = (key: 'collapsed' | 'pinned' | 'hidden') => (event: Event) => {
            event.stopPropagation()
            const now = this.app.state[key]
            store.set({ [key]: now.includes(lane.id) ? now.filter(id => id !== lane.id) : [...now, lane.id] })
        }
        const pinned = this.app.state.pinned.includes(lane.id)
        const box = el(`div.header.${lane.kind}`, { title: `${lane.title}\n${lane.note}` })
        box.style.top = `${lane.top}px`
        box.style.height = `${lane.height}px`
        if (lane.id >= 0 && (lane.kind === 'group' || lane.levels > 1 || lane.kind === 'counter'))
            add(box, el('button.fold', { onclick: toggle('collapsed'), 'aria-expanded': String(!lane.collapsed), 'aria-label': `Collapse ${lane.title}` }, lane.collapsed ? '▸' : '▾'))
        else add(box, el('span.fold'))
        const words = el('div.words', {}, el('span.name', {}, lane.title))
        if (lane.kind === 'group' || lane.height > 34) add(words, el('span.note', {}, lane.note))
        if (lane.kind === 'counter' && lane.counter && !lane.collapsed) add(words, el('span.note', {}, `max ${this.amount(lane, lane.counter.max)}`))
        add(box, words)
        if (lane.kind !== 'group' && lane.kind !== 'pending')
            add(box, el('span.tools', {},
                el('button', { onclick: toggle('pinned'), title: pinned ? 'Unpin' : 'Pin to the top', 'aria-label': `${pinned ? 'Unpin' : 'Pin'} ${lane.title}`, 'aria-pressed': String(pinned) }, '⌃'),
                el('button', { onclick: toggle('hidden'), title: 'Hide (Shift+H shows all)', 'aria-label': `Hide ${lane.title}` }, '×')))
        return box
    }

    amount(lane: Lane, value: number): string { return lane.counter?.unit === 'bytes' ? bytes(value) : plain(value) }

    // What is at a point of the canvas.
    private under(x: number, y: number): Under | null {
        const area = this.area, at = y + area.top
        const lane = this.lanes.find(l => at >= l.top && at < l.top + l.height)
        if (!lane) return null
        const moment = this.local(area, lane.trace).begin + x * area.perPixel
        const entry = lane.kind === 'ranges' ? this.pictures.get(lane, this.app.windowOf(lane.trace), Math.round(area.width * (devicePixelRatio || 1))) : undefined
        const level = Math.floor((at - lane.top) / this.levelHeight(lane))
        return { lane, level, time: moment, boxes: entry?.boxes, box: entry?.boxes ? boxAt(entry.boxes, moment, level, area.perPixel * 2) : -1 }
    }

    private listen(): void {
        const canvas = this.canvas
        const timeAt = (event: PointerEvent) => this.area.begin + (event.clientX - canvas.getBoundingClientRect().left) * this.area.perPixel
        for (const element of [canvas, this.ruler]) {
            element.addEventListener('pointerdown', event => {
                if (event.button > 1) return
                event.preventDefault()
                this.scroller.focus({ preventScroll: true })
                this.stop()
                element.setPointerCapture(event.pointerId)
                this.drag = { from: timeAt(event), to: timeAt(event), pan: event.shiftKey || event.button === 1, window: this.app.window, x: event.clientX, y: event.clientY }
            })
            element.addEventListener('pointermove', event => this.move(event, timeAt(event), element === canvas))
            element.addEventListener('pointerup', event => this.drop(event, element === canvas))
            element.addEventListener('pointerleave', () => { this.cursor = NaN; this.hideTip(); this.draw() })
            element.addEventListener('wheel', event => this.wheel(event), { passive: false })
        }
        canvas.addEventListener('dblclick', event => {
            const under = this.under(event.offsetX, event.offsetY)
            if (!under?.boxes || under.box < 0) return
            const shift = this.app.data.shift(under.lane.trace)
            this.glide(this.app.show(under.boxes.begin[under.box]! + shift, under.boxes.end[under.box]! + shift, 0.1))
        })
    }

    private move(event: PointerEvent, at: number, boxes: boolean): void {
        this.cursor = at
        if (this.drag) {
            this.hideTip()
            this.drag.to = at
            if (this.drag.pan) {
                const { window, x } = this.drag
                const by = (event.clientX - x) * (window[1] - window[0]) / this.area.width
                this.app.store.set({ window: this.app.limit([window[0] - by, window[1] - by]) }, 'replace')
            }
        } else if (boxes) this.showTip(event)
        this.draw()
    }

    private drop(event: PointerEvent, boxes: boolean): void {
        const drag = this.drag
        this.drag = null
        if (!drag || drag.pan) return
        if (Math.abs(event.clientX - drag.x) > 3) {
            const span: Span = [Math.max(0, Math.min(drag.from, drag.to)), Math.min(this.app.data.duration, Math.max(drag.from, drag.to))]
            if (span[1] > span[0]) this.app.store.set({ selection: [Math.round(span[0]), Math.round(span[1])] })
        } else if (boxes) void this.click(event)
        else this.app.store.set({ selection: null })
        this.draw()
    }

    private async click(event: MouseEvent): Promise<void> {
        const under = this.under(event.offsetX, event.offsetY)
        if (!under?.boxes || under.box < 0) {
            this.onNothing()
            return
        }
        this.onBox(under.lane.trace, under.lane.index, under.level, under.boxes.begin[under.box]!, under.boxes.end[under.box]!, under.boxes.sites[under.boxes.name[under.box]!]!, under.boxes.merged[under.box] === 1)
    }
    // Something else was clicked.
    onNothing: () => void = () => {}
    // A box was clicked.
    onBox: (trace: number, track: number, level: number, begin: number, end: number, site: number, merged: boolean) => void = () => {}

    private wheel(event: WheelEvent): void {
        event.preventDefault()
        this.stop()
        const area = this.area, [begin, end] = this.app.window
        if (event.ctrlKey || event.metaKey || event.altKey) {
            const factor = Math.exp(Math.max(-0.6, Math.min(0.6, event.deltaY * 0.0035)))
            const centre = begin + (event.clientX - this.canvas.getBoundingClientRect().left) * area.perPixel
            this.app.store.set({ window: this.app.limit([centre - (centre - begin) * factor, centre + (end - centre) * factor]) }, 'replace')
        } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            const by = (event.deltaX || event.deltaY) * area.perPixel
            this.app.store.set({ window: this.app.limit([begin + by, end + by]) }, 'replace')
        } else this.scroller.scrollTop += event.deltaY
    }

    private showTip(event: PointerEvent): void {
        const under = this.under(event.offsetX, event.offsetY)
        const same = under && this.hover && under.lane.id === this.hover.lane.id && under.box === this.hover.box && under.level === this.hover.level
        this.hover = under
        this.canvas.style.cursor = under && under.box >= 0 ? 'pointer' : 'default'
        const place = () => placeTip(this.tip, this.root, event.offsetX + headerWidth, event.offsetY + this.ruler.offsetHeight)
        if (same) { place(); return }
        clearTimeout(this.hoverTimer)
        if (!under || under.box < 0 || !under.boxes) { this.hideTip(); return }
        const { lane, boxes, box, level } = under
        const name = this.app.name(lane.trace, boxes.sites[boxes.name[box]!]!)
        fill(this.tip, el('b', {}, name ? clean(whole(name.name, name.raw), 200) : '…'), el('span', {}, boxes.merged[box] ? 'several ranges' : time(boxes.end[box]! - boxes.begin[box]!)))
        this.tip.hidden = false
        place()
        if (this.app.data.source.embedded) return
        this.hoverTimer = window.setTimeout(() => void this.fillTip(lane, level, boxes.begin[box]!, boxes.end[box]!, under), 90)
    }

    private async fillTip(lane: Lane, level: number, begin: number, end: number, under: Under): Promise<void> {
        try {
            const at = await this.app.data.json<At>('at', { trace: lane.trace, track: lane.index, level, begin: Math.floor(begin), end: Math.ceil(end) + 1 })
            if (this.hover !== under && (this.hover?.box !== under.box || this.hover?.lane !== under.lane)) return
            if (at.count > 1 && under.boxes?.merged[under.box])
                fill(this.tip, el('b', {}, clean(at.names[0]?.name ?? '', 200)), el('span', {}, `${count(at.count)} ranges, longest ${time(at.longest?.duration_ns ?? 0)}`))
            else if (at.range)
                fill(this.tip, el('b', {}, clean(whole(at.range.name, this.app.name(lane.trace, at.range.site)?.raw), 200)), el('span', {}, `${time(at.range.duration_ns)}, self ${time(at.range.self_ns)}`))
        } catch { /* the tip stays as it is */ }
    }

    private hideTip(): void {
        clearTimeout(this.hoverTimer)
        this.hover = null
        this.tip.hidden = true
    }
}
