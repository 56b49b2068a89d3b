// drawing.ts: labels, counters, instants and arrows of the timeline.
import type { App } from './app'
import type { Lane } from './lanes'
import { rowHeight } from './lanes'
import type { Arrow, ArrowEnd, CounterPicture, Instants } from './protocol'
import type { Boxes } from './raster'
import type { Theme } from './theme'
import { fitting } from './text'

export interface Area { left: number; width: number; begin: number; perPixel: number; top: number; height: number }

const mostLabels = 3000

export function drawLabels(context: CanvasRenderingContext2D, area: Area, app: App, lane: Lane, boxes: Boxes, y: number, hits: Set<number> | null): void {
    let drawn = 0
    context.fillStyle = app.theme.text
    for (let i = 0; i < boxes.begin.length && drawn < mostLabels; i++) {
        const left = Math.max(0, (boxes.begin[i]! - area.begin) / area.perPixel)
        const right = Math.min(area.width, (boxes.end[i]! - area.begin) / area.perPixel)
        if (right - left < 22) continue
        const top = y + boxes.depth[i]! * rowHeight
        if (top > area.height || top < -rowHeight) continue
        const text = fitting(context, app.label(lane.trace, boxes.sites[boxes.name[i]!]!), right - left - 8)
        if (!text) continue
        context.globalAlpha = hits && !hits.has(boxes.sites[boxes.name[i]!]!) ? 0.45 : 1
        context.fillText(text, left + 4, top + rowHeight / 2)
        drawn++
    }
    context.globalAlpha = 1
}

// A counter as steps: the last value of each pixel as a line over a filled area, the range of values within it as a band. `last`: the end
// of its trace, which can be the shorter one of two.
export function drawCounter(context: CanvasRenderingContext2D, area: Area, theme: Theme, lane: Lane, picture: CounterPicture, y: number, last: number): void {
    const info = lane.counter!, low = Math.min(0, info.min), high = Math.max(info.max, low + 1e-12)
    const height = lane.height - 2, bottom = y + lane.height
    const place = (value: number) => bottom - (value - low) / (high - low) * height
    const pixels = picture.last.length, perPixel = (picture.end - picture.begin) / pixels
    const x = (pixel: number) => (picture.begin + pixel * perPixel - area.begin) / area.perPixel
    const from = Math.max(0, Math.floor((area.begin - picture.begin) / perPixel) - 1)
    const to = Math.min(pixels, Math.ceil((Math.min(area.begin + area.width * area.perPixel, last) - picture.begin) / perPixel) + 1)
    context.save()
    context.beginPath()
    context.rect(0, y, area.width, lane.height + 1)
    context.clip()
    const shape = new Path2D(), line = new Path2D()
    let open = false
    for (let p = from; p < to; p++) {
        const last = picture.last[p]!
        if (Number.isNaN(last)) continue
        const left = x(p), right = x(p + 1)
        if (!open) { shape.moveTo(left, place(low)); line.moveTo(left, place(last)); open = true }
        shape.lineTo(left, place(picture.max[p]!))
        shape.lineTo(right, place(picture.max[p]!))
        if (picture.max[p]! > picture.min[p]!) {
            line.lineTo(left, place(picture.min[p]!))
            line.lineTo(left, place(picture.max[p]!))
        }
        line.lineTo(left, place(last))
        line.lineTo(right, place(last))
    }
    if (open) shape.lineTo(x(to), place(low))
    context.fillStyle = theme.counterSoft
    context.fill(shape)
    context.strokeStyle = theme.counter
    context.lineWidth = 1
    context.stroke(line)
    context.restore()
}

export function drawInstants(context: CanvasRenderingContext2D, area: Area, app: App, lane: Lane, instants: Instants, y: number): void {
    const perPixel = (instants.end - instants.begin) / instants.pixels
    const places = [...instants.pixel].map(p => (instants.begin + p * perPixel - area.begin) / area.perPixel)
    const middle = y + lane.height / 2
    places.forEach((left, i) => {
        if (left < -8 || left > area.width + 8) return
        const colour = app.colour(lane.trace, instants.site[i]!)
        context.fillStyle = colour < 0 ? app.theme.muted : app.theme.accent
        context.beginPath()
        context.moveTo(left, middle - 5)
        context.lineTo(left + 4, middle)
        context.lineTo(left, middle + 5)
        context.lineTo(left - 4, middle)
        context.fill()
        const room = (places[i + 1] ?? area.width) - left - 14
        const text = room > 30 ? fitting(context, app.label(lane.trace, instants.site[i]!), Math.min(room, 160)) : ''
        context.fillStyle = app.theme.muted
        if (text) context.fillText(text, left + 7, middle)
    })
}

export function drawArrows(context: CanvasRenderingContext2D, area: Area, theme: Theme, arrows: Arrow[],
    place: (end: ArrowEnd) => { top: number; height: number } | null): void {
    context.strokeStyle = theme.accent
    context.fillStyle = theme.accent
    context.lineWidth = 1.5
    context.globalAlpha = arrows.length > 40 ? 0.45 : 0.9
    for (const arrow of arrows.slice(0, 400)) {
        const from = place(arrow.from), to = place(arrow.to)
        if (!from || !to) continue
        const start = arrow.kind === 'launch' ? arrow.from.start_ns : arrow.from.end_ns
        const x1 = (start - area.begin) / area.perPixel, x2 = (arrow.to.start_ns - area.begin) / area.perPixel
        if (Math.max(x1, x2) < -50 || Math.min(x1, x2) > area.width + 50) continue
        if (Math.min(x1, x2) < -50 && Math.max(x1, x2) > area.width + 50) continue // neither end can be seen
        const y1 = from.top - area.top + from.height / 2, y2 = to.top - area.top + to.height / 2
        const bend = Math.min(80, Math.max(14, Math.abs(x2 - x1) / 2))
        context.beginPath()
        context.moveTo(x1, y1)
        if (x2 - x1 > 60 && Math.abs(y2 - y1) < (x2 - x1) / 12) { // along the edges of rows, not through their texts
            context.quadraticCurveTo(x1 + 12, y1, x1 + 20, y1 - from.height / 2)
            context.lineTo(x2 - 25, y2 - to.height / 2)
            context.quadraticCurveTo(x2 - 17, y2, x2 - 5, y2)
        } else context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2 - 5, y2)
        context.stroke()
        context.beginPath()
        context.moveTo(x2, y2)
        context.lineTo(x2 - 6, y2 - 4)
        context.lineTo(x2 - 6, y2 + 4)
        context.fill()
    }
    context.globalAlpha = 1
}
