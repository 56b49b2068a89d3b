// flame.ts: draws a tree of names as nested boxes: a flame graph (roots below) or an icicle (roots above).
import type { App } from './app'
import { add, el, fill, placeTip, prepare } from './dom'
import { bytes, clean, count, label, percent, time } from './format'
import type { Flame, FlameNode } from './protocol'
import { colourOf } from './theme'
import { fitting, font } from './text'

const level = 20

interface Box { node: number; left: number; width: number; depth: number }

export function amount(unit: string, value: number): string {
    return unit === 'bytes' ? bytes(value) : unit === 'ns' ? time(value) : count(value)
}

export class FlameGraph {
    readonly root = el('div.flame', { tabindex: '0', role: 'region' })
    private canvas = el<HTMLCanvasElement>('canvas', { role: 'img' })
    private tip = el('div.tip', { hidden: true })
    private flame: Flame | null = null
    private children: number[][] = []
    private roots: number[] = []
    private boxes: Box[] = []
    private focus = -1
    private hover = -1
    private frame = 0
    private toRoot = false // scroll down to the root after painting
    upward = false
    compact = false // as high as its levels; else upward ones stand at the bottom of the view
    needle: ((name: string) => boolean) | null = null
    fillOf: (node: FlameNode, name: string) => string | CanvasPattern = (_, name) => this.app.theme.css[colourOf(name)]!
    textOf: (node: FlameNode, name: string) => string = (_, name) => label(name)
    factsOf: ((node: FlameNode, flame: Flame) => string[]) | null = null
    onFocus: (path: string[]) => void = () => {}
    onName: (name: string) => void = () => {}

    constructor(private app: App, title: string) {
        this.root.setAttribute('aria-label', title)
        this.canvas.setAttribute('aria-label', title)
        add(this.root, this.canvas, this.tip)
        new ResizeObserver(() => this.draw()).observe(this.root)
        this.canvas.addEventListener('pointermove', event => this.move(event))
        this.canvas.addEventListener('pointerleave', () => { this.hover = -1; this.tip.hidden = true; this.draw() })
        this.canvas.addEventListener('click', event => this.click(event))
        this.root.addEventListener('keydown', event => this.key(event))
        this.root.addEventListener('blur', () => this.point(-1))
        this.canvas.addEventListener('dblclick', event => { const at = this.at(event); if (at >= 0) this.onName(this.name(at)) })
    }

    show(flame: Flame, path: string[]): void {
        if (flame !== this.flame) {
            this.flame = flame
            this.children = flame.nodes.map(() => [])
            this.roots = []
            flame.nodes.forEach(([parent], index) => (parent < 0 ? this.roots : this.children[parent]!).push(index))
        }
        this.toRoot = this.upward
        this.focus = -1
        for (const name of path) {
            const next = (this.focus < 0 ? this.roots : this.children[this.focus]!).find(node => this.name(node) === name || this.oldName(node) === name)
            if (next === undefined) break
            this.focus = next
        }
        this.draw()
    }

