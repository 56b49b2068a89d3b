// format.ts: numbers, times, sizes and names as text.

const timeUnits: [number, string][] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']]
const sizeUnits: [number, string][] = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']]

function withUnit(value: number, units: [number, string][], digits: number): string {
    const size = Math.abs(value)
    if (size === 0) return `0 ${units[units.length - 1]![1]}`
    const [factor, unit] = units.find(([f]) => size >= f * 0.9995) ?? units[units.length - 1]!
    const scaled = value / factor
    const whole = Math.floor(Math.log10(Math.abs(scaled))) + 1
    const decimals = factor === 1 && Number.isInteger(value) ? 0 : Math.max(0, digits - Math.max(1, whole))
    return `${group(scaled.toFixed(decimals))} ${unit}`
}

function group(digits: string): string {
    return digits.replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ',')
}

// "12.3 ms", with at least `digits` significant digits.
export function time(ns: number, digits = 3): string { return withUnit(ns, timeUnits, digits) }

export function bytes(value: number): string { return withUnit(value, sizeUnits, 3) }

export function count(value: number): string { return group(String(Math.round(value))) }

export function plural(value: number, noun: string): string { return `${count(value)} ${noun}${value === 1 ? '' : 's'}` }

export function percent(share: number): string { return `${(share * 100).toFixed(1)} %` }

// A value without a unit: "1,234", "0.0125".
export function plain(value: number): string {
    if (Number.isInteger(value)) return count(value)
    return Math.abs(value) >= 1000 || Math.abs(value) < 1e-4 ? value.toPrecision(4) : group(String(+value.toPrecision(5)))
}

// The step of a ruler: 1, 2 or 5 times a power of ten, at least `least` ns.
export function rulerStep(least: number): number {
    const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-3)))
    return [1, 2, 5, 10].map(f => f * power).find(step => step >= least) ?? power * 10
}

// A time on a ruler that ends at `end`, with marks `step` ns apart: all marks have the same unit and number of decimals.
export function rulerTime(ns: number, step: number, end: number): string {
    const [factor, unit] = timeUnits.find(([f]) => end >= f) ?? timeUnits[3]!
    const decimals = Math.max(0, Math.round(Math.log10(factor)) - Math.floor(Math.log10(step) + 1e-9))
    return ns === 0 ? '0' : `${group((ns / factor).toFixed(decimals))} ${unit}`
}

// Text of a trace for display: one line, without control characters or characters that change the writing direction.
// A trace is a stranger's file.
export function clean(text: string, limit = 400): string {
    const short = text.length > limit ? text.slice(0, limit) + '…' : text
    return short.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g,
        c => (c === '\n' || c === '\t' ? ' ' : '\ufffd'))
}

// "load" of "shop/cart.py(12): load"; "cart.py" of "shop/cart.py(1): <module>". Others keep their name.
export function label(name: string): string {
    const python = /^(.*)\((\d+)\): (.+)$/.exec(name)
    if (!python) return name
    return python[3] === '<module>' ? python[1]!.slice(python[1]!.lastIndexOf('/') + 1) : python[3]!
}

// A name for a tip: "cart.py" instead of "<module>". `raw`: the name as recorded.
export function whole(name: string, raw: string | undefined): string { return name === '<module>' && raw ? label(raw) : name }

// "load (shop/cart.py:12)" of "shop/cart.py(12): load", so that the function can be read in a narrow column.
export function functionFirst(name: string): string { return name.replace(/^(.*)\((\d+)\): (.+)$/, '$3 ($1:$2)') }

// What decides the hue of a name: the path of a Python function, the namespace of a C++ name, else the name itself without
// its number, so that the steps of a loop have one.
export function groupOf(name: string): string {
    const python = /^(.*)\(\d+\): /.exec(name)
    return python ? python[1]! : name.split('::')[0]!.replace(/#\d+$|(?<=^ProfilerStep)\*$/, '')
}
