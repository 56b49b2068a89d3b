// state.ts: the state of the page. The URL fragment holds all of it, so that a link restores the picture and Back works.

export type View = 'timeline' | 'flame' | 'sandwich' | 'table' | 'steps' | 'devices' | 'changes'
export const views: View[] = ['timeline', 'flame', 'sandwich', 'table', 'steps', 'devices', 'changes']
export type Span = [begin: number, end: number] // ns from the beginning of the trace

export interface State {
    view: View
    theme: '' | 'light' | 'dark'    // '': that of the system
    window: Span | null             // what the timeline shows; null: everything
    selection: Span | null          // what the other views show; null: everything
    range: [trace: number, row: number] | null
    trace: number                   // the trace that tables and flame graphs show
    marks: number[]
    query: string
    regex: boolean
    tracks: string                  // filter of the timeline's tracks
    collapsed: number[]             // ids of lanes and groups, see lanes.ts
    pinned: number[]
    hidden: number[]
    metric: string                  // of the flame graph
    upward: boolean                 // flame graph (roots below) instead of icicle
    focus: string[]                 // names from the root to the node that the flame graph shows
    name: string                    // of the sandwich
    by: string                      // what the table's rows are
    sort: string
    ascending: boolean
    filter: string                  // of the table's rows
    align: string                   // of two timelines: the number of a step; 'start'; '': the first step that both have
    compared: string                // metric of the changes
    kind: string                    // of the changes that are listed; '': all
}

export const initial: State = {
    view: document.documentElement.dataset['view'] === 'changes' ? 'changes' : 'timeline', theme: '', window: null, selection: null, range: null, trace: 0, marks: [], query: '', regex: false, tracks: '',
    collapsed: [], pinned: [], hidden: [], metric: 'total', upward: false, focus: [], name: '', by: 'name', sort: 'self',
    ascending: false, filter: '', align: '', compared: 'self', kind: '',
}

type Key = keyof State
const keys = Object.keys(initial) as Key[]

function isPlain(value: unknown, like: unknown): boolean {
    if (like === null) return value === null || (Array.isArray(value) && value.length === 2 && value.every(v => Number.isFinite(v)))
    if (Array.isArray(like)) return Array.isArray(value) && value.every(v => typeof v === 'string' || Number.isFinite(v))
    return typeof value === typeof like
}

// Reads a fragment. Unknown keys and values of the wrong kind are ignored: links come from anywhere.
export function decode(fragment: string): { state: State; token: string } {
    const state = { ...initial }
    const parameters = new URLSearchParams(fragment.replace(/^#/, ''))
    for (const key of keys) {
        const text = parameters.get(key)
        if (text === null) continue
        try {
            const value: unknown = typeof initial[key] === 'string' ? text : JSON.parse(text)
            if (isPlain(value, initial[key])) Object.assign(state, { [key]: value })
        } catch { /* not JSON: keep the default */ }
    }
    if (!views.includes(state.view)) state.view = initial.view
    if (!['', 'light', 'dark'].includes(state.theme)) state.theme = ''
    return { state, token: parameters.get('token') ?? '' }
}

export function encode(state: State, token: string): string {
    const parameters = new URLSearchParams()
    if (token) parameters.set('token', token)
    for (const key of keys) {
        const value = state[key]
        const text = typeof value === 'string' ? value : JSON.stringify(value)
        if (text !== (typeof initial[key] === 'string' ? initial[key] : JSON.stringify(initial[key]))) parameters.set(key, text)
    }
    return '#' + parameters.toString()
}

type Listener = (state: State, changed: Set<Key>) => void

export class Store {
    state: State
    readonly token: string
    private listeners: Listener[] = []
    private timer = 0
    private pushed = ''

    constructor() {
        const { state, token } = decode(location.hash)
        this.state = state
        this.token = token
        this.pushed = location.hash
        addEventListener('popstate', () => this.read())
        addEventListener('hashchange', () => this.read())
    }

    listen(listener: Listener): void { this.listeners.push(listener) }

    // Changes the state. 'push' adds a step for Back; 'replace' does not, for what changes continuously.
    set(patch: Partial<State>, history: 'push' | 'replace' = 'push'): void {
        const changed = this.apply({ ...this.state, ...patch })
        if (!changed.size) return
        clearTimeout(this.timer)
        if (history === 'push') this.write('push')
        else this.timer = window.setTimeout(() => this.write('replace'), 250) // browsers limit how often this may be called
    }

    private write(history: 'push' | 'replace'): void {
        const fragment = encode(this.state, this.token)
        if (fragment === this.pushed) return
        this.pushed = fragment
        if (history === 'push') window.history.pushState(null, '', fragment)
        else window.history.replaceState(null, '', fragment)
    }

    private read(): void {
        if (location.hash === this.pushed) return
        clearTimeout(this.timer)
        this.pushed = location.hash
        this.apply(decode(location.hash).state)
    }

    private apply(next: State): Set<Key> {
        const changed = new Set(keys.filter(key => JSON.stringify(next[key]) !== JSON.stringify(this.state[key])))
        this.state = next
        if (changed.size) for (const listener of this.listeners) listener(next, changed)
        return changed
    }
}