    draw(): void {
        if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.paint() })
    }

    private name(node: number): string {
        const index = this.flame!.nodes[node]![1]
        return index < 0 ? '(smaller)' : this.flame!.names[index] ?? ''
    }

    private oldName(node: number): string | undefined { return this.flame!.names[this.flame!.nodes[node]![5]?.[7] ?? -1] }

    private path(node: number): number[] {
        const path: number[] = []
        for (let at = node; at >= 0; at = this.flame!.nodes[at]![0]) path.unshift(at)
        return path
    }

    private layOut(width: number): number {
        const flame = this.flame!
        this.boxes = []
        let depth = 0, deepest = 0
        const ancestors = this.focus < 0 ? [] : this.path(this.focus)
        for (const node of ancestors.slice(0, -1)) this.boxes.push({ node, left: 0, width, depth: depth++ })
        const top = this.focus < 0 ? this.roots : [this.focus]
        const total = top.reduce((sum, node) => sum + flame.nodes[node]![2], 0) || 1
        const scale = width / total
        const stack: [node: number, left: number, depth: number][] = []
        let left = 0
        for (const node of top) {
            stack.push([node, left, depth])
            left += flame.nodes[node]![2] * scale
        }
        while (stack.length) {
            const [node, x, d] = stack.pop()!
            const wide = flame.nodes[node]![2] * scale
            if (wide < 0.5) continue
            this.boxes.push({ node, left: x, width: wide, depth: d })
            deepest = Math.max(deepest, d)
            let at = x
            for (const child of this.children[node]!) {
                stack.push([child, at, d + 1])
                at += flame.nodes[child]![2] * scale
            }
        }
        return Math.max(deepest, depth) + 1
    }

    private paint(): void {
        const { theme } = this.app, width = this.root.clientWidth
        if (!this.flame || width < 2) return
        const levels = this.layOut(width)
        const height = Math.max(levels * level, this.upward && !this.compact ? this.root.clientHeight : 0)
        const context = prepare(this.canvas, width, Math.min(height, 16_000))
        context.font = font
        context.textBaseline = 'middle'
        const above = this.focus < 0 ? 0 : this.path(this.focus).length - 1
        for (const box of this.boxes) {
            const name = this.name(box.node), y = this.top(box.depth, height)
            const faded = box.depth < above || (this.needle && !this.needle(name))
            context.globalAlpha = faded ? 0.45 : 1
            context.fillStyle = this.flame.nodes[box.node]![1] < 0 ? theme.line : this.fillOf(this.flame.nodes[box.node]!, name)
            context.fillRect(box.left, y, Math.max(0.5, box.width - (box.width > 3 ? 1 : 0)), level - 1)
            if (box.node === this.hover) {
                context.strokeStyle = theme.strong
                context.lineWidth = 1.5
                context.strokeRect(box.left + 0.75, y + 0.75, Math.max(1, box.width - 2.5), level - 2.5)
            }
            if (box.width < 24) continue
            context.fillStyle = theme.text
            context.fillText(fitting(context, clean(this.textOf(this.flame.nodes[box.node]!, name), 200), box.width - 9), box.left + 4, y + level / 2)
        }
        context.globalAlpha = 1
        if (this.toRoot) this.root.scrollTop = this.root.scrollHeight
        this.toRoot = false
    }

    private top(depth: number, height: number): number { return this.upward ? height - (depth + 1) * level : depth * level }

    private at(event: MouseEvent): number {
        const height = this.canvas.clientHeight
        const depth = Math.floor((this.upward ? height - event.offsetY : event.offsetY) / level)
        return this.boxes.find(box => box.depth === depth && event.offsetX >= box.left && event.offsetX < box.left + box.width)?.node ?? -1
    }

    private move(event: PointerEvent): void {
        const node = this.at(event)
        this.canvas.style.cursor = node < 0 ? 'default' : 'pointer'
        this.point(node)
        placeTip(this.tip, this.root, event.offsetX, event.offsetY)
    }

    private point(node: number): void {
        if (node === this.hover) return
        this.hover = node
        this.tip.hidden = node < 0
        if (node >= 0) fill(this.tip, el('b', {}, clean(this.name(node), 300)), ...this.facts(node).map(fact => el('span', {}, fact)))
        this.draw()
    }

    // Arrows go to the boxes around, Enter zooms in.
    private key(event: KeyboardEvent): void {
        const boxes = this.boxes, current = boxes.find(box => box.node === this.hover)
        const towards: Record<string, (box: Box) => boolean> = {
            ArrowLeft: box => box.depth === current!.depth && box.left < current!.left,
            ArrowRight: box => box.depth === current!.depth && box.left > current!.left,
            [this.upward ? 'ArrowDown' : 'ArrowUp']: box => box.depth === current!.depth - 1 && box.left <= current!.left && box.left + box.width > current!.left,
            [this.upward ? 'ArrowUp' : 'ArrowDown']: box => this.flame!.nodes[box.node]![0] === current!.node,
        }
        const is = towards[event.key]
        if (event.key === 'Enter' && current) this.zoom(current.node)
        else if (!is || event.ctrlKey || event.altKey || event.metaKey) return
        else {
            const found = current ? boxes.filter(is).sort((a, b) => Math.abs(a.left - current.left) - Math.abs(b.left - current.left))[0] : boxes[0]
            if (found) {
                const y = this.top(found.depth, this.canvas.clientHeight), room = this.root.clientHeight
                if (y < this.root.scrollTop || y + level > this.root.scrollTop + room) this.root.scrollTop = y - room / 2
                this.point(found.node)
                placeTip(this.tip, this.root, found.left + Math.min(found.width, 60), y + level / 2)
            }
        }
        event.preventDefault()
        event.stopPropagation()
    }

    private facts(node: number): string[] {
        const flame = this.flame!, [, , value, own, calls] = flame.nodes[node]!
        if (this.factsOf) return this.factsOf(flame.nodes[node]!, flame)
        const parts = [`${amount(flame.unit, value)} (${percent(value / (flame.total || 1))})`, `own ${amount(flame.unit, own)}`]
        if (calls) parts.push(`${count(calls)} calls`)
        return [parts.join(', ')]
    }

    private click(event: MouseEvent): void {
        const node = this.at(event)
        if (node >= 0) this.zoom(node)
    }

    private zoom(node: number): void {
        const path = this.path(node).map(n => this.name(n))
        this.onFocus(node === this.focus ? path.slice(0, -1) : path)
    }
}
