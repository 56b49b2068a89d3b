// overview.ts: the whole trace in a narrow strip, with a brush that sets what the timeline shows.
import { App } from './app'
import { add, el, prepare } from './dom'
import { readOverview, readPicture } from './protocol'
import { Raster, type Boxes } from './raster'
import type { Span } from './state'

const height = 54
const edge = 6       // pixels around an edge of the brush that grab it
const mostTracks = 6  // that are drawn as boxes; with more, the strip shows how many tracks were active
const mostLevels = 12
const pixels = 2000   // of the pictures

interface Strip { boxes: Boxes[]; host: Float32Array; device: Float32Array }

export class Overview {
    readonly root = el('div.overview', { role: 'group', 'aria-label': 'Overview' })
    private canvas = el<HTMLCanvasElement>('canvas', { role: 'img', 'aria-label': 'Activity over the whole trace; drag to choose what the timeline shows' })
    private strips: Strip[] = []
    private raster = new Raster()
    private frame = 0
    private drag: { kind: 'new' | 'move' | 'left' | 'right'; at: number; window: Span; x: number } | null = null
    onWindow: () => void = () => {}

    constructor(private app: App) {
        add(this.root, this.canvas)
        new ResizeObserver(() => this.draw()).observe(this.root)
        this.listen()
    }

    async load(): Promise<void> {
        for (const [trace, outline] of this.app.data.outline.traces.entries()) {
            if (outline.state !== 'ready') continue
            try {
                this.strips[trace] = await this.ask(trace)
            } catch { /* the strip stays empty */ }
            this.draw()
        }
    }

    private async ask(trace: number): Promise<Strip> {
        const { source, outline } = this.app.data, { tracks, window } = outline.traces[trace]!
        const drawn = [...tracks.keys()].filter(track => tracks[track]!.rows && tracks[track]!.kind !== 'task')
        const recorded = drawn.filter(track => tracks[track]!.kind !== 'samples')
        const shown = recorded.length ? recorded : drawn
        const end = Math.max(1, window!.duration_ns)
        if (shown.length > mostTracks) return { boxes: [], ...readOverview(await source.bytes('overview', { trace, pixels })) }
        const boxes = await Promise.all(shown.map(async track => readPicture(
            await source.bytes('picture', { trace, track, begin: 0, end, pixels, levels: Math.min(mostLevels, tracks[track]!.levels) }), 0, end, source.pixels(pixels))))
        return { boxes, host: new Float32Array(), device: new Float32Array() }
    }

