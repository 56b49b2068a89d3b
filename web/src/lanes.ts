// lanes.ts: the lanes of the timeline, from top to bottom: groups of processes and devices, and what is inside them.
import { clean, plural } from './format'
import type { Counter, Outline, Track, TraceOutline } from './protocol'
import type { State } from './state'

export const rowHeight = 18      // of one level of boxes
export const groupHeight = 26
export const collapsedHeight = 22
export const counterHeight = 44
export const instantHeight = 18
export const pendingHeight = 40
export const gap = 5             // below each lane
const mostLevels = 256           // that the server draws

// Lanes are numbered so that a link keeps its meaning: trace * 1,000,000, plus the track; plus 500,000 and the counter, or
// plus 700,000 and the thread of instants, plus 800,000 and a thread, or plus 900,000 and the number of the group.
export interface Lane {
    id: number
    kind: 'group' | 'ranges' | 'counter' | 'instants' | 'pending' // pending: a thread of a trace that is being read
    trace: number
    index: number // track, counter or thread
    title: string
    note: string
    group: number // id of the group around it; 0 for groups
    levels: number
    collapsed: boolean
    top: number
    height: number
    device: boolean
    counter?: Counter
}

const perTrace = 1_000_000
export const trackLane = (trace: number, track: number): number => trace * perTrace + track

function processTitle(trace: TraceOutline, process: number): string {
    const info = trace.processes[process]
    if (!info) return 'process'
    const name = info.name.slice(info.name.lastIndexOf('/') + 1) || 'process'
    return `${name} ${info.pid}${info.node >= 0 ? `, rank ${info.node}` : ''}`
}

const kindNotes = { thread: '', async: 'async', device: '', overlap: 'overlapping', task: '', samples: '' }

function lane(id: number, kind: Lane['kind'], trace: number, index: number, title: string, note: string): Lane {
    return { id, kind, trace, index, title: clean(title, 200), note, group: 0, levels: 0, collapsed: false, top: 0, height: 0, device: false }
}

function rangesLane(trace: number, index: number, track: Track): Lane {
    const note = [kindNotes[track.kind], plural(track.rows, track.kind === 'samples' ? 'frame' : 'range')].filter(Boolean).join(' · ')
    return { ...lane(trackLane(trace, index), 'ranges', trace, index, track.name || track.kind, note),
        levels: Math.min(track.levels, mostLevels), device: track.kind === 'device' || !!track.device }
}

function counterLane(trace: number, index: number, counter: Counter): Lane {
    const title = counter.kind === 'memory' ? 'Memory allocated' : counter.kind === 'reserved' ? 'Memory reserved' : counter.name
    return { ...lane(trace * perTrace + 500_000 + index, 'counter', trace, index, title, counter.device), counter, device: !!counter.device }
}

// The groups of one trace, each with its lanes, in order.
function groupsOf(outline: TraceOutline, trace: number, several: boolean): { title: string; lanes: Lane[] }[] {
    const groups = new Map<string, { title: string; order: number; lanes: Lane[] }>()
    const groupFor = (process: number, device: string) => {
        const key = `${process} ${device}`
        if (!groups.has(key)) {
            const parts = [several ? outline.file.slice(outline.file.lastIndexOf('/') + 1) : '', device, processTitle(outline, process)]
            groups.set(key, { title: parts.filter(Boolean).join(' · '), order: process * 2 + (device ? 1 : 0), lanes: [] })
        }
        return groups.get(key)!.lanes
    }
    if (outline.state === 'loading' && !outline.tracks.length)
        outline.threads.forEach((thread, index) => groupFor(thread.process, '').push(
            lane(trace * perTrace + 800_000 + index, 'pending', trace, index, thread.name || `thread ${thread.id}`, 'being read')))
    const withInstants = new Set<number>()
    const threadOf = new Map<number, number>() // by lane
    outline.tracks.forEach((track, index) => {
        if (!track.rows) return
        const lanes = groupFor(track.process, track.kind === 'task' ? 'tasks' : track.device)
        const thread = outline.threads[track.thread]
        if (thread?.instants && !withInstants.has(track.thread) && track.kind === 'thread') {
            withInstants.add(track.thread)
            lanes.push(lane(trace * perTrace + 700_000 + track.thread, 'instants', trace, track.thread, `${track.name} · instants`, plural(thread.instants, 'instant')))
        }
        const own = rangesLane(trace, index, track)
        // The samples of a thread come directly below its ranges.
        const last = track.kind === 'samples' ? lanes.map(l => threadOf.get(l.id)).lastIndexOf(track.thread) : -1
        threadOf.set(own.id, track.thread)
        lanes.splice(last >= 0 ? last + 1 : lanes.length, 0, own)
    })
    outline.threads.forEach((thread, index) => {
        if (!thread.instants || withInstants.has(index)) return
        groupFor(thread.process, '').push(
            lane(trace * perTrace + 700_000 + index, 'instants', trace, index, `${thread.name || `thread ${thread.id}`} · instants`, plural(thread.instants, 'instant')))
    })
    outline.counters.forEach((counter, index) => groupFor(counter.process, counter.device === 'cpu' ? '' : counter.device).push(counterLane(trace, index, counter)))
    return [...groups.values()].sort((a, b) => a.order - b.order)
}

// All lanes with their places, and the height of all together.
export function layOut(outline: Outline, state: State): { lanes: Lane[]; height: number } {
    const collapsed = new Set(state.collapsed), pinned = new Set(state.pinned), hidden = new Set(state.hidden)
    const needle = state.tracks.toLowerCase()
    const lanes: Lane[] = [], top: Lane[] = []
    outline.traces.forEach((trace, number) => {
        groupsOf(trace, number, outline.traces.length > 1).forEach(({ title, lanes: inside }, index) => {
            const group = lane(number * perTrace + 900_000 + index, 'group', number, index, title, '')
            const shown = inside.filter(l => !hidden.has(l.id) && (!needle || `${title} ${l.title} ${l.note}`.toLowerCase().includes(needle)))
            if (!shown.length) return
            group.note = plural(shown.filter(l => l.kind === 'ranges').length || shown.length, 'track')
            group.collapsed = collapsed.has(group.id)
            lanes.push(group)
            for (const one of shown) {
                one.group = group.id
                one.collapsed = collapsed.has(one.id)
                if (pinned.has(one.id)) top.push(one)
                else if (!group.collapsed) lanes.push(one)
            }
        })
    })
    if (top.length) lanes.unshift({ ...lane(-1, 'group', 0, 0, 'Pinned', ''), note: plural(top.length, 'track') }, ...top)
    let height = 0
    for (const one of lanes) {
        one.top = height
        one.height = heightOf(one)
        height += one.height + gap
    }
    return { lanes, height }
}

function heightOf(one: Lane): number {
    if (one.kind === 'group') return groupHeight
    if (one.kind === 'instants') return instantHeight
    if (one.kind === 'pending') return pendingHeight
    if (one.collapsed) return collapsedHeight
    return one.kind === 'counter' ? counterHeight : Math.max(1, one.levels) * rowHeight
}
