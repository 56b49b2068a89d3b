// pictures.ts: what the timeline's lanes show, asked for as they come into view.
import type { Lane } from './lanes'
import { readCounter, readInstants, readPicture, type CounterPicture, type Instants } from './protocol'
import type { Boxes } from './raster'
import type { Data } from './source'
import type { Span } from './state'

const mostPixels = 4096 // of an answer
const margin = 0.25     // of the window, asked for on both sides, so that panning shows something
const atOnce = 6        // requests

interface Entry {
    span: Span
    perPixel: number
    levels: number
    boxes?: Boxes
    counter?: CounterPicture
    instants?: Instants
}

export class Pictures {
    private have = new Map<number, Entry>()
    private busy = new Set<number>()
    private failed = new Map<number, string>()
    onChange: () => void = () => {}

    constructor(private data: Data) {}

    forget(): void {
        this.have.clear()
        this.failed.clear()
    }

    // True while an answer is on its way.
    get loading(): boolean { return this.busy.size > 0 }

    // The newest picture of the lane, perhaps of another window; asks for a better one if there can be one.
    get(lane: Lane, window: Span, pixels: number): Entry | undefined {
        const entry = this.have.get(lane.id)
        if (this.fits(entry, lane, window, pixels)) return entry
        if (!this.busy.has(lane.id) && this.busy.size < atOnce) void this.ask(lane, window, pixels)
        return entry
    }

    private fits(entry: Entry | undefined, lane: Lane, window: Span, pixels: number): boolean {
        if (!entry) return this.failed.has(lane.id)
        if (entry.levels < lane.levels) return false
        if (this.data.source.embedded) return true
        const perPixel = (window[1] - window[0]) / pixels
        return entry.span[0] <= window[0] && entry.span[1] >= window[1] && Math.abs(entry.perPixel / perPixel - 1) < 0.005
    }

    private async ask(lane: Lane, window: Span, pixels: number): Promise<void> {
        const perPixel = (window[1] - window[0]) / pixels
        const whole = this.data.source.embedded
        const asked = this.data.source.pixels(Math.min(mostPixels, Math.ceil(pixels * (1 + 2 * margin))))
        const middle = (window[0] + window[1]) / 2
        const span: Span = whole ? [0, Math.max(1, this.data.outline.traces[lane.trace]!.window!.duration_ns)]
            : [Math.floor(middle - asked / 2 * perPixel), Math.ceil(middle + asked / 2 * perPixel)]
        this.busy.add(lane.id)
        try {
            const entry: Entry = { span, perPixel, levels: lane.levels }
            const common = { trace: lane.trace, begin: span[0], end: span[1], pixels: asked }
            if (lane.kind === 'ranges')
                entry.boxes = readPicture(await this.data.source.bytes('picture', { ...common, track: lane.index, levels: Math.max(1, lane.levels) }), span[0], span[1], asked)
            else if (lane.kind === 'counter')
                entry.counter = readCounter(await this.data.source.bytes('counter', { ...common, counter: lane.index }), span[0], span[1])
            else
                entry.instants = readInstants(await this.data.source.bytes('instants', { ...common, thread: lane.index }), span[0], span[1], asked)
            this.have.set(lane.id, entry)
        } catch (error) {
            this.failed.set(lane.id, String(error))
        }
        this.busy.delete(lane.id)
        this.onChange()
    }
}
