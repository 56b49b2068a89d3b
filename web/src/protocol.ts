// protocol.ts: the server's answers. Times are ns from the beginning of the trace.
import type { Boxes } from './raster'

export interface Track {
    kind: 'thread' | 'async' | 'device' | 'overlap' | 'task' | 'samples'
    name: string; process: number; thread: number; device: string; stream: number
    rows: number; levels: number; first_ns: number; last_ns: number
}
export interface Counter {
    name: string; process: number; device: string; unit: string; kind: 'counter' | 'memory' | 'reserved'; samples: number; min: number; max: number
}
export interface TraceOutline {
    file: string; state: 'loading' | 'ready' | 'failed'; error?: string; progress?: number; elapsed_ms: number; generation: number
    window?: { duration_ns: number; finished: boolean; session: string; start_unix_ns: string }
    range_count: number; instant_count: number; counter_count: number; link_count: number
    has_memory: boolean; has_gpu: boolean; has_steps: boolean; python: boolean
    problems: string[]
    live?: boolean // its program runs, and the page can follow it
    snapshot?: { reason: string; begin_ns: number; end_ns: number } // why it was taken; end_ns 0: about no certain time
    processes: { pid: number; node: number; name: string; command_line: string; host: string }[]
    threads: { process: number; id: number; os_tid: number; name: string; instants: number }[]
    tracks: Track[]; counters: Counter[]
}
export interface Outline { version: number; marey: string; traces: TraceOutline[] }

export interface Name {
    site: number; name: string; raw?: string; cut: boolean; scope: string; category: string; module: string; file: string; line: number; colour: string
}
export interface RangeRef { row: number; site: number; name: string; start_ns: number; duration_ns: number }
export interface Link extends RangeRef { track: number; kind: string; name_of_link: string; direction: 'from' | 'to' }
export interface SourceLine { line: number; self_ns: number; total_ns: number; waiting_ns: number }
export interface SourceFile { file: string; line: number; first: number; text: string; lines?: SourceLine[] }
export interface Value { key: string; role: string; value: string; kind: string }
export interface Range extends RangeRef {
    whole_name: string; scope: string; category: string; track: number; thread: number; self_ns: number; depth: number; children: number
    device_time_ns?: number; flags: string[]; file: string; line: number; source: boolean; values: Value[]; stack: string[]
    parents: RangeRef[]; links: Link[]; sequence: number; call: number; part: number
}
export interface At {
    row: number | null; count: number; exact: boolean
    longest: { row: number; site: number; duration_ns: number } | null
    names: { site: number; name: string; count: number; total_ns: number }[]
    range: (RangeRef & { self_ns: number }) | null
}
export interface ArrowEnd { row: number; track: number; depth: number; start_ns: number; end_ns: number; site: number }
export interface Arrow { kind: string; name: string; from: ArrowEnd; to: ArrowEnd }
export interface Hit extends RangeRef { track: number; depth: number }
export interface Search { count: number; exact: boolean; names: number; hits: Hit[]; marks?: number[]; sites: number[] }
export type Cell = string | number | null
export interface Table { window_ns: number; recorded_ns: number; range_count: number; rows: Record<string, Cell>[] }
// A path in two traces: times, calls or bytes with the paths inside and without them.
export type Compared = [before: number, after: number, ownBefore: number, ownAfter: number, oldCalls: number, newCalls: number, match: string, oldName: number]
export type FlameNode = [parent: number, name: number, value: number, own: number, count: number, compared?: Compared]
export interface Flame { value: string; unit: string; total: number; names: string[]; nodes: FlameNode[] }
export interface Sandwich { name: string; count: number; total_ns: number; self_ns: number; callers: Flame; callees: Flame }

// Reads columns one after another.
class Columns {
    private at = 0
    constructor(private buffer: ArrayBuffer) {}
    u32(count: number): Uint32Array { return this.take(Uint32Array, count) as Uint32Array }
    u16(count: number): Uint16Array { return this.take(Uint16Array, count) as Uint16Array }
    f32(count: number): Float32Array { return this.take(Float32Array, count) as Float32Array }
    f64(count: number): Float64Array { return this.take(Float64Array, count) as Float64Array }
    private take(type: { new(b: ArrayBuffer, o: number, n: number): ArrayBufferView; BYTES_PER_ELEMENT: number }, count: number): ArrayBufferView {
        const size = type.BYTES_PER_ELEMENT
        this.at = Math.ceil(this.at / size) * size
        const column = new type(this.buffer, this.at, count)
        this.at += size * count
        return column
    }
    magic(expected: number): void {
        if (this.u32(1)[0] !== expected) throw new Error('unexpected answer from the server')
    }
}

// The boxes of a picture of `pixels` pixels from `begin` to `end`.
export function readPicture(buffer: ArrayBuffer, begin: number, end: number, pixels: number): Boxes {
    const columns = new Columns(buffer)
    columns.magic(0x31434950)
    const [levels, count, sites, unit, siteBytes] = columns.u32(5) as unknown as [number, number, number, number, number]
    const first = columns.u32(levels + 1)
    const ids = columns.u32(sites)
    const wide = siteBytes === 4 ? columns.u32(count) : null
    const left = columns.u16(count), width = columns.u16(count)
    const site = wide ?? columns.u16(count)
    const mergedBit = wide ? 0x80000000 : 0x8000
    const scale = (end - begin) / pixels / unit
    const boxes: Boxes = { begin: new Float64Array(count), end: new Float64Array(count), depth: new Uint32Array(count),
        name: new Uint32Array(count), sites: ids, merged: new Uint8Array(count), first, levels }
    for (let level = 0; level < levels; level++) {
        for (let i = first[level]!; i < first[level + 1]!; i++) {
            boxes.depth[i] = level
            boxes.begin[i] = begin + left[i]! * scale
            boxes.end[i] = begin + (left[i]! + width[i]!) * scale
            boxes.merged[i] = site[i]! & mergedBit ? 1 : 0
            boxes.name[i] = site[i]! & ~mergedBit
        }
    }
    return boxes
}

export interface CounterPicture { begin: number; end: number; min: Float64Array; max: Float64Array; last: Float64Array }

export function readCounter(buffer: ArrayBuffer, begin: number, end: number): CounterPicture {
    const columns = new Columns(buffer)
    columns.magic(0x31544e43)
    const pixels = columns.u32(1)[0]!
    return { begin, end, min: columns.f64(pixels), max: columns.f64(pixels), last: columns.f64(pixels) }
}

export interface Instants { begin: number; end: number; pixels: number; pixel: Uint32Array; site: Uint32Array; row: Uint32Array; count: Uint32Array }

export function readInstants(buffer: ArrayBuffer, begin: number, end: number, pixels: number): Instants {
    const columns = new Columns(buffer)
    columns.magic(0x31534e49)
    const marks = columns.u32(1)[0]!
    return { begin, end, pixels, pixel: columns.u32(marks), site: columns.u32(marks), row: columns.u32(marks), count: columns.u32(marks) }
}

export function readOverview(buffer: ArrayBuffer): { host: Float32Array; device: Float32Array } {
    const columns = new Columns(buffer)
    columns.magic(0x3156564f)
    const pixels = columns.u32(1)[0]!
    return { host: columns.f32(pixels), device: columns.f32(pixels) }
}
