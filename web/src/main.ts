// main.ts: puts the page together and handles its keys.
import { App } from './app'
import { ChangesView } from './changes'
import { Details } from './details'
import { DevicesView } from './devices'
import { add, el, fill } from './dom'
import { embeddedSource } from './embedded'
import { FlameView, SandwichView } from './flame_views'
import { clean, plural, time } from './format'
import { Help } from './help'
import { Overview } from './overview'
import type { At, Outline, Range, Hit, Arrow } from './protocol'
import type { FindingEvidenceRow, FindingsRow } from './results'
import { Search } from './search'
import { Data, Failure, Server } from './source'
import { Store, views, type Span, type State, type View } from './state'
import { isSlow, StepsView } from './steps'
import { TableView } from './table'
import { Timeline } from './timeline'

const titles: Record<View, string> = { timeline: 'Timeline', flame: 'Flame graph', sandwich: 'Sandwich', table: 'Table', steps: 'Steps', devices: 'GPU & memory', changes: 'Changes' }

const fewArrows = 20
const followedNs = 10e9 // of a program that runs

// The arrows to draw for a range: with many in the ranges inside it, only its own and where they lead.
function readable(arrows: Arrow[], row: number): Arrow[] {
    if (arrows.length <= fewArrows) return arrows
    const rows = new Set([row])
    let chain: Arrow[] = [], before = -1
    while (chain.length > before) {
        before = chain.length
        chain = arrows.filter(arrow => rows.has(arrow.from.row) || rows.has(arrow.to.row))
        for (const arrow of chain) rows.add(arrow.from.row).add(arrow.to.row)
    }
    return chain
}

class Page {
    private app: App
    private overview: Overview
    private timeline: Timeline
    private details: Details
    private search: Search
    private help = new Help()
    private flame: FlameView
    private sandwich: SandwichView
    private table: TableView
    private steps: StepsView
    private devices: DevicesView
    private changes: ChangesView
    private tabs = new Map<View, HTMLElement>()
    private choosers: HTMLSelectElement[] = []
    private file = el('span.file')
    private chip = el('span.selection', { hidden: true })
    private message = el('div.message', { role: 'status', hidden: true })
    private progress = el<HTMLProgressElement>('progress', { max: 1, 'aria-label': 'Reading the trace' })
    private main = el('main')
    private live = el<HTMLButtonElement>('button.toggle.live', { title: 'Follow the program (L)', 'aria-pressed': 'false', hidden: true }, 'Live')
    private polling = 0
    private following = false
    private asked = 0 // number of the newest question about a range

    constructor(private store: Store, private data: Data) {
        const app = this.app = new App(store, data)
        this.overview = new Overview(app)
        this.timeline = new Timeline(app)
        this.details = new Details(app)
        this.search = new Search(app)
        this.flame = new FlameView(app, this.chooser())
        this.sandwich = new SandwichView(app, this.chooser())
        this.table = new TableView(app, this.chooser())
        this.steps = new StepsView(app, this.chooser())
        this.devices = new DevicesView(app, this.chooser())
        this.changes = new ChangesView(app)
        this.build()
        this.connect()
        this.theme()
        void this.load()
    }

    private chooser(): HTMLSelectElement {
        const select = el<HTMLSelectElement>('select', { 'aria-label': 'Trace', hidden: true })
        select.addEventListener('change', () => this.store.set({ trace: Number(select.value) }))
        this.choosers.push(select)
        return select
    }

    private get panes(): Record<View, HTMLElement> {
        return { timeline: this.timeline.root, flame: this.flame.root, sandwich: this.sandwich.root, table: this.table.root, steps: this.steps.root, devices: this.devices.root, changes: this.changes.root }
    }

