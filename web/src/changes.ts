// changes.ts: what changed between two traces: a differential flame graph, and the paths that differ.
import type { App } from './app'
import { add, el, fill } from './dom'
import { amount, FlameGraph } from './flame'
import { clean, count, functionFirst, label, plain, plural, time } from './format'
import { Grid, type Column } from './grid'
import type { Compared, Flame, FlameNode } from './protocol'
import type { DiffCountsRow, DiffResult, DiffRowsRow, DiffTotalsRow } from './results'
import { changeColour } from './theme'

const metrics: [string, string][] = [['self', 'time'], ['calls', 'calls'], ['bytes', 'bytes allocated'], ['gpu', 'GPU time']]
const kinds: [string, string, (row: DiffRowsRow) => boolean][] = [
    ['', 'all changes', () => true], ['more', 'more', row => row.difference > 0], ['less', 'less', row => row.difference < 0], ['new', 'new', row => row.match === 'new'],
    ['gone', 'gone', row => row.match === 'gone'], ['moved', 'moved or renamed', row => row.match === 'moved' || row.match === 'guess' || row.old_name !== null]]
const matches: Record<string, string> = { same: '', line: 'on another line', moved: 'moved', guess: 'a guess', new: 'new', gone: 'gone' }
const mostCounts = 40

const sign = (value: number): string => (value > 0 ? '+' : value < 0 ? '−' : '')
const ratio = (change: number): string => change >= 9 ? `×${plain(Math.round(change + 1))}` : `${sign(change)}${Math.abs(change * 100).toFixed(Math.abs(change) < 0.1 ? 1 : 0)} %`
// From -1, gone, to 1, new.
const share = (before: number, after: number): number => (after - before) / (Math.max(Math.abs(before), Math.abs(after)) || 1)

export class ChangesView {
    readonly root = el('section.view.changes', { 'aria-label': 'Changes' })
    readonly graph: FlameGraph
    private metric = el<HTMLSelectElement>('select', { 'aria-label': 'What is compared' }, ...metrics.map(([value, title]) => el('option', { value }, title)))
    private kind = el<HTMLSelectElement>('select', { 'aria-label': 'Changes to list' }, ...kinds.map(([value, title]) => el('option', { value }, title)))
    private crumbs = el('span.crumbs')
    private note = el('span.note')
    private legend = el('span.legend', { 'aria-hidden': 'true' })
    private grid = new Grid<DiffRowsRow>('Changes')
    private asked = ''
    private flame: Flame | null = null
    private listed = ''
    private title = el('h2')
    result: DiffResult | null = null
    onSummary: (...parts: HTMLElement[]) => void = () => {}

    constructor(private app: App) {
        this.graph = new FlameGraph(app, 'Differential flame graph')
        this.graph.fillOf = node => this.colour(node)
        this.graph.textOf = (node, name) => `${label(name)}${this.change(node[5])}`
        this.graph.factsOf = (node, flame) => this.facts(node, flame)
        add(this.root, el('div.toolbar', {}, this.metric, this.legend, this.crumbs, this.note), this.graph.root,
            el('div.toolbar', {}, el('label', {}, 'List ', this.kind)), this.grid.root)
        this.metric.addEventListener('change', () => app.store.set({ compared: this.metric.value, focus: [] }))
        this.kind.addEventListener('change', () => app.store.set({ kind: this.kind.value }))
        this.graph.onFocus = focus => app.store.set({ focus })
        this.grid.onOpen = row => this.show(row)
    }

    forget(): void { this.asked = this.listed = '' }

    async update(): Promise<void> {
        const { app } = this, { state, data } = app
        const { traces } = data.outline, has: Record<string, boolean> = { bytes: traces.some(trace => trace.has_memory), gpu: traces.some(trace => trace.has_gpu) }
        for (const option of this.metric.options) option.hidden = has[option.value] === false
        this.metric.value = state.compared
        this.kind.value = state.kind
        const span = state.selection
        const parameters = { value: state.compared, pixels: 3000, ...(span ? { begin: Math.floor(span[0]), end: Math.ceil(span[1]), shift0: data.shift(0), shift1: data.shift(1) } : {}) }
        const key = JSON.stringify(parameters)
        if (key !== this.asked) {
            this.asked = key
            this.root.classList.add('busy')
            this.note.textContent = ''
            try {
                const result = await data.json<DiffResult>('diff', parameters), flame = await data.json<Flame>('difference', parameters)
                if (this.asked !== key) return
                this.result = result
                this.flame = flame
                this.note.textContent = flame.nodes.length ? '' : 'nothing to compare'
            } catch (error) {
                this.asked = ''
                this.note.textContent = (error as Error).message
            }
            this.root.classList.remove('busy')
        }
        if (!this.flame || !this.result) return
        this.graph.show(this.flame, state.focus)
        const listed = `${this.asked} ${state.kind} ${app.dark}`
        if (listed !== this.listed || !this.title.isConnected) { // else what has the focus stays
            this.showLegend()
            this.showRows(this.result)
            this.summary(this.result)
        }
        this.listed = listed
        fill(this.crumbs, ...(state.focus.length ? [el('button.link', { onclick: () => app.store.set({ focus: [] }) }, 'all'), ' › ', el('b', {}, clean(label(state.focus[state.focus.length - 1]!), 80))] : []))
    }

