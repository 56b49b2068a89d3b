// embedded.ts: the answers inside an HTML report, which needs no server.
//
// A report has a script element of type application/marey with base64 of gzip of: u32 length of a JSON object, the object
// {"note": text, "requests": {"path?query": [offset, bytes], ...}}, then the answers.
import { sandwich, search } from './embedded_answers'
import type { Flame, Name, Table } from './protocol'
import { Failure, query, type Parameters, type Source } from './source'

class Embedded implements Source {
    readonly embedded = true
    pixels(): number { return 3840 }

    constructor(readonly note: string, private requests: Record<string, [number, number]>, private answers: ArrayBuffer) {}

    bytes(path: string, parameters: Parameters): Promise<ArrayBuffer> {
        // A report has one answer for each track, counter or table, for the whole trace.
        const { begin, end, pixels, levels, limit, quick, sites, ...rest } = parameters, of = `?trace=${parameters['trace']}`
        if (path === 'sandwich' && begin === undefined)
            return this.computed(() => sandwich(this.json<Flame>(`flame${of}&value=total`), String(parameters['name'])))
        if (path === 'search')
            return this.computed(() => search(this.json<{ names: Name[] }>(`names${of}`).names, this.json<Table>(`table${of}`), String(parameters['text']), parameters['regex'] === true))
        const cut = begin !== undefined && ['table', 'flame', 'explain', 'diff', 'difference'].includes(path)
        const place = cut ? undefined : this.requests[query(path, rest)]
        if (!place) return Promise.reject(new Failure('A report has tables of the whole trace only. Use marey view for more.', 404))
        return Promise.resolve(this.answers.slice(place[0], place[0] + place[1]))
    }

    private json<T>(key: string): T {
        const [first, size] = this.requests[key]!
        return JSON.parse(new TextDecoder().decode(this.answers.slice(first, first + size))) as T
    }

    private async computed(compute: () => unknown): Promise<ArrayBuffer> {
        return new TextEncoder().encode(JSON.stringify(compute())).buffer as ArrayBuffer
    }
}

export async function embeddedSource(): Promise<Source | null> {
    const element = document.querySelector('script[type="application/marey"]')
    if (!element?.textContent) return null
    const packed = Uint8Array.from(atob(element.textContent.trim()), c => c.charCodeAt(0))
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))
    const all = await new Response(stream).arrayBuffer()
    const length = new DataView(all).getUint32(0, true)
    const { note, requests } = JSON.parse(new TextDecoder().decode(new Uint8Array(all, 4, length))) as { note: string; requests: Record<string, [number, number]> }
    return new Embedded(note, requests, all.slice(4 + length))
}
