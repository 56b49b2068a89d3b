// details.ts: the panel on the right: the selected range or box, or the selection.
import type { App } from './app'
import { add, el, fill } from './dom'
import { bytes, clean, count, label, percent, plural, time, whole } from './format'
import type { At, Range, RangeRef, SourceFile, SourceLine, Table, Value } from './protocol'
import type { ExplainResult, FindingEvidenceRow, FindingsRow } from './results'
import type { Parameters } from './source'
import { colourOf } from './theme'

const notes: Record<string, string> = { began_before: 'began before the recording', unfinished: 'had not ended when the recording stopped', remote: 'from another process',
    end_inferred: 'its end is estimated', part: 'part of a suspended call', further_part: 'resumed', sampled: 'made of samples: times are estimates' }

export class Details {
    readonly root = el('aside.details', { 'aria-label': 'Details', tabindex: '0' })
    private asked = ''
    isBox = false // shows a box that has no range of its own
    onRange: (trace: number, row: number) => void = () => {}
    onName: (name: string) => void = () => {}
    onFinding: (trace: number, finding: FindingsRow, evidence: FindingEvidenceRow[]) => void = () => {}

    constructor(private app: App) {}

    forget(): void { this.asked = '' }

    // Shows a range.
    showRange(trace: number, range: Range): void {
        const { app } = this
        this.asked = ''
        this.isBox = false
        const all = app.data.outline.traces[trace]!
        const track = all.tracks[range.track]
        fill(this.root, this.title(trace, range.site, range.whole_name),
            this.facts([
                ['Duration', time(range.duration_ns, 4)], ['Self', `${time(range.self_ns, 4)} (${percent(range.duration_ns ? range.self_ns / range.duration_ns : 0)})`],
                ['Start', time(range.start_ns, 6)], ['Track', clean(track?.name ?? '')], ['Kind', [range.scope, range.category].filter(Boolean).join(' · ').replace(/_/g, ' ')],
                ['GPU time', range.device_time_ns ? time(range.device_time_ns, 4) : ''],
                ['Ranges inside', range.children ? count(range.children) : ''],
                ['Where', range.file ? `${clean(range.file, 300)}${range.line ? `:${range.line}` : ''}` : ''],
                ['Notes', range.flags.map(flag => notes[flag] ?? flag.replace(/_/g, ' ')).join(', ')],
            ]),
            el('div.actions', {}, el('button', { onclick: () => this.onName(range.whole_name) }, 'Callers and callees'),
                el('button', { onclick: () => app.store.set({ selection: app.paged(trace, Math.max(0, range.start_ns), range.start_ns + range.duration_ns) }) }, 'Select its time')))
        for (const [role, title] of [['keyword', 'Values'], ['input', 'Inputs'], ['output', 'Outputs'], ['site', 'Site']] as const)
            this.values(title, range.values.filter(value => value.role === role))
        this.refs('Links', trace, range.links.map(link => ({ ...link, note: `${link.direction === 'to' ? '→' : '←'} ${link.name_of_link || link.kind.replace('_', ' to ')}` })))
        this.refs('Parents', trace, range.parents)
        this.stack(range.stack)
        if (range.source) void this.source(trace, range)
    }

    // Shows a box that stands for several ranges.
    showMerged(trace: number, at: At): void {
        this.asked = ''
        this.isBox = true
        fill(this.root, el('h2', {}, `${plural(at.count, 'range')} in one box`),
            el('p.note', {}, at.exact ? 'Zoom in to see them one by one.' : 'The first million ranges. Zoom in to see more.'),
            this.facts([['Longest', at.longest ? time(at.longest.duration_ns, 4) : '']]))
        if (at.longest) {
            const { row } = at.longest
            add(this.root, el('div.actions', {}, el('button', { onclick: () => this.onRange(trace, row) }, 'Show the longest')))
        }
        this.names(at.names.map(name => ({ name: name.name, value: name.total_ns, note: count(name.count) })), 'Names')
    }

    showMessage(title: string, text: string): void { this.show(el('h2', {}, title), el('p.note', {}, text)) }

    show(...parts: HTMLElement[]): void {
        this.asked = ''
        this.isBox = true
        fill(this.root, ...parts)
    }

