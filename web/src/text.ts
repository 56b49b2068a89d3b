// text.ts: text on canvases that fits its box.

export const font = '11.5px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif'
const widths = new Map<string, number>()

// The text, or its beginning or number with an ellipsis, at most `width` wide; empty if not even two letters fit. The context has `font`.
export function fitting(context: CanvasRenderingContext2D, text: string, width: number): string {
    if (width < 14) return ''
    let full = widths.get(text)
    if (full === undefined) {
        if (widths.size > 20_000) widths.clear()
        full = context.measureText(text).width
        widths.set(text, full)
    }
    if (full <= width) return text
    const number = /#\d+$/.exec(text) // of a step: it says more than the beginning of its name
    if (number && context.measureText(`…${number[0]}`).width <= width) return `…${number[0]}`
    let length = Math.floor(text.length * (width / full))
    while (length > 1 && context.measureText(text.slice(0, length) + '…').width > width) length--
    return length > 1 ? text.slice(0, length) + '…' : ''
}
