// perfetto_ui.mjs [FILE [slices=N] [flows=N] [counters=N]]...: opens files in the Perfetto UI and checks that it finds
// every range, arrow and counter value, and shows them at once. Without arguments: the golden Chrome trace, and exports of MAREY_CAPTURE.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import zlib from 'node:zlib'

import { expandTracks, query, startPerfetto, waitForTracks } from '../../tools/perfetto_page.mjs'

const { MAREY_BIN, MAREY_CAPTURE, MAREY_OUT } = process.env
const golden = path.join(path.dirname(fileURLToPath(import.meta.url)), '..', 'data', 'golden')

// ---- files to open, and their expected content

// Perfetto shows instants as slices without a duration.
function countsOfChrome(file) {
    const bytes = fs.readFileSync(file)
    const document = JSON.parse(file.endsWith('.gz') ? zlib.gunzipSync(bytes) : bytes)
    const count = (...phases) => (document.traceEvents ?? document).filter(event => phases.includes(event.ph)).length
    return { slices: count('X', 'i', 'B'), flows: count('s'), counters: count('C') }
}

function infoOf(file) {
    return JSON.parse(execFileSync(MAREY_BIN, ['info', '--json', file], { maxBuffer: 1 << 28 }))
}

function exportsOfCapture() {
    const info = infoOf(MAREY_CAPTURE)
    const made = []
    const chrome = path.join(MAREY_OUT, 'pipeline.json')
    execFileSync(MAREY_BIN, ['export', MAREY_CAPTURE, '-o', chrome], { stdio: 'ignore' })
    const content = { slices: info.ranges + info.instants + info.allocation_reports, flows: info.links ?? 0,
        counters: info.counters, groups: /^pipeline \d+$/ }
    made.push({ file: chrome, ...content })
    const pftrace = path.join(MAREY_OUT, 'pipeline.pftrace')
    if (/--to .*\bperfetto\b/.test(execFileSync(MAREY_BIN, ['export', '--help']))) {
        execFileSync(MAREY_BIN, ['export', MAREY_CAPTURE, '-o', pftrace], { stdio: 'ignore' })
        made.push({ file: pftrace, ...content })
    }
    return made
}

function fromArguments(words) {
    const files = []
    for (const word of words) {
        const given = word.match(/^(slices|flows|counters)=(\d+)$/)
        if (given) files.at(-1)[given[1]] = Number(given[2])
        else files.push({ file: word })
    }
    return files.map(each => (/\.json(\.gz)?$/.test(each.file) ? { ...countsOfChrome(each.file), ...each } : each))
}

const goldenChrome = path.join(golden, 'chrome', 'full.json')
const jobs = process.argv.length > 2 ? fromArguments(process.argv.slice(2))
    : [{ file: goldenChrome, ...countsOfChrome(goldenChrome) }, ...exportsOfCapture()]

// ---- the page

let failed = false
const perfetto = await startPerfetto()

async function open(job) {
    const page = await perfetto.open(job.file)
    const found = {
        slices: await query(page, 'select count(*) as n from slice'),
        flows: await query(page, 'select count(*) as n from flow'),
        counters: await query(page, 'select count(*) as n from counter'),
    }
    const arrows = await page.evaluate(async () => {
        const result = await self.app.trace.engine.query(
            'select a.name as source, b.name as target from flow join slice a on a.id = slice_out join slice b on b.id = slice_in')
        const names = []
        for (const row = result.iter({ source: 'str', target: 'str' }); row.valid(); row.next()) names.push([row.source, row.target])
        return names.slice(0, 20)
    })
    for (const [source, target] of arrows) console.log(`    ${source} -> ${target}`.replace(/\s+/g, ' '))
    const errors = await query(page, "select ifnull(sum(value), 0) as n from stats where severity = 'error'")
    const picture = path.join(MAREY_OUT, `perfetto_${path.basename(job.file)}.png`)
    await waitForTracks(page)
    // A file opens with one expanded group, that of the program.
    const groups = await page.evaluate(() => self.app.trace.workspace.children.map(
        group => group.name + (group.collapsed ? ' (collapsed)' : '')))
    if (job.groups !== undefined && !job.groups.test(groups.join('\n'))) {
        failed = true
        console.log(`FAILED: perfetto_ui: ${job.file}: groups: ${groups.join(', ')}`)
    }
    await expandTracks(page)
    await page.waitForTimeout(found.slices < 1000 ? 5000 : 25000)
    await page.keyboard.press('Escape')
    await page.waitForTimeout(1000)
    await page.screenshot({ path: picture })
    await page.close()
    console.log(`perfetto_ui: ${path.basename(job.file)}: ${found.slices} slices, ${found.flows} flows, ` +
        `${found.counters} counter values, ${errors} errors; screenshot ${picture}`)
    for (const what of ['slices', 'flows', 'counters']) {
        if (job[what] === undefined || job[what] === found[what]) continue
        failed = true
        console.log(`FAILED: perfetto_ui: ${job.file}: ${found[what]} ${what}, not ${job[what]}`)
    }
    if (errors > 0) {
        failed = true
        console.log(`FAILED: perfetto_ui: ${job.file}: the trace processor counts ${errors} errors`)
    }
}

try {
    for (const job of jobs) await open(job)
} finally {
    await perfetto.close()
}
process.exit(failed ? 1 : 0)
