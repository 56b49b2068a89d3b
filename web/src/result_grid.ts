// result_grid.ts: grids of the tables of a result, with the columns that the command shows.
import { bytes, clean, count, percent, plain, time } from './format'
import type { Column } from './grid'

export interface ResultColumn {
    key: string
    title: string
    help: string
    unit: 'ns' | 'time' | 'bytes' | 'count' | 'share' | 'change' | 'ratio' | 'flops' | 'none'
    is_number: boolean
    is_name: boolean // the column that takes the space of the others
}
type Value = number | string | boolean | number[] | string[] | null

const numbers: Record<ResultColumn['unit'], (value: number) => string> = {
    ns: time, time, bytes, count, share: percent, change: value => `${value < 0 ? '−' : '+'}${percent(Math.abs(value))}`,
    ratio: value => value.toFixed(1), flops: plain, none: String,
}

// "54×2" for 54, 2, 1.
function sizes(of: number[]): string {
    let used = of.length
    while (used > 1 && of[used - 1] === 1) used--
    return of.slice(0, used).join('×')
}

function shown(value: Value, unit: ResultColumn['unit']): string {
    if (typeof value === 'number') return numbers[unit](value)
    if (Array.isArray(value)) return value.every(each => typeof each === 'number') ? sizes(value as number[]) : clean(value.join(' > '))
    return typeof value === 'string' ? clean(value) : value ? 'yes' : ''
}

// The columns that have a value in some row, names and texts first. `own`: what is different in this grid, by key;
// null: not shown.
export function resultColumns<Row extends object>(columns: ResultColumn[], rows: Row[], own: Record<string, Partial<Column<Row>> | null> = {}): Column<Row>[] {
    const value = (row: Row, key: string): Value => (row as Record<string, Value>)[key] ?? null
    const used = columns.filter(column => own[column.key] !== null && rows.some(row => value(row, column.key) !== null))
    return [...used.filter(column => column.is_name), ...used.filter(column => !column.is_name)].map(column => ({
        key: column.key, title: column.title.charAt(0).toUpperCase() + column.title.slice(1), help: column.help, number: column.is_number,
        width: column.is_name ? 'minmax(240px, 1fr)' : column.is_number ? '92px' : '140px',
        text: row => shown(value(row, column.key), column.unit),
        value: row => { const of = value(row, column.key); return typeof of === 'number' ? of : of === null ? null : shown(of, column.unit) },
        ...own[column.key],
    }))
}