    private get unit(): string { return this.flame?.unit ?? 'ns' }
    private amount(value: number): string { return this.unit === 'calls' ? plain(value) : amount(this.unit, value) }
    private signed(value: number): string { return sign(value) + this.amount(Math.abs(value)) }

    private show(row: DiffRowsRow | DiffCountsRow): void { this.app.store.set({ focus: 'old_path' in row && !row.path.length ? row.old_path : row.path }) }

    // Gone paths have stripes, so that they differ from those with less time without colours, too.
    private colour(node: FlameNode): string | CanvasPattern {
        const [before, after, , , , , match] = node[5]!, { theme } = this.app
        if (match !== 'gone') return changeColour(theme, share(before, after))
        const tile = document.createElement('canvas'), context = tile.getContext('2d')!
        tile.width = tile.height = 8
        context.fillStyle = changeColour(theme, -1)
        context.fillRect(0, 0, 8, 8)
        context.strokeStyle = changeColour(theme, -0.3)
        context.lineWidth = 2
        for (const x of [-4, 4, 12]) { context.moveTo(x - 5, 9); context.lineTo(x + 5, -1) }
        context.stroke()
        return context.createPattern(tile, 'repeat')!
    }

    private change(compared: Compared | undefined): string {
        if (!compared) return ''
        const [before, after, , , , , match] = compared
        if (match === 'new' || match === 'gone') return ` (${match})`
        const change = before > 0 ? after / before - 1 : 0
        return Math.abs(share(before, after)) < 0.05 || !change ? '' : ` ${ratio(change)}`
    }

    private facts(node: FlameNode, flame: Flame): string[] {
        const [before, after, ownBefore, ownAfter, oldCalls, newCalls, match, oldName] = node[5]!
        const facts = [`${this.amount(before)} → ${this.amount(after)} (${this.signed(after - before)}${before > 0 && after > 0 ? `, ${ratio(after / before - 1)}` : ''})`,
            `own ${this.amount(ownBefore)} → ${this.amount(ownAfter)}`]
        if (flame.unit !== 'calls' && (oldCalls || newCalls)) facts.push(oldCalls === newCalls ? plural(newCalls, 'call') : `${plain(oldCalls)} → ${plain(newCalls)} calls`)
        if (matches[match]) facts.push(match === 'guess' ? 'matched by a guess' : matches[match]!)
        if (oldName >= 0) facts.push(`was ${clean(flame.names[oldName]!, 200)}`)
        return facts
    }

    private showLegend(): void {
        const { theme } = this.app
        const box = (change: number) => {
            const chip = el('span.chip')
            chip.style.background = changeColour(theme, change)
            return chip
        }
        const gone = box(-1)
        gone.style.background = `repeating-linear-gradient(135deg, ${changeColour(theme, -1)} 0 3px, ${changeColour(theme, -0.3)} 3px 5px)`
        const word = (text: string) => el('span', {}, text)
        fill(this.legend, gone, word('gone'), box(-0.6), box(-0.2), word('less'), box(0), word('same'), box(0.2), box(0.6), word('more'), box(1), word('new'))
    }