    // Shows what `marey explain` says about a cause.
    showFinding(trace: number, finding: FindingsRow, evidence: FindingEvidenceRow[]): void {
        const numbers = (each: FindingEvidenceRow) => [each.count === null ? '' : count(each.count), each.time_ns === null ? '' : time(each.time_ns), each.bytes === null ? '' : bytes(each.bytes)].filter(Boolean).join(', ')
        const { name } = finding
        this.show(el('h2', {}, clean(finding.claim, 1000)),
            this.facts([['Gain, at most', this.gain(finding)], ['Certainty', finding.certainty], ['Rule', finding.id]]),
            el('h3', {}, 'Evidence'), el('ul.plain', {}, ...evidence.map(each => el('li', {}, clean(each.text, 500), el('span.note.wrap', {}, ` ${numbers(each)}`)))),
            el('h3', {}, 'What to do'), el('p.wrap', {}, clean(finding.advice, 1000)), el('h3', {}, 'See'), el('pre.source', { tabindex: '0', 'aria-label': 'Command' }, ` ${clean(finding.command.replace('FILE', this.app.data.outline.traces[trace]!.file), 1000)}`))
        if (name) add(this.root, el('div.actions', {}, el('button', { onclick: () => this.onName(name) }, 'Callers and callees')))
    }

    private gain(finding: FindingsRow): string {
        return finding.gain_bytes !== null ? bytes(finding.gain_bytes) : finding.gain_ns !== null ? `${time(finding.gain_ns)} (${percent(finding.gain_share ?? 0)})` : ''
    }

