// source.ts: asks the server, or reads the answers embedded in an HTML report.
import type { Name, Outline } from './protocol'

export type Parameters = Record<string, string | number | boolean | undefined>

export class Failure extends Error {
    constructor(message: string, readonly status: number) { super(message) }
}

export interface Source {
    readonly embedded: boolean // one answer per track and table, for the whole trace
    readonly note: string // what was merged or left out
    pixels(wanted: number): number // the width of pictures
    bytes(path: string, parameters: Parameters, signal?: AbortSignal): Promise<ArrayBuffer>
}

export function query(path: string, parameters: Parameters): string {
    const text = new URLSearchParams()
    for (const [key, value] of Object.entries(parameters))
        if (value !== undefined && value !== false && value !== '') text.set(key, value === true ? '1' : String(value))
    return text.size ? `${path}?${text}` : path
}

export class Server implements Source {
    readonly embedded = false
    readonly note = ''
    constructor(private token: string) {}

    pixels(wanted: number): number { return wanted }

    async bytes(path: string, parameters: Parameters, signal?: AbortSignal): Promise<ArrayBuffer> {
        let answer: Response
        try {
            answer = await fetch(query(`/api/${path}`, parameters), { headers: { 'Marey-Token': this.token }, signal: signal ?? null })
        } catch (error) {
            if (signal?.aborted) throw error
            throw new Failure('cannot reach marey view: has it stopped?', 0)
        }
        const body = await answer.arrayBuffer()
        if (answer.ok) return body
        let message = `the server answered ${answer.status}`
        try {
            message = (JSON.parse(new TextDecoder().decode(body)) as { error: string }).error || message
        } catch { /* not JSON: keep the status */ }
        throw new Failure(message, answer.status)
    }
}

// The trace data of the page: the outline, and names by their ids.
export class Data {
    outline: Outline = { version: 1, marey: '', traces: [] }
    shifts: number[] = [] // per trace: its beginning in the time of the page, which aligns two traces
    private names: Map<number, Name>[] = []
    private wanted: Set<number>[] = []
    private asked = false
    onNames: () => void = () => {}

    constructor(readonly source: Source) {}

    // Until the last trace ends, in ns; more than 0, so that it can be divided by.
    get duration(): number { return Math.max(10, ...this.outline.traces.map((trace, i) => (trace.window?.duration_ns ?? 0) + this.shift(i))) }

    shift(trace: number): number { return this.shifts[trace] ?? 0 }

    async json<T>(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
        return JSON.parse(new TextDecoder().decode(await this.source.bytes(path, parameters, signal))) as T
    }

    // The name of a site, or undefined if it is on its way: then onNames is called.
    name(trace: number, site: number): Name | undefined {
        const known = (this.names[trace] ??= new Map()).get(site)
        if (known) return known
        ;(this.wanted[trace] ??= new Set()).add(site)
        if (!this.asked) {
            this.asked = true
            queueMicrotask(() => void this.askNames())
        }
        return undefined
    }

    forget(trace: number): void {
        delete this.names[trace]
        delete this.wanted[trace]
    }

    private async askNames(): Promise<void> {
        try {
            for (const [trace, wanted] of this.wanted.entries()) {
                while (wanted?.size) {
                    const sites = [...wanted].slice(0, 1000) // keeps the URL short
                    for (const site of sites) wanted.delete(site)
                    const { names } = await this.json<{ names: Name[] }>('names', { trace, sites: sites.join(',') })
                    for (const name of names) this.names[trace]!.set(name.site, name)
                }
            }
        } catch { /* asked again when they are drawn again */ }
        this.asked = false
        this.onNames()
    }
}
