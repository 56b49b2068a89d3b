// table.ts: the columns of `marey report` for the selection.
import type { App } from './app'
import { add, el } from './dom'
import { bytes, clean, count, functionFirst, percent, plural, time } from './format'
import { Grid, sorted, type Column } from './grid'
import type { Cell, Table } from './protocol'
import type { Parameters } from './source'
import { colourOf } from './theme'

type Row = Record<string, Cell>

const manyRanges = 5_000_000

const groupings: [string, string][] = [['name', 'name'], ['function', 'function'], ['file', 'file'], ['module', 'module'], ['package', 'package'],
    ['thread', 'name and thread'], ['shape', 'name and input shapes']]

const number = (row: Row, key: string): number | null => (typeof row[key] === 'number' ? row[key] as number : null)

function timeColumn(key: string, title: string, field: string, help: string): Column<Row> {
    return { key, title, help, number: true, width: '78px', value: row => number(row, field), text: row => { const v = number(row, field); return v === null ? '' : time(v) } }
}

// The folder that all files with an absolute path are in, with a slash at its end.
function commonFolder(names: string[]): string {
    const paths = names.filter(name => name.startsWith('/'))
    let folder = paths[0] ?? ''
    for (const path of paths) while (!path.startsWith(folder)) folder = folder.slice(0, folder.lastIndexOf('/', folder.length - 2) + 1)
    return folder.slice(0, folder.lastIndexOf('/') + 1)
}

export class TableView {
    readonly root = el('section.view', { 'aria-label': 'Table' })
    private grid = new Grid<Row>('Names and their times')
    private by = el<HTMLSelectElement>('select', { 'aria-label': 'Group rows by' }, ...groupings.map(([value, title]) => el('option', { value }, `by ${title}`)))
    private filter = el<HTMLInputElement>('input', { type: 'search', placeholder: 'Filter rows', 'aria-label': 'Filter rows', spellcheck: 'false' })
    private note = el('span.note')
    private table: Table | null = null
    private asked = ''
    private abort = new AbortController()
    onName: (name: string) => void = () => {}

    constructor(private app: App, chooser: HTMLElement) {
        add(this.root, el('div.toolbar', {}, this.by, this.filter, chooser, this.note), this.grid.root)
        this.by.addEventListener('change', () => app.store.set({ by: this.by.value }))
        this.filter.addEventListener('input', () => app.store.set({ filter: this.filter.value }, 'replace'))
        this.grid.onSort = key => app.store.set({ sort: key, ascending: app.state.sort === key ? !app.state.ascending : key === 'name' }, 'replace')
        this.grid.onOpen = row => this.onName(String(row['name']))
    }

    async update(): Promise<void> {
        const { state } = this.app
        this.by.value = state.by
        if (document.activeElement !== this.filter) this.filter.value = state.filter
        const by = { thread: { thread: true }, shape: { shape: true } }[state.by] ?? (state.by === 'name' ? {} : { by: state.by })
        const parameters = { ...this.app.selection(), ...by }
        const key = JSON.stringify(parameters)
        if (key !== this.asked) {
            this.asked = key
            this.abort.abort()
            this.abort = new AbortController()
            this.root.classList.add('busy')
            try {
                await this.loadQuick(parameters, this.abort.signal)
                this.table = await this.app.data.json<Table>('table', parameters, this.abort.signal)
            } catch (error) {
                if ((error as Error).name === 'AbortError') return
                this.asked = ''
                this.table = null
                this.note.textContent = (error as Error).message
            }
            this.root.classList.remove('busy', 'partial')
        }
        if (this.table) this.show(this.table)
    }

    // Of many ranges, shows the columns that take one pass until the others are there.
    private async loadQuick(parameters: Parameters, signal: AbortSignal): Promise<void> {
        const { source, outline } = this.app.data
        if (source.embedded || outline.traces[this.app.state.trace]!.range_count < manyRanges) return
        this.table = await this.app.data.json<Table>('table', { ...parameters, quick: true }, signal)
        this.root.classList.add('partial')
        this.show(this.table)
        this.note.textContent += ' · counting …'
    }

