// dom.ts: makes elements. Text always becomes a text node, never markup.

type Child = Node | string | number | null | undefined | false
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>

// el('button.quiet', { title: 'Close', onclick: close }, 'x'). Attributes that are null, undefined or false are left out.
export function el<T extends HTMLElement = HTMLElement>(tag: string, attributes: Attributes = {}, ...children: Child[]): T {
    const [name, ...classes] = tag.split('.')
    const element = document.createElement(name || 'div')
    if (classes.length) element.className = classes.join(' ')
    for (const [key, value] of Object.entries(attributes)) {
        if (value === null || value === undefined || value === false) continue
        if (typeof value === 'function') element.addEventListener(key.slice(2), value as EventListener)
        else element.setAttribute(key, value === true ? '' : String(value))
    }
    add(element, ...children)
    return element as T
}

export function add(parent: Element, ...children: Child[]): void {
    for (const child of children)
        if (child !== null && child !== undefined && child !== false)
            parent.append(child instanceof Node ? child : String(child))
}

export function fill(parent: Element, ...children: Child[]): void {
    parent.replaceChildren()
    add(parent, ...children)
}

// A canvas that has the size of its box in device pixels. Returns its context, cleared, in CSS pixels.
export function prepare(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
    const ratio = devicePixelRatio || 1
    const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio))
    if (canvas.width !== w || canvas.height !== h) {
        canvas.width = w
        canvas.height = h
        canvas.style.width = `${width}px`
        canvas.style.height = `${height}px`
    }
    const context = canvas.getContext('2d')!
    context.setTransform(ratio, 0, 0, ratio, 0, 0)
    context.clearRect(0, 0, width, height)
    return context
}

// Places a tip beside a point of the element around it, inside the part that is visible: above the point if there is no
// room below it.
export function placeTip(tip: HTMLElement, around: HTMLElement, x: number, y: number): void {
    const top = around.scrollTop, below = y + 18 + tip.offsetHeight <= top + around.clientHeight
    const left = Math.max(0, Math.min(x + 14, around.clientWidth - tip.offsetWidth - 4))
    tip.style.transform = `translate(${left}px, ${below ? y + 18 : Math.max(top, y - tip.offsetHeight - 10)}px)`
}
