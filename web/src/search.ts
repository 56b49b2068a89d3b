// search.ts: finds ranges by the text of their names, or by a regular expression.
import { App } from './app'
import { add, el } from './dom'
import { count, plural } from './format'
import type { Hit, Search as Answer } from './protocol'

export class Search {
    readonly root = el('div.search', { role: 'search' })
    readonly field = el<HTMLInputElement>('input', { type: 'search', placeholder: 'Search  /', 'aria-label': 'Search names', spellcheck: 'false' })
    private regex = el<HTMLButtonElement>('button.toggle', { title: 'Regular expression', 'aria-label': 'Regular expression', 'aria-pressed': 'false' }, '.*')
    private found = el('span.found', { 'aria-live': 'polite' })
    private asked = ''
    private running: Promise<void> = Promise.resolve()
    private abort = new AbortController()
    private timer = 0
    private hits: (Hit & { trace: number })[] = []
    onHit: (trace: number, hit: Hit) => void = () => {}
    onChange: () => void = () => {}

    constructor(private app: App) {
        add(this.root, this.field, this.regex, this.found)
        this.field.addEventListener('input', () => {
            clearTimeout(this.timer)
            this.timer = window.setTimeout(() => app.store.set({ query: this.field.value }, 'replace'), 120)
        })
        this.field.addEventListener('keydown', event => {
            if (event.key === 'Escape') {
                event.stopPropagation()
                if (this.field.value) { this.field.value = ''; app.store.set({ query: '' }) }
                this.field.blur()
            }
            if (event.key === 'Enter') {
                clearTimeout(this.timer)
                app.store.set({ query: this.field.value })
                void this.update().then(() => this.next(event.shiftKey ? -1 : 1))
            }
        })
        this.regex.addEventListener('click', () => app.store.set({ regex: !app.state.regex }))
    }

    async update(): Promise<void> {
        const { query, regex } = this.app.state
        if (document.activeElement !== this.field) this.field.value = query
        this.regex.setAttribute('aria-pressed', String(regex))
        const key = `${regex} ${query}`
        if (key !== this.asked) {
            this.asked = key
            this.abort.abort()
            this.abort = new AbortController()
            this.running = this.ask(query, regex, this.abort.signal)
        }
        await this.running
    }

    private async ask(query: string, regex: boolean, signal: AbortSignal): Promise<void> {
        if (!query) {
            this.show([], '')
            return
        }
        try {
            const traces = this.app.data.outline.traces.map((_, trace) => trace)
            const answers = await Promise.all(traces.map(trace => this.app.data.json<Answer>('search', { trace, text: query, regex, pixels: App.markPixels, limit: 2000 }, signal)))
            this.hits = answers.flatMap((answer, trace) => answer.hits.map(hit => ({ ...hit, trace }))).sort((a, b) => this.time(a) - this.time(b))
            const all = answers.reduce((sum, answer) => sum + answer.count, 0)
            this.show(answers, all ? `${count(all)} in ${plural(answers.reduce((sum, answer) => sum + answer.names, 0), 'name')}` : 'no hits')
        } catch (error) {
            if (!signal.aborted) this.show([], (error as Error).message)
        }
    }

    forget(): void { this.asked = '' }

    private time(hit: Hit & { trace: number }): number { return hit.start_ns + this.app.data.shift(hit.trace) }

    private show(answers: Answer[], text: string): void {
        if (!answers.length) this.hits = []
        this.app.hits = answers.map(answer => new Set(answer.sites))
        this.app.hitMarks = answers.map(answer => answer.marks ?? [])
        this.found.textContent = text
        this.found.title = text
        this.onChange()
    }

    // Goes to the next (1) or previous (-1) hit after the selected range, or after the window's beginning.
    next(direction: 1 | -1): void {
        if (!this.hits.length) return
        const current = this.app.state.range
        const at = current ? this.hits.findIndex(hit => hit.trace === current[0] && hit.row === current[1]) : -1
        let index = at >= 0 ? at + direction : this.hits.findIndex(hit => this.time(hit) >= this.app.window[0])
        index = (index + this.hits.length) % this.hits.length
        this.onHit(this.hits[index]!.trace, this.hits[index]!)
    }
}
