// theme.ts: the colours of boxes and of what is drawn on canvases, for both themes.
//
// Ten hues that readers with any colour vision can tell apart, by lightness too; the text on them has a contrast of at
// least 7. They are those of the SVG pictures. Names of one module share a hue and vary its lightness.
import { groupOf } from './format'

const light = ['#a9c9ea', '#f3c99b', '#b5d9b0', '#e6b3ba', '#c9bfe6', '#e9dd9a', '#a8d8d8', '#dfc4ad', '#e5bfdc', '#c6ccd4']
const dark = ['#2c5480', '#80521c', '#2f6130', '#7d3742', '#544585', '#665a14', '#1f6163', '#6b4c33', '#74406a', '#4b545f']
const shades = 4
const leastChange = 0.05 // smaller ones have no colour: the smallest change of interest of marey diff

export interface Theme {
    dark: boolean
    boxes: Uint32Array // ABGR words; hue * shades + shade
    css: string[]      // the same as CSS
    page: string; panel: string; line: string; strong: string; text: string; muted: string
    change: [less: string, none: string, more: string] // of a differential flame graph
    accent: string; accentSoft: string; hit: string; warn: string; counter: string; counterSoft: string; grid: string; dim: string
}

function mix(hex: string, target: number, share: number): [number, number, number] {
    const part = (at: number) => Math.round(parseInt(hex.slice(at, at + 2), 16) * (1 - share) + target * share)
    return [part(1), part(3), part(5)]
}

// The colour of a change: -1 is gone, 1 is new.
export function changeColour(theme: Theme, change: number): string {
    const end = mix(theme.change[change < 0 ? 0 : 2], 0, 0), none = mix(theme.change[1], 0, 0), share = Math.abs(change) < leastChange ? 0 : 0.25 + 0.75 * Math.min(1, Math.abs(change) * 1.5)
    return `rgb(${none.map((part, i) => Math.round(part + (end[i]! - part) * share)).join(' ')})`
}

function boxColours(hexes: string[], target: number): { words: Uint32Array; css: string[] } {
    const words = new Uint32Array(hexes.length * shades)
    const css: string[] = []
    hexes.forEach((hex, hue) => {
        for (let shade = 0; shade < shades; shade++) {
            const [r, g, b] = mix(hex, target, shade * 0.11)
            words[hue * shades + shade] = (0xff << 24 | b << 16 | g << 8 | r) >>> 0
            css.push(`rgb(${r} ${g} ${b})`)
        }
    })
    return { words, css }
}

function make(isDark: boolean): Theme {
    const { words, css } = boxColours(isDark ? dark : light, isDark ? 0 : 255)
    const own = isDark
        ? { page: '#14181d', panel: '#1a1f26', line: '#2a313a', strong: '#f2f5f8', text: '#dfe4ea', muted: '#9aa5b1', accent: '#6cb2ff',
            accentSoft: 'rgb(108 178 255 / .16)', hit: '#ffd24a', warn: '#ff9e80', counter: '#7fb4e6', counterSoft: 'rgb(127 180 230 / .28)', grid: '#222831', dim: 'rgb(20 24 29 / .62)', change: ['#2560b4', '#2b323b', '#b03a2e'] }
        : { page: '#ffffff', panel: '#f6f7f9', line: '#dfe3e8', strong: '#0f1720', text: '#1c2430', muted: '#5c6675', accent: '#1463b8',
            accentSoft: 'rgb(20 99 184 / .12)', hit: '#c27b00', warn: '#b23b12', counter: '#3f7fbf', counterSoft: 'rgb(63 127 191 / .22)', grid: '#eceff2', dim: 'rgb(255 255 255 / .66)', change: ['#7fb0f2', '#e6e9ed', '#f2867a'] }
    return { dark: isDark, boxes: words, css, ...own, change: own.change as Theme['change'] }
}

export const themes = { light: make(false), dark: make(true) }

// FNV-1a over UTF-16 code units.
export function hash(text: string): number {
    let value = 0x811c9dc5
    for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193)
    return value >>> 0
}

// What a sampled thread did: green, orange, and grey with a shade for each kind of wait.
function stateColour(name: string): number | undefined {
    if (name === 'running') return 2 * shades
    if (name === 'preempted') return 1 * shades
    return name.startsWith('waiting: ') ? 9 * shades + (hash(name) >>> 8) % shades : undefined
}

// The index into Theme.boxes and Theme.css: the same in every trace and both themes.
export function colourOf(name: string): number {
    const state = stateColour(name)
    if (state !== undefined) return state
    return (hash(groupOf(name)) % light.length) * shades + (hash(name) >>> 8) % shades
}
