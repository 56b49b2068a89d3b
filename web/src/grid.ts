// grid.ts: a table that draws only its visible rows.
import { add, el, fill } from './dom'

export interface Column<Row> {
    key: string
    title: string
    help?: string
    number?: boolean              // right-aligned, with digits of one width
    width: string                 // of CSS grid
    text: (row: Row) => string
    short?: (row: Row) => string  // shown instead of the text, which remains the tip
    value: (row: Row) => number | string | null
    share?: (row: Row) => number  // 0 to 1: a bar behind the text
    colour?: (row: Row) => string // a square before the text
}

const rowHeight = 26

export class Grid<Row> {
    readonly root = el('div.grid', { role: 'table' })
    private head = el('div.grid-head', { role: 'rowgroup' })
    private body = el('div.grid-body', { tabindex: '0', role: 'rowgroup' })
    private inner = el('div.grid-inner', { role: 'presentation' })
    private columns: Column<Row>[] = []
    private rows: Row[] = []
    private current = -1
    private sort = ''
    private ascending = false
    // A column's header was clicked. Sorts the rows itself unless it is replaced.
    onSort: (key: string) => void = key => {
        const column = this.columns.find(c => c.key === key), ascending = key === this.sort ? !this.ascending : !column?.number
        this.show(this.columns, sorted(this.rows, column, ascending), key, ascending)
    }
    onOpen: (row: Row) => void = () => {}

    constructor(label: string) {
        this.root.setAttribute('aria-label', label)
        this.body.setAttribute('aria-label', `Rows: ${label}`)
        add(this.body, this.inner)
        add(this.root, this.head, this.body)
        this.body.addEventListener('scroll', () => { this.head.scrollLeft = this.body.scrollLeft; this.paint() })
        this.body.addEventListener('keydown', event => this.key(event))
        new ResizeObserver(() => this.paint()).observe(this.body)
    }

    // Shows rows; `sort` is the key of the column that they are sorted by.
    show(columns: Column<Row>[], rows: Row[], sort = '', ascending = false): void {
        this.columns = columns
        this.rows = rows
        this.sort = sort
        this.ascending = ascending
        this.current = -1
        this.root.style.setProperty('--columns', columns.map(c => c.width).join(' '))
        this.root.setAttribute('aria-rowcount', String(rows.length + 1))
        fill(this.head, el('div.grid-row', { role: 'row' }, ...columns.map(column => {
            const sorted = column.key === sort
            return el(`div.cell${column.number ? '.number' : ''}`, { role: 'columnheader', 'aria-sort': sorted ? (ascending ? 'ascending' : 'descending') : 'none' },
                el('button', { onclick: () => this.onSort(column.key), title: column.help }, column.title, el('span.arrow', { 'aria-hidden': 'true' }, sorted ? (ascending ? ' ↑' : ' ↓') : '')))
        })))
        this.inner.style.height = `${rows.length * rowHeight}px`
        this.inner.dataset['from'] = ''
        this.paint()
    }

    private paint(): void {
        const from = Math.max(0, Math.floor(this.body.scrollTop / rowHeight) - 4)
        const to = Math.min(this.rows.length, Math.ceil((this.body.scrollTop + this.body.clientHeight) / rowHeight) + 4)
        const key = `${from} ${to} ${this.current}`
        if (this.inner.dataset['from'] === key) return
        this.inner.dataset['from'] = key
        const shown: HTMLElement[] = []
        for (let i = from; i < to; i++) shown.push(this.row(this.rows[i]!, i))
        fill(this.inner, ...shown)
    }

    private row(row: Row, index: number): HTMLElement {
        const element = el(`div.grid-row${index === this.current ? '.current' : ''}`, { role: 'row', 'aria-rowindex': index + 2 })
        element.style.top = `${index * rowHeight}px`
        element.addEventListener('click', () => { this.current = index; this.onOpen(row); this.paint() })
        for (const column of this.columns) {
            const text = column.text(row)
            const cell = el(`div.cell${column.number ? '.number' : ''}`, { role: 'cell', title: column.number ? undefined : text })
            if (column.share) {
                const bar = el('span.bar')
                bar.style.width = `${Math.max(0, Math.min(1, column.share(row))) * 100}%`
                add(cell, bar)
            }
            if (column.colour) {
                const chip = el('span.chip')
                chip.style.background = column.colour(row)
                add(cell, chip)
            }
            add(cell, el('span.text', {}, column.short?.(row) ?? text))
            add(element, cell)
        }
        return element
    }

    private key(event: KeyboardEvent): void {
        const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key]
        if (by !== undefined) {
            event.preventDefault()
            event.stopPropagation()
            this.current = Math.max(0, Math.min(this.rows.length - 1, this.current + by))
            const top = this.current * rowHeight
            if (top < this.body.scrollTop) this.body.scrollTop = top
            if (top + rowHeight > this.body.scrollTop + this.body.clientHeight) this.body.scrollTop = top + rowHeight - this.body.clientHeight
            this.paint()
        } else if (event.key === 'Enter' && this.rows[this.current]) this.onOpen(this.rows[this.current]!)
    }
}

// Sorts rows by a column's values; rows without a value come last.
export function sorted<Row>(rows: Row[], column: Column<Row> | undefined, ascending: boolean): Row[] {
    if (!column) return rows
    const sign = ascending ? 1 : -1
    return [...rows].sort((a, b) => {
        const x = column.value(a), y = column.value(b)
        if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1
        return (typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y))) * sign
    })
}