    // Lists findings; a click goes to the place of one.
    private async findings(trace: number, place: HTMLElement, parameters: Parameters): Promise<void> {
        try {
            const { findings, finding_evidence } = await this.app.data.json<ExplainResult>('explain', parameters)
            const { traces } = this.app.data.outline, { file } = traces[trace]!
            if (findings.length) fill(place, el('h3', {}, traces.length > 1 ? `Findings in ${clean(file.slice(file.lastIndexOf('/') + 1), 80)}` : 'Findings'), el('ul.refs.findings', {}, ...findings.slice(0, 8).map(finding => el('li', {},
                el(`button${finding.is_fault ? '.fault' : ''}`, { onclick: () => this.onFinding(trace, finding, finding_evidence.filter(each => each.finding === finding.finding)) },
                    el('span.text', {}, clean(finding.claim, 300)), el('span.value', {}, this.gain(finding).replace(/ \(.*/, '')))))))
        } catch { /* a report has no findings of a selection */ }
    }

    // Shows what the selection, or the whole trace, consists of.
    async showSelection(): Promise<void> {
        const { app } = this, trace = app.data.outline.traces[app.state.trace]
        if (!trace || trace.state !== 'ready') return
        const parameters = app.selection()
        const key = JSON.stringify(parameters)
        if (key === this.asked) return
        this.asked = key
        this.isBox = false
        const span = app.state.selection
        const show = (ranges: string) => fill(this.root, el('h2', {}, span ? 'Selection' : 'Whole trace'),
            this.facts([['Snapshot', clean(trace.snapshot?.reason ?? '', 500)], ['Time', span ? `${time(span[0], 5)} to ${time(span[1], 5)}` : ''], ['Duration', time(span ? span[1] - span[0] : trace.window?.duration_ns ?? 0, 4)],
                ['Ranges', ranges], ['Tracks', count(trace.tracks.filter(t => t.rows && t.kind !== 'task' && t.kind !== 'samples').length)],
                ['Program', clean((trace.processes[0]?.command_line || trace.processes[0]?.name || '').replace(/^\S*\//, ''), 300)], ['File', clean(trace.file.slice(trace.file.lastIndexOf('/') + 1), 300)]]))
        show(span ? '…' : count(trace.range_count))
        let table: Table | null = null, failure = ''
        try {
            table = await app.data.json<Table>('table', { ...parameters, limit: 15, quick: true })
        } catch (error) { failure = (error as Error).message }
        if (this.asked !== key) return
        show(count(table?.range_count ?? trace.range_count))
        if (failure) add(this.root, el('p.warn', {}, failure))
        app.data.outline.traces.forEach((_, each) => {
            const found = el('div')
            add(this.root, found)
            void this.findings(each, found, app.selection(each))
        })
        if (table) {
            const rows = table.rows.map(row => ({ name: String(row['name']), value: Number(row['self_cpu_time_total_ns'] ?? 0), note: count(Number(row['count'] ?? 0)) }))
            this.names(rows.filter(row => row.value > 0).slice(0, 15), 'Most self time')
        }
        if (app.data.source.note) add(this.root, el('h3', {}, 'About this report'), el('p.note.wrap', {}, app.data.source.note, ' Use marey view to zoom in further.'))
        for (const problem of trace.problems.slice(0, 10)) add(this.root, el('p.warn', {}, clean(problem, 500)))
        if (trace.window && !trace.window.finished && !trace.snapshot)
            add(this.root, el('p.note', {}, trace.live ? 'Press R to read the file again, L to follow the program.' : 'The recording had not finished. Press R to read the file again.'))
    }

    private title(trace: number, site: number, name: string): HTMLElement {
        const chip = el('span.chip'), colour = this.app.colour(trace, site)
        if (colour >= 0) chip.style.background = this.app.theme.css[colour]!
        return el('h2', {}, chip, clean(name, 4000))
    }

    private facts(rows: [string, string][]): HTMLElement {
        const list = el('dl.facts')
        for (const [key, value] of rows) if (value) add(list, el('dt', {}, key), el('dd', {}, ...value.split(/(?<=\/)/).flatMap(part => [part, el('wbr')])))
        return list
    }

    private values(title: string, values: Value[]): void {
        if (!values.length) return
        const list = el('dl.facts.values')
        values.slice(0, 200).forEach((value, i) => add(list, el('dt', {}, clean(value.key, 100) || String(i)), el('dd', {}, clean(value.value, 2000))))
        add(this.root, el('h3', {}, title), list)
    }

    private refs(title: string, trace: number, refs: (RangeRef & { note?: string })[]): void {
        if (!refs.length) return
        add(this.root, el('h3', {}, title), el('ul.refs', {}, ...refs.slice(0, 100).map(ref => {
            const chip = el('span.chip'), colour = this.app.colour(trace, ref.site)
            if (colour >= 0) chip.style.background = this.app.theme.css[colour]!
            return el('li', {}, el('button', { onclick: () => this.onRange(trace, ref.row), title: clean(ref.name, 300) }, chip,
                el('span.text', {}, clean(whole(ref.name, this.app.name(trace, ref.site)?.raw), 120)), ref.note ? el('span.note', {}, ref.note) : null, el('span.value', {}, time(ref.duration_ns))))
        })))
    }

    private names(rows: { name: string; value: number; note: string }[], title: string): void {
        if (!rows.length) return
        const most = Math.max(...rows.map(row => row.value), 1)
        add(this.root, el('h3', {}, title), el('ul.refs', {}, ...rows.map(row => {
            const bar = el('span.bar')
            bar.style.width = `${row.value / most * 100}%`
            bar.style.background = this.app.theme.css[colourOf(row.name)]!
            return el('li', {}, el('button', { onclick: () => this.onName(row.name), title: clean(row.name, 300) }, bar,
                el('span.text', {}, clean(label(row.name), 120)), el('span.note', {}, `${row.note}×`), el('span.value', {}, time(row.value))))
        })))
    }

    private stack(frames: string[]): void {
        if (!frames.length) return
        add(this.root, el('h3', {}, 'Call stack'), el('ol.stack', {}, ...frames.slice(0, 200).map(frame => el('li', {}, clean(frame, 500)))))
    }

    // The time of a line beside it, and behind it: the hottest line has the strongest colour.
    private heat(line: HTMLElement, its: SourceLine | undefined, most: number): void {
        const shown = its ? time(its.self_ns || its.total_ns) : ''
        add(line, el('span.time', its ? { title: `self ${time(its.self_ns)}, with calls ${time(its.total_ns)}, waiting ${time(its.waiting_ns)}` } : {}, shown))
        if (its?.self_ns) line.style.background = `color-mix(in srgb, var(--warn) ${Math.round(6 + 34 * its.self_ns / most)}%, transparent)`
    }

    private async source(trace: number, range: Range): Promise<void> {
        const place = el('div')
        add(this.root, place)
        try {
            const file = await this.app.data.json<SourceFile>('source', { trace, site: range.site })
            const heat = new Map((file.lines ?? []).map(line => [line.line, line]))
            const most = Math.max(1, ...[...heat.values()].map(line => line.self_ns))
            const lines = file.text.split('\n'), from = Math.max(0, file.line - file.first - 4), to = Math.min(lines.length, from + (heat.size ? 400 : 22))
            const code = el('pre.source', { tabindex: '0', 'aria-label': 'Source' })
            for (let i = from; i < to; i++) {
                const here = i + file.first === file.line
                const line = el(`span.line${here ? '.here' : ''}`, {}, el('span.no', {}, String(i + file.first)))
                if (heat.size) this.heat(line, heat.get(i + file.first), most)
                add(line, clean(lines[i]!.replace(/\t/g, '    '), 300), '\n')
                add(code, line)
            }
            fill(place, el('h3', {}, 'Source'), code)
        } catch { /* the file cannot be shown */ }
    }
}