    private build(): void {
        const tabs = el('nav.tabs', { role: 'tablist', 'aria-label': 'Views' })
        views.forEach((view, index) => {
            const tab = el('button', { role: 'tab', id: `tab-${view}`, 'aria-controls': `pane-${view}`, title: `${titles[view]} (${index + 1})`, 'data-label': titles[view], onclick: () => this.store.set({ view }) }, titles[view])
            this.tabs.set(view, tab)
            add(tabs, tab)
            const pane = this.panes[view]
            pane.id = `pane-${view}`
            pane.setAttribute('role', 'tabpanel')
            pane.setAttribute('aria-labelledby', `tab-${view}`)
            add(this.main, pane)
        })
        add(this.main, this.details.root, this.message)
        add(document.getElementById('app')!,
            el('header', {}, el('h1', {}, 'marey'), this.file, tabs, this.chip, el('span.space'), this.live, this.search.root,
                el('button.icon', { title: 'Light or dark (T)', 'aria-label': 'Light or dark', onclick: () => this.switchTheme() }, '◐'),
                el('button.icon', { title: 'Keys (?)', 'aria-label': 'Keys', onclick: () => this.help.toggle() }, '?')),
            this.overview.root, this.main, this.help.root)
    }

    private connect(): void {
        const { store } = this
        store.listen((_, changed) => this.update(changed))
        this.data.onNames = () => { this.timeline.draw(); this.overview.draw() }
        this.overview.onWindow = () => this.timeline.stop()
        this.timeline.onBox = (...box) => void this.box(...box)
        this.timeline.onNothing = () => this.deselect()
        this.details.onRange = (trace, row) => void this.goTo(trace, row)
        const sandwich = (name: string) => store.set({ view: 'sandwich', name })
        this.details.onName = this.table.onName = this.flame.onName = this.devices.onName = this.steps.onName = sandwich
        this.search.onChange = () => { this.timeline.draw(); this.overview.draw(); this.marked() }
        this.search.onHit = (trace, hit) => this.show(trace, hit)
        this.steps.onStep = step => this.showSpan(step.start_ns, step.start_ns + step.duration_ns, 0.3)
        this.devices.onTime = (begin, end) => this.showSpan(begin, end, 1)
        this.details.onFinding = (...finding) => void this.goToFinding(...finding)
        this.changes.onSummary = (...parts) => { if (this.app.state.view === 'changes') this.details.show(...parts) }
        this.timeline.onStep = by => this.toStep(by)
        this.timeline.onAlign = () => this.alignAt(this.app.state.align === 'start' ? '' : 'start')
        this.live.addEventListener('click', () => this.follow())
        addEventListener('keydown', event => this.key(event))
        matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { this.theme(); this.redraw() })
    }

    // Selects a span of the chosen trace and brings it into view.
    private showSpan(begin: number, end: number, room: number): void {
        const selection = this.app.paged(this.app.state.trace, Math.max(0, begin), end)
        this.store.set({ view: 'timeline', selection, window: this.app.show(...selection, room) })
    }

    private async goToFinding(trace: number, finding: FindingsRow, evidence: FindingEvidenceRow[]): Promise<void> {
        const { start_ns, duration_ns, name } = finding
        if (start_ns !== null) {
            this.timeline.stop()
            this.store.set({ view: 'timeline', trace, range: null, window: this.app.show(...this.app.paged(trace, start_ns, start_ns + (duration_ns ?? 0)), 0.5) })
        } else this.store.set({ range: null })
        this.details.showFinding(trace, finding, evidence)
        if (start_ns === null || !name) return
        try {
            const hit = await this.data.json<Hit>('next', { trace, time: start_ns, direction: 1, within: 'all', name })
            if (hit.row === null || hit.start_ns > start_ns + (duration_ns ?? 0)) return
            this.timeline.selected = { trace, range: hit }
            this.timeline.reveal(trace, hit.track, hit.depth)
            this.timeline.draw()
        } catch { /* a report has no single ranges */ }
    }

    // The numbers of the steps that all traces have.
    private get stepNumbers(): number[] {
        const [first, ...others] = this.timeline.steps.filter(steps => steps.length).map(steps => steps.map(step => step.number))
        const sets = others.map(numbers => new Set(numbers))
        return (first ?? []).filter(number => sets.every(set => set.has(number)))
    }

    // Aligns two timelines at a step; 'start': at their beginning; '': at the first step that both have.
    private align(): void {
        const { align } = this.app.state, numbers = this.stepNumbers, { steps } = this.timeline
        this.timeline.aligns = steps.length === 2 && steps.every(its => its.length) && numbers.length > 0
        const step = !this.timeline.aligns || align === 'start' ? null : numbers.includes(Number(align || NaN)) ? Number(align) : numbers[0]!
        const begins = step === null ? [] : steps.map(its => its.find(each => each.number === step)!.begin)
        this.data.shifts = begins.map(begin => Math.max(...begins) - begin)
        this.timeline.showAlignment(step)
    }

    private alignAt(align: string, patch: Partial<State> = {}): void {
        this.timeline.stop()
        this.store.set({ align, selection: null, window: null, ...patch })
    }

    private toStep(by: 1 | -1): void {
        const numbers = this.stepNumbers, at = numbers.indexOf(Number(this.app.state.align || NaN))
        const number = numbers[at < 0 ? 0 : Math.max(0, Math.min(numbers.length - 1, at + by))]
        if (number === undefined) return
        this.alignAt(String(number))
        const spans = this.timeline.steps.flatMap((steps, trace) => steps.filter(step => step.number === number).map(step => this.app.paged(trace, step.begin, step.end)))
        this.store.set({ view: 'timeline', window: this.app.show(Math.min(...spans.map(span => span[0])), Math.max(...spans.map(span => span[1])), 0.1) }, 'replace')
    }

    // Highlights in the flame graph what the search looks for.
    private marked(): void {
        const { query, regex } = this.app.state
        let test: RegExp | null = null
        try { test = regex && query ? new RegExp(query, 'i') : null } catch { /* the server reports it */ }
        this.flame.graph.needle = !query ? null : regex ? (test ? name => test!.test(name) : null) : name => name.toLowerCase().includes(query.toLowerCase())
        this.flame.graph.draw()
    }

    // Asks for the outline until every trace is loaded.
    private async load(): Promise<void> {
        clearTimeout(this.polling)
        const known = () => this.data.outline.traces.map(trace => `${trace.state} ${trace.generation} ${!!trace.window}`).join()
        const before = known()
        try {
            this.data.outline = await this.data.json<Outline>('outline')
        } catch (error) {
            this.say(error instanceof Failure && error.status === 403 ? 'The token in this link is missing or was made for another run of marey view. Open the link that marey view printed.' : (error as Error).message)
            this.polling = window.setTimeout(() => void this.load(), 2000)
            return
        }
        const { traces } = this.data.outline
        const names = traces.map(trace => clean(trace.file.slice(trace.file.lastIndexOf('/') + 1), 80))
        this.live.hidden = !traces.some(trace => trace.live) && !this.following
        this.file.textContent = names.join(' and ')
        this.file.title = traces.map(trace => clean(trace.file, 500)).join('\n')
        document.title = `${names.join(' and ')} · marey`
        for (const chooser of this.choosers) {
            chooser.hidden = traces.length < 2
            if (chooser.options.length !== traces.length) fill(chooser, ...names.map((name, i) => el('option', { value: i }, name)))
        }
        this.sayLoading()
        if (known() !== before) {
            if (!before.includes('ready')) this.showReason()
            this.loaded()
        }
        if (traces.some(trace => trace.state === 'loading')) this.polling = window.setTimeout(() => void this.load(), 200)
    }

    // Opens a snapshot at what it is about.
    private showReason(): void {
        const { state } = this.app, reason = this.data.outline.traces[0]?.snapshot
        if (!reason?.end_ns || state.selection || state.window || state.marks.length) return
        const begin = Math.max(0, reason.begin_ns), end = Math.min(this.data.duration, reason.end_ns)
        this.store.set(end > begin ? { selection: [begin, end], window: this.app.show(begin, end, 0.5) } : { marks: [end] }, 'replace')
    }

    // Shows the last seconds of a program that runs, again and again.
    private follow(): void {
        if (this.live.hidden) return
        this.following = !this.following
        this.live.setAttribute('aria-pressed', String(this.following))
        if (!this.following) return
        this.store.set({ window: null, selection: null, range: null })
        void this.renew()
    }

    private async renew(): Promise<void> {
        if (!this.following) return
        const begin = performance.now()
        try {
            for (const [trace] of this.data.outline.traces.entries()) await this.data.json('reload', { trace, last: followedNs })
            let outline: Outline
            do {
                await new Promise(resolve => setTimeout(resolve, 20))
                outline = await this.data.json<Outline>('outline')
            } while (outline.traces.some(trace => trace.state === 'loading'))
            if (!this.following) return
            this.timeline.hold()
            this.data.outline = outline
            this.sayLoading()
            this.loaded()
            if (!outline.traces.some(trace => trace.live)) { // it has ended
                this.follow()
                await this.reload()
                return
            }
        } catch (error) {
            this.say((error as Error).message)
        }
        setTimeout(() => void this.renew(), Math.max(50, 500 - (performance.now() - begin)))
    }

    private sayLoading(): void {
        const { traces } = this.data.outline
        const failed = traces.find(trace => trace.state === 'failed'), loading = traces.find(trace => trace.state === 'loading')
        if (failed) this.say(clean(failed.error ?? 'cannot open the trace', 1000))
        else if (loading) {
            this.say(`Reading ${clean(loading.file, 200)}${loading.progress ? '' : ' …'}`)
            if (!loading.progress) return
            this.progress.value = loading.progress
            add(this.message, this.progress)
        } else if (traces.every(trace => !trace.range_count && !trace.counter_count && !trace.instant_count)) this.say('This trace is empty.')
        else this.message.hidden = true
    }

    private loaded(): void {
        this.data.outline.traces.forEach((_, trace) => this.app.forget(trace))
        this.timeline.pictures.forget()
        for (const view of [this.flame, this.sandwich, this.table, this.steps, this.devices, this.changes, this.details, this.search]) view.forget()
        void this.overview.load()
        void this.loadSteps()
        this.update(new Set(Object.keys(this.app.state) as (keyof State)[]))
    }

    private async loadSteps(): Promise<void> {
        try {
            const reports = await Promise.all(this.data.outline.traces.map((_, trace) => this.steps.load(trace)))
            this.timeline.steps = reports.map(report => (report?.steps ?? []).map(step => ({ number: step.number, name: clean(step.name, 60), begin: step.start_ns, end: step.start_ns + step.duration_ns, slow: isSlow(step, report!) })))
            this.align()
            this.overview.draw()
            this.views()
        } catch { /* no bands */ }
    }

    private say(text: string): void {
        this.message.hidden = false
        this.message.textContent = text
    }

    private update(changed: Set<keyof State>): void {
        const { state } = this.app
        if (changed.has('theme')) this.theme()
        if (changed.has('align')) this.align()
        if (state.view === 'changes' && this.data.outline.traces.length === 1) { this.store.set({ view: 'timeline' }, 'replace'); return }
        this.tabs.get('changes')!.hidden = this.data.outline.traces.length !== 2
        for (const view of views) {
            this.panes[view].hidden = view !== state.view
            this.tabs.get(view)!.setAttribute('aria-selected', String(view === state.view))
        }
        for (const chooser of this.choosers) chooser.value = String(state.trace)
        const ready = this.data.outline.traces.some(trace => trace.state === 'ready')
        this.showChip()
        this.overview.draw()
        if (!ready) {
            this.timeline.update() // the outline, if it is known
            return
        }
        if (changed.has('range')) void this.showRange()
        else if (!state.range && (changed.has('selection') || changed.has('trace') || changed.has('view'))) void this.details.showSelection()
        if (changed.has('query') || changed.has('regex')) void this.search.update()
        this.views()
    }

    private views(): void {
        const { view } = this.app.state
        if (view === 'timeline') this.timeline.update()
        if (view === 'flame') void this.flame.update()
        if (view === 'sandwich') void this.sandwich.update()
        if (view === 'table') void this.table.update()
        if (view === 'steps') void this.steps.update()
        if (view === 'devices') void this.devices.update()
        if (view === 'changes') void this.changes.update()
    }

    private redraw(): void {
        this.overview.draw()
        this.details.forget()
        void this.showRange()
        this.views()
    }

    private showChip(): void {
        const span = this.app.state.selection
        this.chip.hidden = !span
        if (span)
            fill(this.chip, `${time(span[1] - span[0], 4)} selected`, el('button', { title: 'Select everything (Esc)', 'aria-label': 'Clear the selection', onclick: () => this.store.set({ selection: null }) }, '×'))
    }

    // Shows the selected range in the panel, with its arrows in the timeline.
    private async showRange(): Promise<void> {
        const { range } = this.app.state, asked = ++this.asked
        this.timeline.selected = null
        this.timeline.arrows = { trace: 0, arrows: [] }
        this.timeline.draw()
        if (!range) { await this.details.showSelection(); return }
        const [trace, row] = range
        try {
            const answer = await this.data.json<Range>('range', { trace, row })
            if (asked !== this.asked) return
            this.timeline.selected = { trace, range: answer }
            this.details.showRange(trace, answer)
            this.timeline.draw()
            const links = await this.data.json<{ arrows: Arrow[] }>('links', { trace, row })
            if (asked !== this.asked) return
            this.timeline.arrows = { trace, arrows: readable(links.arrows, row) }
        } catch (error) {
            if (asked === this.asked) this.details.showMessage('Cannot show this range', (error as Error).message)
        }
        this.timeline.draw()
    }

    private async box(trace: number, track: number, level: number, begin: number, end: number, site: number, merged: boolean): Promise<void> {
        const asked = ++this.asked
        if (this.data.source.embedded) {
            this.details.showMessage(this.app.label(trace, site), merged ? 'Several ranges, each narrower than a pixel. This report keeps the resolution of a 4K screen.' : `About ${time(end - begin)}, from ${time(begin, 5)}.`)
            return
        }
        try {
            const at = await this.data.json<At>('at', { trace, track, level, begin: Math.floor(begin), end: Math.ceil(end) + 1 })
            if (asked !== this.asked) return
            if (merged && at.count > 1) {
                this.timeline.selected = null
                this.details.showMerged(trace, at)
                this.timeline.draw()
            } else if (at.row !== null) this.store.set({ range: [trace, at.row] })
        } catch (error) { this.details.showMessage('Cannot show this range', (error as Error).message) }
    }

    private async goTo(trace: number, row: number): Promise<void> {
        try {
            const range = await this.data.json<Range>('range', { trace, row })
            this.show(trace, range)
        } catch (error) { this.details.showMessage('Cannot show this range', (error as Error).message) }
    }

    // Selects a range and brings it into view.
    private show(trace: number, hit: Pick<Hit, 'row' | 'track' | 'depth' | 'start_ns' | 'duration_ns'>): void {
        const [begin, end] = this.app.window, [first, last] = this.app.paged(trace, hit.start_ns, hit.start_ns + hit.duration_ns)
        const visible = first >= begin && last <= end && hit.duration_ns > (end - begin) / 200
        const window: Span = visible ? this.app.window : this.app.show(first, last, 2)
        this.timeline.stop()
        this.store.set({ view: 'timeline', range: [trace, hit.row], window })
        this.timeline.reveal(trace, hit.track, hit.depth)
    }

    private async neighbour(direction: 1 | -1): Promise<void> {
        const { range } = this.app.state
        if (!range) return
        const [trace, row] = range
        try {
            const hit = await this.data.json<Hit>('next', { trace, row, direction, within: 'all' })
            if (hit.row !== null) this.show(trace, hit)
        } catch { /* there is none */ }
    }

    private theme(): void { document.documentElement.dataset['theme'] = this.app.dark ? 'dark' : 'light' }

    private switchTheme(): void {
        this.store.set({ theme: this.app.dark ? 'light' : 'dark' }, 'replace')
        this.redraw()
    }

    private zoom(factor: number): void {
        const [begin, end] = this.timeline.goal
        const centre = Number.isNaN(this.timeline.cursor) ? (begin + end) / 2 : Math.min(end, Math.max(begin, this.timeline.cursor))
        this.timeline.glide([centre - (centre - begin) * factor, centre + (end - centre) * factor])
    }

    private pan(share: number): void {
        const [begin, end] = this.timeline.goal, by = (end - begin) * share
        this.timeline.glide([begin + by, end + by])
    }

    private fit(): void {
        const span = this.app.state.selection
        this.timeline.stop()
        this.store.set({ window: span && !this.app.state.window ? this.app.show(span[0], span[1], 0.05) : null })
    }

    private mark(): void {
        const { marks } = this.app.state, [begin, end] = this.app.window
        const at = Math.round(Number.isNaN(this.timeline.cursor) ? (begin + end) / 2 : this.timeline.cursor)
        const near = marks.filter(mark => Math.abs(mark - at) > (end - begin) * 0.005)
        this.store.set({ marks: near.length < marks.length ? near : [...marks, at] })
    }

    // Shows the selection in the panel instead of a range or a box.
    private deselect(): void {
        this.details.forget()
        if (this.app.state.range) this.store.set({ range: null })
        else void this.details.showSelection()
    }

    private escape(): void {
        const { state } = this.app
        if ((state.view === 'flame' || state.view === 'changes') && state.focus.length) this.store.set({ focus: state.focus.slice(0, -1) })
        else if (state.range || (this.details.isBox && state.view !== 'changes')) this.deselect()
        else if (state.query) this.store.set({ query: '' })
        else if (state.selection) this.store.set({ selection: null })
    }

    private async reload(): Promise<void> {
        if (this.data.source.embedded) return
        for (const [trace] of this.data.outline.traces.entries()) await this.data.json('reload', { trace }).catch(() => {})
        void this.load()
    }

    private key(event: KeyboardEvent): void {
        const target = event.target as HTMLElement
        if (event.ctrlKey || event.metaKey || event.altKey || target.closest('input, select, textarea')) return
        if (this.help.root.open && event.key !== '?') return
        const timeline = this.app.state.view === 'timeline'
        const actions: Record<string, () => void> = {
            w: () => this.zoom(0.7), s: () => this.zoom(1 / 0.7), a: () => this.pan(-0.2), d: () => this.pan(0.2),
            ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2),
            f: () => this.fit(), m: () => this.mark(), t: () => this.switchTheme(), r: () => void this.reload(), l: () => this.follow(), '?': () => this.help.toggle(),
            ',': () => this.toStep(-1), '.': () => this.toStep(1), '[': () => void this.neighbour(-1), ']': () => void this.neighbour(1), '/': () => { this.search.field.focus(); this.search.field.select() },
            Escape: () => this.escape(), H: () => this.store.set({ hidden: [] }), n: () => this.search.next(1), N: () => this.search.next(-1),
        }
        const digit = views[Number(event.key) - 1]
        const action = digit ? () => this.store.set({ view: digit }) : actions[event.key] ?? actions[event.key.toLowerCase()]
        const moves = ['w', 'a', 's', 'd', 'arrowleft', 'arrowright', 'm', 'f']
        if (!action || (!timeline && moves.includes(event.key.toLowerCase()))) return
        event.preventDefault()
        action()
    }
}

const store = new Store()
void embeddedSource().then(source => {
    const data = new Data(source ?? new Server(store.token))
    const page = new Page(store, data)
    Object.assign(window, { marey: { page, store, data, plural } }) // for tests and the curious
})
