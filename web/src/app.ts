// app.ts: what the views share.
import type { Name } from './protocol'
import { clean, label } from './format'
import type { Data } from './source'
import type { Span, State, Store } from './state'
import { colourOf, themes, type Theme } from './theme'

export class App {
    // The sites that the search found, per trace; null: no search.
    hits: (Set<number> | null)[] = []
    hitMarks: number[][] = []        // per trace: pixel, count, pixel, count, ... over markPixels
    static readonly markPixels = 1024
    private colours: Map<number, number>[] = []
    private labels: Map<number, string>[] = []

    constructor(readonly store: Store, readonly data: Data) {}

    get state(): State { return this.store.state }

    get dark(): boolean {
        return this.state.theme ? this.state.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
    }
    get theme(): Theme { return this.dark ? themes.dark : themes.light }

    // What the timeline shows.
    get window(): Span { return this.state.window ?? [0, this.data.duration] }

    // The same in the time of a trace.
    windowOf(trace: number): Span { return [this.window[0] - this.data.shift(trace), this.window[1] - this.data.shift(trace)] }

    // A span of a trace in the time of the page.
    paged(trace: number, begin: number, end: number): Span { return [begin + this.data.shift(trace), end + this.data.shift(trace)] }

    // The parameters of a question about the selection.
    selection(trace = this.state.trace): { trace: number; begin?: number; end?: number } {
        const span = this.state.selection, shift = this.data.shift(trace)
        return span ? { trace, begin: Math.floor(span[0]) - shift, end: Math.ceil(span[1]) - shift } : { trace }
    }

    // The index of a site's colour, or -1 while its name is unknown.
    colour(trace: number, site: number): number {
        const known = (this.colours[trace] ??= new Map()).get(site)
        if (known !== undefined) return known
        const name = this.data.name(trace, site)
        if (!name) return -1
        const colour = colourOf(name.raw ?? name.name)
        this.colours[trace]!.set(site, colour)
        return colour
    }

    label(trace: number, site: number): string {
        const known = (this.labels[trace] ??= new Map()).get(site)
        if (known !== undefined) return known
        const name = this.data.name(trace, site)
        if (!name) return ''
        const text = clean(label(name.raw ?? name.name), 160)
        this.labels[trace]!.set(site, text)
        return text
    }

    name(trace: number, site: number): Name | undefined { return this.data.name(trace, site) }

    forget(trace: number): void {
        delete this.colours[trace]
        delete this.labels[trace]
        this.data.forget(trace)
    }

    // Shows a time span in the timeline, with some room around it.
    show(begin: number, end: number, room = 0.2): Span {
        const width = Math.max(end - begin, 20)
        return this.limit([begin - width * room, end + width * room])
    }

    // A window within the trace, at least 10 ns wide.
    limit([begin, end]: Span): Span {
        const all = this.data.duration
        const width = Math.min(Math.max(end - begin, 10), all * 1.02)
        const left = Math.min(Math.max(begin, -all * 0.01), all * 1.01 - width)
        return [left, left + width]
    }
}
