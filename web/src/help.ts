// help.ts: the list of keys.
import { add, el } from './dom'

const keys: [string, string][] = [
    ['W  S', 'zoom in, out'], ['A  D', 'move left, right'], ['↑  ↓', 'scroll the tracks'], ['F', 'show everything; again: the selection'],
    ['Drag', 'select a time span; all views follow'], ['Shift drag', 'move'], ['Ctrl wheel', 'zoom at the pointer'], ['Double click', 'zoom to a range'], ['←  →', 'in a flame graph: go to a box; Enter zooms'],
    ['[  ]', 'previous, next range of the same name'], ['/', 'search; Enter for the next hit, Esc to leave'], ['M', 'set or remove a mark at the pointer'],
    ['1 … 7', 'timeline, flame graph, sandwich, table, steps, GPU and memory, changes'], [',  .', 'previous, next step; aligns two timelines at it'], ['R', 'read the file again'], ['L', 'follow a program that runs'], ['Shift H', 'show hidden tracks'],
    ['T', 'light or dark'], ['Esc', 'back out: search, range, zoom of the flame graph, selection'], ['?', 'this list'],
]

export class Help {
    readonly root = el<HTMLDialogElement>('dialog.help', { 'aria-label': 'Keys' })

    constructor() {
        const list = el('dl')
        for (const [key, text] of keys) add(list, el('dt', {}, ...key.split('  ').map(k => el('kbd', {}, k))), el('dd', {}, text))
        add(this.root, el('h2', {}, 'Keys'), list, el('form', { method: 'dialog' }, el('button', {}, 'Close')))
        this.root.addEventListener('click', event => { if (event.target === this.root) this.root.close() })
    }

    toggle(): void {
        if (this.root.open) this.root.close()
        else this.root.showModal()
    }
}