    forget(): void { this.asked = '' }

    private columns(table: Table): Column<Row>[] {
        const has = (key: string) => table.rows.some(row => row[key] !== undefined && row[key] !== null && row[key] !== 0 && row[key] !== '')
        const all = table.rows.reduce((sum, row) => sum + (number(row, 'self_cpu_time_total_ns') ?? 0), 0) || 1
        const memory = (key: string, title: string, field: string): Column<Row> => ({ key, title, number: true, width: '88px', value: row => number(row, field), text: row => bytes(number(row, field) ?? 0) })
        const text = (key: string, title: string, width: string, shown = (value: string) => value): Column<Row> => ({ key, title, width, value: row => String(row[key] ?? ''), text: row => clean(shown(String(row[key] ?? ''))) })
        const folder = this.app.state.by === 'file' ? commonFolder(table.rows.map(row => String(row['name']))) : ''
        const columns: (Column<Row> | false)[] = [
            { key: 'name', title: 'Name', width: 'minmax(230px, 1fr)', value: row => functionFirst(String(row['name'])), text: row => clean(functionFirst(String(row['name']))), short: row => clean(functionFirst(String(row['name'])).replace(folder, '')), colour: row => this.app.theme.css[colourOf(String(row['name']))]! },
            has('thread') && text('thread', 'Thread', '130px'),
            has('input_shapes') && text('input_shapes', 'Input shapes', '220px', value => (value === '[]' ? '' : value)),
            { key: 'count', title: 'Calls', number: true, width: '74px', value: row => number(row, 'count'), text: row => count(number(row, 'count') ?? 0) },
            { ...timeColumn('self', 'Self', 'self_cpu_time_total_ns', 'Time in these ranges, without the ranges inside them'), width: '84px' },
            { key: 'share', title: 'Self %', number: true, width: '68px', help: 'Self time as a share of all self time', value: row => number(row, 'self_cpu_time_total_ns'),
                text: row => percent((number(row, 'self_cpu_time_total_ns') ?? 0) / all), share: row => (number(row, 'self_cpu_time_total_ns') ?? 0) / all },
            timeColumn('covered', 'Total', 'covered_ns', 'Time in these ranges; recursive calls count once'),
            timeColumn('cpu_time', 'Per call', 'cpu_time_ns', 'Average time per range'),
            timeColumn('min', 'Min', 'min_ns', 'Shortest range'), timeColumn('p50', 'Median', 'p50_ns', 'Median time'),
            timeColumn('p99', 'p99', 'p99_ns', '99th percentile of the time'), timeColumn('max', 'Max', 'max_ns', 'Longest range'),
            has('device_time_total_ns') && timeColumn('device', 'GPU total', 'device_time_total_ns', 'Device time of these ranges, with the ranges inside'),
            has('self_device_time_total_ns') && timeColumn('self_device', 'GPU self', 'self_device_time_total_ns', 'Device time of these ranges'),
            has('cpu_memory_usage_bytes') && memory('cpu_memory_usage', 'Memory', 'cpu_memory_usage_bytes'),
            has('device_memory_usage_bytes') && memory('device_memory_usage', 'GPU memory', 'device_memory_usage_bytes'),
        ]
        return columns.filter((column): column is Column<Row> => column !== false)
    }

    private show(table: Table): void {
        const { state } = this.app, needle = state.filter.toLowerCase()
        const columns = this.columns(table)
        const rows = needle ? table.rows.filter(row => String(row['name']).toLowerCase().includes(needle)) : table.rows
        this.note.textContent = `${plural(rows.length, 'row')} · ${plural(table.range_count, 'range')} in ${time(table.window_ns, 4)}`
        const column = columns.find(c => c.key === state.sort)
        this.grid.show(columns, sorted(rows, column, state.ascending), state.sort, state.ascending)
    }
}