    private showRows(result: DiffResult): void {
        const { diff } = result, several = diff.old_runs + diff.new_runs > 2
        const most = Math.max(1e-9, ...result.diff_rows.map(row => Math.abs(row.difference)))
        const number = (key: string, title: string, value: (row: DiffRowsRow) => number | null, text: (row: DiffRowsRow) => string, width = '84px'): Column<DiffRowsRow> => ({ key, title, width, number: true, value, text })
        const columns: Column<DiffRowsRow>[] = [
            { key: 'name', title: 'Name', width: 'minmax(150px, 1fr)', value: row => row.name, text: row => clean(functionFirst(row.name)) + (row.old_name ? ` (was ${clean(functionFirst(row.old_name))})` : ''), colour: row => changeColour(this.app.theme, share(row.old, row.new)) },
            { ...number('difference', 'Change', row => row.difference, row => this.signed(row.difference), '92px'), share: row => Math.abs(row.difference) / most },
            number('ratio', '%', row => row.change, row => (row.change === null || row.match === 'new' || row.match === 'gone' ? '' : ratio(row.change)), '70px'),
            ...(several ? [number('low', '95 % interval', row => row.change_low, row => (row.change_low === null ? '' : `${ratio(row.change_low)} … ${ratio(row.change_high!)}`), '150px'),
                { key: 'verdict', title: 'Verdict', width: '88px', value: (row: DiffRowsRow) => row.verdict, text: (row: DiffRowsRow) => row.verdict ?? '' }] : []),
            number('old', 'Old', row => row.old, row => (row.match === 'new' ? '' : this.amount(row.old))),
            number('new', 'New', row => row.new, row => (row.match === 'gone' ? '' : this.amount(row.new))),
            number('calls', 'Calls', row => row.new_calls, row => (row.old_calls === row.new_calls ? plain(row.new_calls) : `${plain(row.old_calls)} → ${plain(row.new_calls)}`), '116px'),
            { key: 'match', title: 'Found', width: '104px', value: row => row.match, text: row => matches[row.match] ?? row.match },
        ]
        const wanted = kinds.find(([kind]) => kind === this.app.state.kind)![2]
        this.grid.show(columns, result.diff_rows.filter(row => row.difference !== 0 && wanted(row)), 'difference')
    }

    // The panel on the right.
    private summary(result: DiffResult): void {
        const { diff } = result, facts = el('dl.facts'), change = diff.old > 0 ? diff.new / diff.old - 1 : null
        const traces = this.app.data.outline.traces.map(trace => clean(trace.file.slice(trace.file.lastIndexOf('/') + 1), 200))
        const fact = (key: string, value: string) => { if (value) add(facts, el('dt', {}, key), el('dd', {}, value)) }
        const runs = (number: number) => (number > 1 ? `, ${plural(number, 'run')}` : '')
        fact('Old', traces[0] + runs(diff.old_runs))
        fact('New', traces[1] + runs(diff.new_runs))
        fact('Total', `${this.amount(diff.old)} → ${this.amount(diff.new)}`)
        fact('Change', `${this.signed(diff.difference)}${change === null ? '' : ` (${ratio(change)})`}`)
        fact('Verdict', diff.verdict ? `${diff.verdict}, ${ratio(diff.change_low!)} to ${ratio(diff.change_high!)} with 95 %` : '')
        fact('Recorded', `${time(diff.old_window_ns)} → ${time(diff.new_window_ns)}`)
        fact('Step, median', result.diff_steps.length === 2 ? result.diff_steps.map(step => time(step.median_ns)).join(' → ') : '')
        const counts = result.diff_counts.filter(each => each.causes > 0 || each.match === 'guess')
        this.title.textContent = diff.per_step ? 'What changed, per step' : 'What changed'
        this.onSummary(this.title, facts,
            el('p.note', {}, diff.old_runs + diff.new_runs > 2 ? '' : 'One run each: times may differ by chance, counts do not. Boxes are as wide as the larger of both sides.'),
            ...result.diff_warnings.map(warning => el('p.warn', {}, clean(warning.text, 400))),
            el('h3', {}, counts.length ? 'Counts that differ' : 'No counts differ'),
            el('ul.refs', {}, ...counts.slice(0, mostCounts).map(each => this.count(each))),
            el('p.note', {}, counts.length > mostCounts ? `… and ${count(counts.length - mostCounts)} more: marey diff --limit 0` : ''))
    }

    private count(each: DiffCountsRow): HTMLElement {
        const chip = el('span.chip')
        chip.style.background = changeColour(this.app.theme, share(each.old, each.new))
        const text = (row: DiffTotalsRow) => `${plain(row.old)} → ${plain(row.new)}`
        return el('li', {}, el('button', { title: clean(each.name, 300), onclick: () => this.show(each) }, chip, el('span.text', {}, clean(label(each.name), 120)),
            el('span.note', {}, each.kind === 'calls' ? '' : each.kind), el('span.value', {}, each.match === 'new' || each.match === 'gone' ? `${plain(Math.max(each.old, each.new))} ${each.match}` : text(each))))
    }
}
