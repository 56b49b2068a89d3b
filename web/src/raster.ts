// raster.ts: draws many boxes at once. Each level of boxes is filled into one row of pixels, and the rows are drawn
// stretched: for 60,000 boxes this takes a hundredth of the time of fillRect, without a GPU.

// The boxes of one track: columns, level by level, each in order of time. Times are ns from the beginning of the trace.
export interface Boxes {
    begin: Float64Array
    end: Float64Array
    depth: Uint32Array
    name: Uint32Array  // an index into sites
    sites: Uint32Array // ids of names
    merged: Uint8Array // 1: several ranges, each narrower than a pixel
    first: Uint32Array // the boxes of level l are first[l] to first[l + 1]
    levels: number
}

export interface Scale {
    begin: number    // the time at the left edge
    perPixel: number // ns per device pixel
    width: number    // device pixels
}

export class Raster {
    private canvas = document.createElement('canvas')
    private context = this.canvas.getContext('2d')!
    private image = this.context.createImageData(1, 1)
    private words = new Uint32Array(this.image.data.buffer)

    // Draws the boxes at (x, y) of a target in device pixels, `height` pixels per level. `colour` returns the ABGR word of
    // a site. Draws `most` levels at most. Neighbouring boxes of three pixels or more are separated by an empty pixel.
    draw(target: CanvasRenderingContext2D, boxes: Boxes, scale: Scale, x: number, y: number, height: number,
        colour: (name: number) => number, most = Infinity): void {
        const { width } = scale, levels = Math.min(boxes.levels, most)
        if (!levels || width < 1) return
        this.reserve(width, levels)
        const words = this.words
        words.fill(0, 0, width * levels)
        const { begin, end, name, first } = boxes
        const colours = boxes.sites.map(colour)
        const factor = 1 / scale.perPixel, origin = scale.begin
        for (let level = 0; level < levels; level++) {
            const start = level * width
            for (let i = first[level]!, last = first[level + 1]!; i < last; i++) {
                const from = (begin[i]! - origin) * factor + 0.01, to = (end[i]! - origin) * factor // times are sums of rounded pixels
                if (to < 0 || from >= width) continue
                const left = from <= 0 ? 0 : from | 0, at = start + left, word = colours[name[i]!]!
                const wide = (to >= width ? width : (to + 0.99) | 0) - left
                words[at] = word // most boxes are narrow: a loop over their pixels would take twice the time
                if (wide < 2) continue
                words[at + 1] = word
                if (wide > 3) words.fill(word, at + 2, start + (to >= width ? width : ((to + 0.01) | 0) - 1))
            }
        }
        this.context.putImageData(this.image, 0, 0, 0, 0, width, levels)
        target.save()
        target.setTransform(1, 0, 0, 1, 0, 0)
        target.imageSmoothingEnabled = false
        target.drawImage(this.canvas, 0, 0, width, levels, x, y, width, levels * height)
        target.restore()
    }

    private reserve(width: number, levels: number): void {
        if (this.canvas.width === width && this.canvas.height >= levels) return
        this.canvas.width = width
        this.canvas.height = Math.max(levels, 16)
        this.image = this.context.createImageData(width, this.canvas.height)
        this.words = new Uint32Array(this.image.data.buffer)
    }
}

// The index of the box at a time and level, or -1. A box within `reach` ns counts, so that narrow ones can be hit.
export function boxAt(boxes: Boxes, time: number, level: number, reach: number): number {
    let best = -1, distance = Infinity
    for (let i = boxes.first[level] ?? 0, end = boxes.first[level + 1] ?? 0; i < end; i++) {
        const away = time < boxes.begin[i]! ? boxes.begin[i]! - time : time > boxes.end[i]! ? time - boxes.end[i]! : 0
        if (away <= reach && away < distance) {
            best = i
            distance = away
        }
    }
    return best
}
