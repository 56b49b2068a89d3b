// flame_views.ts: the flame graph of the selection, and the sandwich: callers above, callees below one name.
import type { App } from './app'
import { add, el, fill } from './dom'
import { clean, plural, time } from './format'
import { amount, FlameGraph } from './flame'
import type { Flame, Sandwich } from './protocol'

const metrics: [string, string][] = [['total', 'total time'], ['self', 'self time, callers below'], ['calls', 'calls'], ['bytes', 'bytes allocated'], ['gpu', 'GPU time']]

export class FlameView {
    readonly root = el('section.view', { 'aria-label': 'Flame graph' })
    readonly graph: FlameGraph
    private metric = el<HTMLSelectElement>('select', { 'aria-label': 'Width of boxes' }, ...metrics.map(([value, title]) => el('option', { value }, title)))
    private upward = el<HTMLButtonElement>('button.toggle', { 'aria-pressed': 'false' }, 'Roots below')
    private crumbs = el('span.crumbs')
    private note = el('span.note')
    private flame: Flame | null = null
    private asked = ''
    onName: (name: string) => void = () => {}

    constructor(private app: App, chooser: HTMLElement) {
        this.graph = new FlameGraph(app, 'Flame graph')
        add(this.root, el('div.toolbar', {}, this.metric, this.upward, chooser, this.crumbs, this.note), this.graph.root)
        this.metric.addEventListener('change', () => app.store.set({ metric: this.metric.value, focus: [] }))
        this.upward.addEventListener('click', () => app.store.set({ upward: !app.state.upward }))
        this.graph.onFocus = focus => app.store.set({ focus })
        this.graph.onName = name => this.onName(name)
    }

    forget(): void { this.asked = '' }

    async update(): Promise<void> {
        const { state } = this.app
        this.metric.value = state.metric
        this.upward.setAttribute('aria-pressed', String(state.upward))
        const parameters = { ...this.app.selection(), value: state.metric, pixels: 3000 }
        const key = JSON.stringify(parameters)
        if (key !== this.asked) {
            this.asked = key
            this.root.classList.add('busy')
            try {
                const flame = await this.app.data.json<Flame>('flame', parameters)
                if (this.asked !== key) return
                this.flame = flame
                this.note.textContent = flame.nodes.length ? `${amount(flame.unit, flame.total)} in all` : 'nothing to show for this selection'
            } catch (error) {
                this.asked = ''
                this.note.textContent = (error as Error).message
            }
            this.root.classList.remove('busy')
        }
        if (this.flame) {
            this.graph.upward = state.upward
            this.graph.show(this.flame, state.focus)
        }
        this.showCrumbs()
    }

    private showCrumbs(): void {
        const { focus } = this.app.state
        fill(this.crumbs)
        if (!focus.length) return
        add(this.crumbs, el('button.link', { onclick: () => this.app.store.set({ focus: [] }) }, 'all'), ' › ', el('b', {}, clean(focus[focus.length - 1]!, 80)))
    }
}

export class SandwichView {
    readonly root = el('section.view', { 'aria-label': 'Sandwich' })
    private callers: FlameGraph
    private callees: FlameGraph
    private field = el<HTMLInputElement>('input.wide', { type: 'search', placeholder: 'Name', 'aria-label': 'Name', list: 'names', spellcheck: 'false' })
    private names = el('datalist', { id: 'names' })
    private note = el('span.note')
    private asked = ''
    private listed = ''

    constructor(private app: App, chooser: HTMLElement) {
        this.callers = new FlameGraph(app, 'Callers')
        this.callees = new FlameGraph(app, 'Callees')
        this.callers.upward = this.callers.compact = true
        add(this.root, el('div.toolbar', {}, this.field, this.names, chooser, this.note),
            el('div.sandwich', {}, el('h2', {}, 'Callers'), this.callers.root, el('h2', {}, 'Callees'), this.callees.root))
        this.field.addEventListener('change', () => app.store.set({ name: this.field.value }))
        for (const graph of [this.callers, this.callees]) {
            graph.onFocus = path => { const name = path[path.length - 1]; if (name && name !== app.state.name) app.store.set({ name }) }
        }
    }

    forget(): void { this.asked = '' }

    async update(): Promise<void> {
        await this.list()
        const { state } = this.app
        if (document.activeElement !== this.field) this.field.value = state.name
        if (!state.name) return
        const parameters = { ...this.app.selection(), name: state.name }
        const key = JSON.stringify(parameters)
        if (key === this.asked) { this.callers.draw(); this.callees.draw(); return }
        this.asked = key
        this.root.classList.add('busy')
        try {
            const answer = await this.app.data.json<Sandwich>('sandwich', parameters)
            if (this.asked !== key) return
            this.note.textContent = `${plural(answer.count, 'call')} · total ${time(answer.total_ns)} · self ${time(answer.self_ns)}`
            this.callers.show(answer.callers, [])
            this.callees.show(answer.callees, [])
        } catch (error) {
            this.asked = ''
            this.note.textContent = (error as Error).message
        }
        this.root.classList.remove('busy')
    }

    // Offers the names of the selection, those with the most self time first; shows the first one if none was chosen.
    private async list(): Promise<void> {
        const parameters = { ...this.app.selection(), limit: 200, quick: true }
        const key = JSON.stringify(parameters)
        if (key === this.listed) return
        this.listed = key
        try {
            const { rows } = await this.app.data.json<{ rows: { name: string }[] }>('table', parameters)
            fill(this.names, ...rows.map(row => el('option', { value: clean(row.name, 300) })))
            if (!this.app.state.name && rows[0] && this.app.state.view === 'sandwich') this.app.store.set({ name: rows[0].name }, 'replace')
        } catch { this.listed = '' }
    }
}
