// embedded_answers.ts: answers that an HTML report computes from those it holds.
import type { Flame, FlameNode, Name, Sandwich, Search, Table } from './protocol'

// A tree of names that grows path by path.
class Tree {
    names: string[] = []
    nodes: FlameNode[] = []
    private ids = new Map<string, number>()
    private children = new Map<string, number>()

    // The index of the node below `parent` with this name.
    index(parent: number, name: string): number {
        let id = this.ids.get(name)
        if (id === undefined) {
            id = this.names.push(name) - 1
            this.ids.set(name, id)
        }
        const key = `${parent} ${id}`
        let node = this.children.get(key)
        if (node === undefined) {
            node = this.nodes.push([parent, id, 0, 0, 0]) - 1
            this.children.set(key, node)
        }
        return node
    }

    flame(like: Flame): Flame { return { value: like.value, unit: like.unit, total: this.nodes[0]?.[2] ?? 0, names: this.names, nodes: this.nodes } }
}

// Callers and callees of a name, from the flame graph of the total time. Recursive calls count once.
export function sandwich(flame: Flame, name: string): Sandwich {
    const callers = new Tree(), callees = new Tree()
    const nameOf = (node: number) => flame.names[flame.nodes[node]![1]] ?? '(smaller)'
    const below: number[] = [] // of each node: its place in callees, or -1
    let count = 0, self = 0
    flame.nodes.forEach(([parent, , value, own, calls], node) => {
        const around = parent < 0 ? -1 : below[parent]!
        const is = nameOf(node) === name
        if (is) {
            count += calls
            self += own
        }
        below[node] = is || around >= 0 ? callees.index(around, nameOf(node)) : -1
        if (below[node]! >= 0) {
            const into = callees.nodes[below[node]!]!
            into[2] += value
            into[3] += own
            into[4] += calls
        }
        if (!is || around >= 0) return
        for (let at = node, place = -1; at >= 0; at = flame.nodes[at]![0]) {
            place = callers.index(place, nameOf(at))
            callers.nodes[place]![2] += value
            callers.nodes[place]![4] += calls
        }
    })
    return { name, count, total_ns: callees.nodes[0]?.[2] ?? 0, self_ns: self, callers: callers.flame(flame), callees: callees.flame(flame) }
}

// Names that contain a text or match an expression. A report cannot go to single ranges.
export function search(names: Name[], table: Table, text: string, regex: boolean): Search {
    const expression = regex ? new RegExp(text, 'i') : null
    const matches = (name: string) => (expression ? expression.test(name) : name.toLowerCase().includes(text.toLowerCase()))
    const rows = table.rows.filter(row => matches(String(row['name'])))
    const count = rows.reduce((sum, row) => sum + Number(row['count'] ?? 0), 0)
    return { count, exact: true, names: rows.length, hits: [], marks: [], sites: names.filter(name => matches(name.raw ?? name.name)).map(name => name.site) }
}