    draw(): void {
        if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.paint() })
    }

    private get width(): number { return Math.max(1, this.root.clientWidth) }

    private paint(): void {
        const { app } = this, theme = app.theme, width = this.width
        const context = prepare(this.canvas, width, height)
        const lane = height / Math.max(1, this.strips.length)
        this.strips.forEach((strip, trace) => {
            if (strip.boxes.length) this.paintBoxes(context, strip.boxes, trace, trace * lane, lane)
            else this.paintActivity(context, strip, trace, trace * lane, lane)
        })
        this.paintHits(context)
        const x = (t: number) => t / app.data.duration * width
        const span = app.state.selection
        if (span) {
            context.fillStyle = theme.accentSoft
            context.fillRect(x(span[0]), 0, Math.max(1, x(span[1]) - x(span[0])), height)
        }
        context.fillStyle = theme.warn
        for (const mark of app.state.marks) context.fillRect(x(mark), 0, 1, height)
        const [a, b] = [x(Math.max(0, app.window[0])), Math.min(width, x(app.window[1]))]
        if (app.state.window) {
            context.fillStyle = theme.dim
            context.fillRect(0, 0, a, height)
            context.fillRect(b, 0, width - b, height)
            context.strokeStyle = theme.accent
            context.lineWidth = 1
            context.strokeRect(Math.round(a) + 0.5, 0.5, Math.max(2, Math.round(b - a) - 1), height - 1)
            context.fillStyle = theme.accent
            context.fillRect(Math.round(a) - 1, height / 2 - 8, 3, 16)
            context.fillRect(Math.round(b) - 2, height / 2 - 8, 3, 16)
        }
    }

    // The tracks as thin lines of boxes, one below the other.
    private paintBoxes(context: CanvasRenderingContext2D, tracks: Boxes[], trace: number, top: number, lane: number): void {
        const ratio = devicePixelRatio || 1, { theme } = this.app, width = Math.round(this.width * ratio)
        const room = lane - 8 - tracks.length
        let most = mostLevels // fewer, so that each level has a pixel and a half
        const levels = () => tracks.reduce((sum, boxes) => sum + Math.min(most, boxes.levels), 0)
        while (most > 1 && levels() * 1.5 > room) most--
        const each = Math.max(1, Math.min(4, Math.floor(room / Math.max(1, levels()) * ratio) / ratio))
        let y = top + 4
        for (const boxes of tracks) {
            this.raster.draw(context, boxes, { begin: -this.app.data.shift(trace), perPixel: this.app.data.duration / width, width }, 0, Math.round(y * ratio), each * ratio, site => {
                const colour = this.app.colour(trace, site)
                return colour < 0 ? 0 : theme.boxes[colour]!
            }, most)
            y += each * Math.min(most, boxes.levels) + 1
        }
    }

    private paintActivity(context: CanvasRenderingContext2D, activity: { host: Float32Array; device: Float32Array }, trace: number, top: number, lane: number): void {
        const { theme } = this.app, own = this.app.data.outline.traces[trace]?.window?.duration_ns ?? 0
        const width = this.width * own / this.app.data.duration, left = this.width * this.app.data.shift(trace) / this.app.data.duration
        const anyDevice = activity.device.some(v => v > 0)
        const draw = (values: Float32Array, y: number, room: number, colour: string) => {
            const most = Math.max(1e-9, ...values)
            context.fillStyle = colour
            context.beginPath()
            context.moveTo(left, y + room)
            values.forEach((v, i) => context.lineTo(left + (i + 0.5) / values.length * width, y + room - v / most * (room - 5)))
            context.lineTo(left + width, y + room)
            context.fill()
        }
        draw(activity.host, top, anyDevice ? lane / 2 : lane, theme.dark ? '#3d5269' : '#b9cde2')
        if (anyDevice) draw(activity.device, top + lane / 2, lane / 2, theme.dark ? '#4f6b45' : '#b9d6b0')
    }

    private paintHits(context: CanvasRenderingContext2D): void {
        context.fillStyle = this.app.theme.hit
        this.app.hitMarks.forEach((marks, trace) => {
            const own = this.app.data.outline.traces[trace]?.window?.duration_ns ?? 0
            const scale = this.width / App.markPixels * own / this.app.data.duration, left = this.width * this.app.data.shift(trace) / this.app.data.duration
            for (let i = 0; i < marks.length; i += 2) context.fillRect(Math.round(left + marks[i]! * scale), 0, Math.max(2, scale), 7)
        })
    }

    private listen(): void {
        const canvas = this.canvas
        const at = (event: PointerEvent) => (event.clientX - canvas.getBoundingClientRect().left) / this.width * this.app.data.duration
        const grip = (event: PointerEvent): 'new' | 'move' | 'left' | 'right' => {
            if (!this.app.state.window) return 'new'
            const x = event.clientX - canvas.getBoundingClientRect().left
            const [a, b] = this.app.window.map(t => t / this.app.data.duration * this.width) as [number, number]
            if (Math.abs(x - a) < edge) return 'left'
            if (Math.abs(x - b) < edge) return 'right'
            return x > a && x < b ? 'move' : 'new'
        }
        canvas.addEventListener('pointerdown', event => {
            if (event.button !== 0) return
            event.preventDefault()
            canvas.setPointerCapture(event.pointerId)
            this.onWindow()
            this.drag = { kind: grip(event), at: at(event), window: this.app.window, x: event.clientX }
        })
        canvas.addEventListener('pointermove', event => {
            const drag = this.drag
            if (!drag) {
                canvas.style.cursor = { new: 'crosshair', move: 'grab', left: 'ew-resize', right: 'ew-resize' }[grip(event)]
                return
            }
            const now = at(event), by = now - drag.at, [a, b] = drag.window
            if (drag.kind === 'new' && Math.abs(event.clientX - drag.x) < 4) return
            const next: Span = drag.kind === 'new' ? [Math.min(now, drag.at), Math.max(now, drag.at)]
                : drag.kind === 'move' ? [a + by, b + by]
                    : drag.kind === 'left' ? [Math.min(now, b - 10), b] : [a, Math.max(now, a + 10)]
            this.app.store.set({ window: this.app.limit(next) }, 'replace')
        })
        canvas.addEventListener('pointerup', event => {
            const drag = this.drag
            this.drag = null
            if (!drag) return
            if (Math.abs(event.clientX - drag.x) < 4 && drag.kind === 'new') {
                const [a, b] = drag.window, half = (b - a) / 2, now = at(event)
                this.app.store.set({ window: this.app.limit([now - half, now + half]) })
            } else this.app.store.set({ window: [...this.app.window] as Span })
        })
        canvas.addEventListener('dblclick', () => this.app.store.set({ window: null }))
    }
}
