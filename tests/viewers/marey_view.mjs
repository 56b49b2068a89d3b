// marey_view.mjs: opens traces in `marey view` and in HTML reports, in a headless browser.
//
// tests/viewers/run.sh sets MAREY_BIN, MAREY_CAPTURE, MAREY_LARGE and the variables of tools/viewers_env.sh. MAREY_ONLY selects tests by
// their names; MAREY_FAST leaves out those that take long (tests/cli/view_page.sh).
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

const { MAREY_BIN, MAREY_CAPTURE, MAREY_LARGE, MAREY_LIVE, MAREY_MODULES, MAREY_OUT, MAREY_ONLY = '', MAREY_FAST, CHROMIUM } = process.env
const modules = createRequire(MAREY_MODULES + '/')
const { chromium } = modules('playwright-core')
const views = ['timeline', 'flame', 'sandwich', 'table', 'steps', 'devices']

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-quic',
    '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] })

const servers = []

// Starts marey view. Returns its address.
async function serve(...files) {
    const server = spawn(MAREY_BIN, ['view', '--no-browser', ...files], { stdio: ['ignore', 'pipe', 'pipe'] })
    servers.push(server)
    let text = ''
    const url = await new Promise((found, failed) => {
        for (const stream of [server.stdout, server.stderr])
            stream.on('data', bytes => {
                text += bytes
                const match = /http:\/\/127\.0\.0\.1:\d+\/#token=[0-9a-f]+/.exec(text)
                if (match) found(match[0])
            })
        server.on('exit', () => failed(new Error(`marey view ended: ${text}`)))
    })
    return { url, close: () => server.kill('SIGINT') }
}

// Opens an address. Anything that a page must not do is collected in page.faults.
async function open(url, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
    const page = await context.newPage()
    page.faults = []
    page.on('dialog', dialog => { page.faults.push(`dialog: ${dialog.message()}`); void dialog.dismiss() })
    page.on('console', message => { if (['error', 'warning'].includes(message.type())) page.faults.push(`console: ${message.text()}`) })
    page.on('pageerror', error => page.faults.push(`error: ${error.stack}`))
    const origin = new URL(url).origin
    page.on('request', request => { if (!/^(data|blob|file):/.test(request.url()) && !request.url().startsWith(origin + '/')) page.faults.push(`request: ${request.url()}`) })
    await page.goto(url)
    await settled(page)
    return page
}

// Waits until the trace is loaded and nothing is drawn any more.
async function settled(page) {
    await page.waitForFunction(() => {
        const { data, store } = globalThis.marey ?? {}
        return data?.outline.traces.length && data.outline.traces.every(trace => trace.state !== 'loading') &&
            (store.state.view !== 'timeline' || document.querySelector('.timeline')?.dataset.ready === '1') && !document.querySelector('.view.busy')
    }, null, { timeout: 60000 })
    await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))))
}

const state = page => page.evaluate(() => globalThis.marey.store.state)
const span = page => page.evaluate(() => globalThis.marey.page.app.window)
const press = async (page, key) => { await page.keyboard.press(key); await page.waitForTimeout(250); await settled(page) }

// The place of a canvas in the page.
const place = async (page, selector) => (await page.locator(selector).boundingBox())

async function drag(page, from, to, y) {
    await page.mouse.move(from, y)
    await page.mouse.down()
    await page.mouse.move((from + to) / 2, y, { steps: 3 })
    await page.mouse.move(to, y, { steps: 3 })
    await page.mouse.up()
    await settled(page)
}

// Selects the range in the middle of the first track by clicking on it.
async function clickFirstRange(page) {
    const box = await place(page, 'canvas.boxes')
    await page.mouse.click(box.x + box.width * 0.5, box.y + 26 + 5 + 9)
    await page.waitForFunction(() => globalThis.marey.store.state.range !== null)
    await settled(page)
}

const tests = {}
const server = await serve(MAREY_CAPTURE)

tests['keys move, zoom, fit and switch views'] = async () => {
    const page = await open(server.url)
    const all = await span(page)
    await press(page, 'w')
    const near = await span(page)
    assert(near[1] - near[0] < (all[1] - all[0]) * 0.8, 'W zooms in')
    await press(page, 'd')
    assert((await span(page))[0] > near[0], 'D moves right')
    await press(page, 'ArrowLeft')
    assert(Math.abs((await span(page))[0] - near[0]) < (near[1] - near[0]) * 0.02, 'the left arrow moves back')
    await press(page, 's')
    assert((await span(page))[1] - (await span(page))[0] > near[1] - near[0], 'S zooms out')
    await press(page, 'f')
    assert.deepEqual(await span(page), all, 'F shows everything')
    for (const [index, view] of views.entries()) {
        await press(page, String(index + 1))
        assert.equal((await state(page)).view, view)
        assert(await page.locator(`#pane-${view}`).isVisible())
    }
    await press(page, '1')
    await press(page, 'm')
    assert.equal((await state(page)).marks.length, 1, 'M sets a mark')
    await press(page, '?')
    assert(await page.locator('dialog.help').isVisible(), '? shows the keys')
    await press(page, 'Escape')
    assert(!await page.locator('dialog.help').isVisible())
    return page
}

tests['the brush of the overview sets the window'] = async () => {
    const page = await open(server.url)
    const box = await place(page, '.overview canvas')
    const all = await span(page)
    await drag(page, box.x + box.width * 0.25, box.x + box.width * 0.5, box.y + 20)
    const [begin, end] = await span(page)
    assert(Math.abs(begin / all[1] - 0.25) < 0.01 && Math.abs(end / all[1] - 0.5) < 0.01, `brushed ${begin} to ${end} of ${all[1]}`)
    return page
}

tests['a drag selects a time span and every view follows'] = async () => {
    const page = await open(server.url)
    const box = await place(page, 'canvas.boxes')
    await drag(page, box.x + box.width * 0.3, box.x + box.width * 0.6, box.y + 200)
    const { selection } = await state(page)
    assert(selection)
    assert(await page.locator('.selection').isVisible())
    await press(page, '4')
    const table = await page.evaluate(() => globalThis.marey.page.table.table)
    const report = JSON.parse(execFileSync(MAREY_BIN, ['report', '--json', '--begin', `${selection[0]}ns`, '--end', `${selection[1]}ns`, MAREY_CAPTURE], { maxBuffer: 1e9 }))
    assert.equal(table.window_ns, selection[1] - selection[0])
    assert.deepEqual(table.rows, report.rows, 'the table equals the report of the same span')
    await press(page, '2')
    assert(await page.evaluate(() => globalThis.marey.page.flame.flame.total) > 0)
    await press(page, 'Escape')
    assert.equal((await state(page)).selection, null, 'Esc clears the selection')
    return page
}

tests['search counts and marks hits, and Enter goes to the next one'] = async () => {
    const page = await open(server.url)
    await press(page, '/')
    await page.keyboard.type('tokenise')
    await page.waitForFunction(() => / in /.test(document.querySelector('.found').textContent))
    const report = JSON.parse(execFileSync(MAREY_BIN, ['report', '--json', MAREY_CAPTURE], { maxBuffer: 1e9 }))
    const expected = report.rows.filter(row => row.name.includes('tokenise')).reduce((sum, row) => sum + row.count, 0)
    assert.equal(Number((await page.locator('.found').textContent()).split(' ')[0].replace(/,/g, '')), expected)
    assert(await page.evaluate(() => globalThis.marey.page.app.hitMarks[0].length) > 0)
    await press(page, 'Enter')
    const first = (await state(page)).range
    await press(page, 'Enter')
    assert(first && (await state(page)).range[1] !== first[1])
    assert.match(await page.locator('.details h2').textContent(), /tokenise/)
    await press(page, 'Escape')
    assert(await page.evaluate(() => document.activeElement?.tagName !== 'INPUT'), 'Esc leaves the field')
    return page
}

tests['a click shows a range, and brackets go to its neighbours'] = async () => {
    const page = await open(server.url)
    await press(page, '/')
    await page.keyboard.type('tokenise')
    await press(page, 'Enter')
    await press(page, 'Escape')
    const row = (await state(page)).range[1]
    await press(page, ']')
    await page.waitForFunction(before => globalThis.marey.store.state.range[1] !== before, row)
    await press(page, '[')
    await page.waitForFunction(before => globalThis.marey.store.state.range[1] === before, row)
    await press(page, 'f')
    await clickFirstRange(page)
    assert.match(await page.locator('.details .facts').first().textContent(), /Duration/)
    return page
}

tests['the flame graph zooms on a click and Esc goes back'] = async () => {
    const page = await open(server.url)
    await press(page, '2')
    const box = await place(page, '#pane-flame canvas')
    await page.mouse.click(box.x + 40, box.y + 30)
    await page.waitForFunction(() => globalThis.marey.store.state.focus.length === 2)
    await press(page, 'Escape')
    assert.equal((await state(page)).focus.length, 1)
    await press(page, 'Escape')
    assert.equal((await state(page)).focus.length, 0)
    await page.locator('#pane-flame .toggle').click() // roots below
    await settled(page)
    const around = await place(page, '#pane-flame .flame')
    await page.mouse.move(around.x + around.width - 40, around.y + around.height - 10)
    const tip = await place(page, '#pane-flame .tip')
    assert(tip.y + tip.height <= around.y + around.height && tip.x + tip.width <= around.x + around.width, 'the tip of the lowest box can be read')
    return page
}

tests['rows of boxes have the pixels of their boxes'] = async () => {
    const page = await open(server.url)
    const wrong = await page.evaluate(() => {
        const { raster } = globalThis.marey.page.timeline
        let seed = 1
        const random = () => (seed = Math.imul(seed, 1103515245) + 12345 >>> 0) / 2 ** 32
        const canvas = document.createElement('canvas'), context = canvas.getContext('2d', { willReadFrequently: true })
        const wrong = []
        for (let round = 0; round < 300; round++) {
            const origin = [0, 17.5, -40][random() * 3 | 0], perPixel = [1, 0.5, 3, 1e-9][random() * 4 | 0]
            const levels = 1 + random() * 5 | 0, width = 20 + random() * 200 | 0, longest = [2, 9, 60, 1000][random() * 4 | 0], begin = [], end = [], first = [0]
            for (let level = 0; level < levels; level++) {
                for (let at = (random() - 0.5) * 300; at < width * (0.5 + random());) {
                    begin.push(at)
                    at += random() < 0.2 ? 0 : random() * longest
                    end.push(at)
                    if (random() < 0.4) at += random() * 5
                    else at = Math.round(at * 8) / 8
                }
                const edge = origin + (width - 0.005) * perPixel // rounds to the first pixel outside
                if (random() < 0.2 && edge > end.at(-1)) {
                    begin.push(edge)
                    end.push(edge + 9)
                }
                first.push(begin.length)
            }
            const boxes = { begin: Float64Array.from(begin), end: Float64Array.from(end), name: Uint32Array.from(begin, (_, i) => i % 7), sites: Uint32Array.of(0, 1, 2, 3, 4, 5, 6), first: Uint32Array.from(first), levels }
            canvas.width = width + 3
            canvas.height = levels * 2 + 1
            raster.draw(context, boxes, { begin: origin, perPixel, width }, 2, 0, 2, site => (0xff000000 | (site + 1) * 9) >>> 0)
            // One pixel after the other. A box of four pixels or more ends with an empty one, unless it goes on outside.
            const expected = new Array(canvas.width * canvas.height).fill(0)
            for (let level = 0; level < levels; level++)
                for (let i = first[level]; i < first[level + 1]; i++) {
                    const from = (begin[i] - origin) / perPixel, to = (end[i] - origin) / perPixel
                    if (to < 0 || from + 0.01 >= width) continue
                    const left = Math.max(0, Math.floor(from + 0.01)), touched = Math.min(width, Math.floor(to + 0.99)) - left
                    const wide = touched < 4 ? Math.max(1, Math.min(2, touched)) : Math.max(2, (to >= width ? width : Math.floor(to + 0.01) - 1) - left)
                    for (let x = left; x < left + wide; x++) for (const y of [0, 1]) expected[(level * 2 + y) * canvas.width + x + 2] = (i % 7 + 1) * 9
                }
            const drawn = context.getImageData(0, 0, canvas.width, canvas.height).data
            const different = expected.findIndex((value, i) => drawn[i * 4] !== value)
            if (different >= 0) wrong.push(`round ${round}: pixel ${different % canvas.width} of row ${different / canvas.width | 0}: ${drawn[different * 4]} instead of ${expected[different]}`)
        }
        return wrong
    })
    assert.deepEqual(wrong, [])
    return page
}

tests['the table equals marey report'] = async () => {
    const page = await open(server.url)
    await press(page, '4')
    const shown = await page.evaluate(() => globalThis.marey.page.table.table.rows)
    const report = JSON.parse(execFileSync(MAREY_BIN, ['report', '--json', MAREY_CAPTURE], { maxBuffer: 1e9 }))
    assert.equal(shown.length, report.rows.length)
    const byName = new Map(shown.map(row => [row.name + row.device_type, row]))
    for (const row of report.rows)
        for (const [key, value] of Object.entries(row)) assert.deepEqual(byName.get(row.name + row.device_type)[key], value, `${row.name}: ${key}`)
    assert.match(await page.locator('#pane-table .grid-body .grid-row').first().textContent(), new RegExp(report.rows[0].name))
    await page.locator('#pane-table [role=columnheader] button', { hasText: 'Calls' }).click()
    await settled(page)
    const most = Math.max(...report.rows.map(row => row.count))
    assert((await page.locator('#pane-table .grid-body .grid-row').first().textContent()).includes(most.toLocaleString('en')))
    assert(await page.evaluate(() => { const body = document.querySelector('#pane-table .grid-body'); return body.scrollWidth <= body.clientWidth }), 'no column is cut off')
    await page.evaluate(() => globalThis.marey.store.set({ by: 'file' }))
    await settled(page)
    await page.locator('#pane-table .grid-row .text', { hasText: /^search_index.cpp$/ }).waitFor() // without the folder of all files
    return page
}

tests['a row of the table leads to the sandwich'] = async () => {
    const page = await open(server.url)
    await press(page, '4')
    await page.locator('#pane-table .grid-row', { hasText: 'tokenise' }).first().click()
    await page.waitForFunction(() => globalThis.marey.store.state.view === 'sandwich')
    await page.waitForFunction(() => /calls/.test(document.querySelector('#pane-sandwich .note').textContent))
    assert.equal((await state(page)).name, 'tokenise')
    const caller = await page.evaluate(() => globalThis.marey.page.sandwich.callers.flame.names)
    assert(caller.includes('paragraph') || caller.length > 1)
    return page
}

tests['a link restores the state and Back undoes it'] = async () => {
    const page = await open(server.url)
    const box = await place(page, 'canvas.boxes')
    await drag(page, box.x + box.width * 0.3, box.x + box.width * 0.6, box.y + 200)
    await press(page, '4')
    await page.locator('#pane-table [role=columnheader] button', { hasText: 'Calls' }).click()
    await page.waitForTimeout(400) // the fragment follows continuous changes with a delay
    const link = page.url(), before = await state(page)
    const other = await open(link)
    assert.deepEqual(await state(other), before)
    await other.context().close()
    await page.goBack()
    await page.waitForFunction(() => globalThis.marey.store.state.view === 'timeline')
    assert((await state(page)).selection)
    await page.goBack()
    await page.waitForFunction(() => globalThis.marey.store.state.selection === null)
    return page
}

tests['dark mode follows the system and T switches'] = async () => {
    const page = await open(server.url, { colorScheme: 'dark' })
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    const dark = await background()
    await press(page, 't')
    assert.notEqual(await background(), dark)
    assert.equal((await state(page)).theme, 'light')
    return page
}

tests['axe-core finds no serious fault'] = async () => {
    for (const colorScheme of ['light', 'dark']) {
        const page = await open(server.url, { colorScheme, bypassCSP: true })
        await page.evaluate(fs.readFileSync(modules.resolve('axe-core/axe.min.js'), 'utf8'))
        for (const [index, view] of views.entries()) {
            await press(page, String(index + 1))
            const { violations } = await page.evaluate(() => globalThis.axe.run())
            const serious = violations.filter(fault => ['serious', 'critical'].includes(fault.impact))
            assert.deepEqual(serious.map(fault => `${view}: ${fault.id}: ${fault.nodes.map(node => node.html).slice(0, 3).join(' ')}`), [])
        }
        await page.context().close()
    }
}

tests['a hostile trace stays text'] = async () => {
    const nasty = ['</script><script>alert(1)</script>', '<img src=x onerror=alert(2)>', '"><svg onload=alert(3)>', 'abc\u202Egpj.exe', 'javascript:alert(4)',
        '${alert(5)}', 'x'.repeat(1 << 20), '\u0000\u0007\u001b[31m', '<!--', 'https://example.com/a.png', '']
    const events = nasty.flatMap((name, i) => [
        { ph: 'X', name, cat: name.slice(0, 99), pid: 1, tid: 1, ts: i * 1000, dur: 900, args: { [name.slice(0, 99) || 'k']: name.slice(0, 9999) } },
        { ph: 'X', name: `inner ${i}`, pid: 1, tid: 1, ts: i * 1000 + 100, dur: 500 }])
    events.push({ ph: 'M', name: 'thread_name', pid: 1, tid: 1, args: { name: nasty[0] } }, { ph: 'M', name: 'process_name', pid: 1, args: { name: nasty[1] } })
    const file = path.join(MAREY_OUT, 'hostile.json')
    fs.writeFileSync(file, JSON.stringify({ traceEvents: events }))
    const hostile = await serve(file)
    const page = await open(hostile.url)
    await clickFirstRange(page)
    await press(page, '/')
    await page.keyboard.type('<')
    await press(page, 'Enter')
    await press(page, 'Escape')
    for (const index of views.keys()) await press(page, String(index + 1))
    await press(page, '4')
    const cells = await page.locator('#pane-table .grid-row .cell').allTextContents()
    assert(cells.includes(nasty[0]), 'markup is shown as text')
    assert.equal(await page.locator('#app script, #app img, #app svg').count(), 0)
    assert.equal(await page.evaluate(() => document.body.innerText.includes('\u202e')), false)
    hostile.close()
    return page
}

tests['odd traces are shown without a fault'] = async () => {
    const range = (name, ts, dur, tid = 1) => ({ ph: 'X', name, pid: 1, tid, ts, dur })
    const odd = {
        empty: [], one: [range('only', 5, 0)], equal: Array.from({ length: 50 }, (_, i) => range(`same ${i % 3}`, 7, i % 2 ? 0 : 4)),
        unfinished: [{ ph: 'B', name: 'open', pid: 1, tid: 1, ts: 1 }, range('inside', 2, 3)],
        deep: Array.from({ length: 100_000 }, (_, i) => range('recurse', i, 200_000 - 2 * i)),
        tracks: Array.from({ length: 20_000 }, (_, i) => range('work', i % 100, 10, i + 1)),
    }
    for (const [name, traceEvents] of Object.entries(odd)) {
        const file = path.join(MAREY_OUT, `odd_${name}.json`)
        fs.writeFileSync(file, JSON.stringify({ traceEvents }))
        const shown = await serve(file), page = await open(shown.url)
        assert.equal(await page.locator('.message', { hasText: 'This trace is empty.' }).isVisible(), name === 'empty')
        assert.equal(await page.evaluate(() => globalThis.marey.data.outline.traces[0].range_count), traceEvents.length, name)
        for (const index of views.keys()) await press(page, String(index + 1))
        await press(page, '1')
        for (const key of ['w', 'd', 's', 'f', '[', ']', 'Escape']) await press(page, key)
        if (name === 'deep' || name === 'tracks') await page.evaluate(() => { document.querySelector('.lanes').scrollTop = 1e6 })
        await settled(page)
        assert.deepEqual(page.faults, [], name)
        await page.context().close()
        shown.close()
    }
}

tests['R reads a file again that has grown'] = async () => {
    const file = path.join(MAREY_OUT, 'growing.json')
    const write = count => fs.writeFileSync(file, JSON.stringify({ traceEvents: Array.from({ length: count }, (_, i) => ({ ph: 'X', name: `range ${i}`, pid: 1, tid: 1, ts: i * 10, dur: 5 })) }))
    write(2)
    const growing = await serve(file), page = await open(growing.url)
    await press(page, '4')
    write(5)
    await press(page, 'r')
    await page.waitForFunction(() => globalThis.marey.data.outline.traces[0].range_count === 5)
    await settled(page)
    assert.equal(await page.locator('#pane-table .grid-body .grid-row').count(), 5)
    assert.match(await page.locator('.details').textContent(), /Ranges5/)
    growing.close()
    return page
}

tests['an HTML report works from a file without a network'] = async () => {
    const file = path.join(MAREY_OUT, 'report.html')
    execFileSync(MAREY_BIN, ['report', '--html', '-o', file, MAREY_CAPTURE], { stdio: 'ignore' })
    assert(fs.statSync(file).size < 3e6, `${fs.statSync(file).size} bytes`)
    const page = await open(`file://${file}`, { offline: true })
    await page.screenshot({ path: path.join(MAREY_OUT, 'report.png') })
    assert.match(await page.locator('.details').textContent(), /ranges are drawn as .* boxes/)
    const coloured = await page.evaluate(() => {
        const canvas = document.querySelector('canvas.boxes')
        return new Set(new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size
    })
    assert(coloured > 10, `the timeline has ${coloured} colours`)
    const box = await place(page, 'canvas.boxes')
    await page.mouse.click(box.x + box.width * 0.5, box.y + 40)
    assert.match(await page.locator('.details').textContent(), /About .* from/)
    await press(page, 'Escape')
    assert.match(await page.locator('.details h2').first().textContent(), /Whole trace/)
    await press(page, '4')
    assert(await page.locator('#pane-table .grid-body .grid-row').count() > 5)
    await press(page, '3')
    assert.match(await page.locator('#pane-sandwich .note').textContent(), /calls/)
    await press(page, '2')
    assert(await page.evaluate(() => globalThis.marey.page.flame.flame.nodes.length) > 5)
    return page
}

tests['two traces are shown one above the other'] = async () => {
    const other = path.join(MAREY_OUT, 'other.json') // another run: captures of one run are one trace
    fs.writeFileSync(other, JSON.stringify(gpuTrace()))
    const both = await serve(MAREY_CAPTURE, other)
    const page = await open(both.url)
    const groups = await page.evaluate(() => globalThis.marey.page.timeline.lanes.filter(lane => lane.kind === 'group').map(lane => lane.trace))
    assert.deepEqual([...new Set(groups)], [0, 1])
    both.close()
    return page
}

// A loop of six steps that starts after some time. In the new one, `train` takes longer, `check` is new and `log` is gone.
function steppedTrace(isNew) {
    const from = isNew ? 3000 : 1000, events = [{ ph: 'X', name: 'prepare', pid: 1, tid: 1, ts: 0, dur: from - 10 }]
    for (let step = 0, at = from; step < 6; step++, at += isNew ? 1300 : 1000)
        events.push({ ph: 'X', cat: 'user_annotation', name: `ProfilerStep#${step}`, pid: 1, tid: 1, ts: at, dur: isNew ? 1200 : 900 }, { ph: 'X', name: 'train', pid: 1, tid: 1, ts: at + 10, dur: isNew ? 900 : 500 },
            { ph: 'X', name: isNew ? 'check' : 'log', cat: isNew ? 'cpu_op' : 'user_annotation', pid: 1, tid: 1, ts: at + 1000 - (isNew ? 0 : 400), dur: 150 })
    return { traceEvents: events }
}

function steppedFiles() {
    return ['old', 'new'].map(name => {
        const file = path.join(MAREY_OUT, `${name}.json`)
        fs.writeFileSync(file, JSON.stringify(steppedTrace(name === 'new')))
        return file
    })
}

tests['two timelines are aligned by step, or by start'] = async () => {
    const both = await serve(...steppedFiles())
    const page = await open(both.url)
    const begins = number => page.evaluate(number => {
        const { page, data } = globalThis.marey
        return page.timeline.steps.map((steps, trace) => steps.find(step => step.number === number).begin + data.shift(trace))
    }, number)
    await page.waitForFunction(() => globalThis.marey.page.timeline.aligns)
    await settled(page)
    assert.deepEqual(await begins(0), [3_000_000, 3_000_000], 'both first steps start together')
    for (let i = 0; i < 4; i++) await press(page, '.')
    const [left, right] = await begins(3)
    assert.equal(left, right, 'the fourth steps start together')
    const [begin, end] = await span(page)
    assert(begin < left && end > left + 1_200_000 && end - begin < 2_000_000, 'the window is that of the step')
    assert.match(await page.locator('.alignment').textContent(), /aligned at step 3/)
    await clickLane(page, 1)
    assert.equal((await state(page)).range[0], 1)
    const start = await page.evaluate(() => globalThis.marey.page.timeline.selected.range)
    assert(start.start_ns <= 3_000_000 + 3 * 1_300_000 + 1_200_000 && start.start_ns >= 3_000_000 + 3 * 1_300_000 - 100_000, 'a click finds the range under it')
    await press(page, ',')
    assert.equal((await state(page)).align, '2')
    await page.locator('.alignment .toggle').click()
    await settled(page)
    assert.deepEqual(await begins(0), [1_000_000, 3_000_000], 'aligned by their start')
    both.close()
    return page
}

// Clicks on the second level in the middle of the first track of a trace.
async function clickLane(page, trace) {
    const top = await page.evaluate(trace => globalThis.marey.page.timeline.lanes.find(lane => lane.kind === 'ranges' && lane.trace === trace).top, trace)
    const box = await place(page, 'canvas.boxes')
    await page.mouse.click(box.x + box.width * 0.4, box.y + top + 9)
    await page.waitForFunction(() => globalThis.marey.page.timeline.selected !== null)
    await settled(page)
}

async function checkChanges(page, files) {
    await page.waitForFunction(() => globalThis.marey.page.changes.flame && !document.querySelector('.view.busy'))
    const diff = JSON.parse(execFileSync(MAREY_BIN, ['diff', '--json', ...files]))
    const { flame, result } = await page.evaluate(() => ({ flame: globalThis.marey.page.changes.flame, result: globalThis.marey.page.changes.result }))
    assert.deepEqual(result.diff_rows, diff.diff_rows, 'the rows are those of marey diff')
    const nodes = new Map(flame.nodes.map(([, name, width, , , compared]) => [flame.names[name], { width, before: compared[0], after: compared[1], match: compared[6] }]))
    assert.equal(nodes.get('log').match, 'gone')
    assert.equal(nodes.get('log').width, nodes.get('log').before * 1000, 'a gone path keeps its width')
    assert.equal(nodes.get('check').match, 'new')
    const roots = flame.nodes.filter(([parent]) => parent < 0).map(node => node[5])
    assert.equal(roots.reduce((sum, [before, after]) => sum + after - before, 0), diff.diff.difference, 'the differences add up')
    const names = () => page.locator('#pane-changes .grid-body .grid-row .cell:first-child').allTextContents()
    assert((await names()).includes('train'))
    await page.locator('#pane-changes label select').selectOption('gone')
    assert.deepEqual(await names(), ['log'], 'gone paths are listed')
    await page.locator('#pane-changes .grid-body').focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForFunction(() => globalThis.marey.store.state.focus.at(-1) === 'log')
    assert(await page.evaluate(() => document.activeElement.className === 'grid-body'), 'the focus stays in the list')
    await press(page, 'Escape')
    await press(page, 'Escape')
    await page.locator('#pane-changes .flame').focus()
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowRight', 'Enter']) await page.keyboard.press(key)
    await page.waitForFunction(() => globalThis.marey.store.state.focus.length > 0)
    assert.match(await page.locator('#pane-changes .tip').textContent(), / → /)
    assert.match(await page.locator('.details').textContent(), /What changed.*One run each.*Counts that differ/)
    await page.evaluate(() => globalThis.marey.store.set({ focus: [], kind: '' }))
}

tests['what changed is drawn, listed and reached by keys'] = async () => {
    const files = steppedFiles()
    const both = await serve(...files)
    for (const [width, colorScheme] of [[1600, 'dark'], [600, 'light']]) {
        const page = await open(both.url, { colorScheme, viewport: { width, height: 900 }, bypassCSP: true })
        await press(page, '7')
        await checkChanges(page, files)
        assert(await page.evaluate(() => document.scrollingElement.scrollWidth <= innerWidth), 'nothing lies beside the page')
        await page.evaluate(fs.readFileSync(modules.resolve('axe-core/axe.min.js'), 'utf8'))
        const { violations } = await page.evaluate(() => globalThis.axe.run())
        assert.deepEqual(violations.filter(fault => ['serious', 'critical'].includes(fault.impact)).map(fault => `${fault.id}: ${fault.nodes[0].html}`), [])
        await page.screenshot({ path: path.join(MAREY_OUT, `changes_${colorScheme}_${width}.png`) })
        assert.deepEqual(page.faults, [])
        await page.context().close()
    }
    both.close()
}

tests['marey diff --html shows the same without a server'] = async () => {
    const files = steppedFiles(), html = path.join(MAREY_OUT, 'changes.html')
    execFileSync(MAREY_BIN, ['diff', ...files, '--html', html, '--force'], { stdio: 'ignore' })
    const page = await open(`file://${html}`)
    assert.equal((await state(page)).view, 'changes')
    await checkChanges(page, files)
    for (const key of '1234567') await press(page, key)
    return page
}

tests['findings are listed beside the timeline and lead to their place'] = async () => {
    const events = []
    for (let step = 0, at = 0; step < 20; step++) {
        const long = step === 12 ? 40_000 : 1000
        events.push({ ph: 'X', cat: 'user_annotation', name: `ProfilerStep#${step}`, pid: 1, tid: 1, ts: at, dur: long + 1100 }, { ph: 'X', name: 'train', pid: 1, tid: 1, ts: at + 10, dur: 1000 },
            { ph: 'X', name: 'save', pid: 1, tid: 1, ts: at + 1050, dur: long })
        at += long + 1200
    }
    const file = path.join(MAREY_OUT, 'outlier.json')
    fs.writeFileSync(file, JSON.stringify({ traceEvents: events }))
    const server = await serve(file)
    const page = await open(server.url)
    const button = page.locator('.findings button').first()
    const { claim } = JSON.parse(execFileSync(MAREY_BIN, ['explain', '--json', file])).findings[0]
    await button.waitFor()
    assert((await button.textContent()).startsWith(claim))
    await button.focus()
    await page.keyboard.press('Enter')
    await page.waitForFunction(() => globalThis.marey.page.timeline.selected)
    assert.match(await page.locator('.details').textContent(), /Evidence.*What to do.*See/)
    const { start_ns, duration_ns } = await page.evaluate(() => globalThis.marey.page.timeline.selected.range)
    const [begin, end] = await span(page)
    assert(begin <= start_ns && end >= start_ns + duration_ns && duration_ns > 30e6, 'the place is in view')
    await press(page, 'Escape')
    assert.match(await page.locator('.details h2').first().textContent(), /Whole trace/)
    server.close()
    return page
}

// Thirty launches from one thread, each of a kernel on one of two streams.
function gpuTrace() {
    const events = [{ ph: 'M', name: 'process_name', pid: 1, args: { name: 'train' } }, { ph: 'X', cat: 'user_annotation', name: 'epoch', pid: 1, tid: 1, ts: 0, dur: 3000 }]
    for (let i = 0; i < 30; i++) {
        events.push({ ph: 'X', cat: 'cpu_op', name: 'aten::mm', pid: 1, tid: 1, ts: i * 100, dur: 40 },
            { ph: 'X', cat: 'cuda_runtime', name: 'cudaLaunchKernel', pid: 1, tid: 1, ts: i * 100 + 10, dur: 20, args: { correlation: i + 1 } },
            { ph: 'X', cat: 'kernel', name: `gemm_${i % 3}`, pid: 0, tid: 7 + i % 2, ts: i * 100 + 50, dur: 30 + i, args: { device: 0, stream: 7 + i % 2, correlation: i + 1 } })
    }
    return { traceEvents: events }
}

tests['a GPU trace shows streams, arrows from launches, and the report'] = async () => {
    const file = path.join(MAREY_OUT, 'gpu.json')
    fs.writeFileSync(file, JSON.stringify(gpuTrace()))
    const gpu = await serve(file)
    const page = await open(gpu.url)
    const streams = await page.evaluate(() => globalThis.marey.page.timeline.lanes.filter(lane => lane.kind === 'ranges' && lane.device).map(lane => lane.title))
    assert.deepEqual(streams, ['stream 7', 'stream 8'])
    await press(page, '/')
    await page.keyboard.type('cudaLaunchKernel')
    await press(page, 'Enter')
    await press(page, 'Escape')
    await page.waitForFunction(() => globalThis.marey.page.timeline.arrows.arrows.some(arrow => arrow.kind === 'launch'))
    assert.match(await page.locator('.details').textContent(), /gemm_0/)
    await page.evaluate(() => globalThis.marey.store.set({ range: null }))
    await press(page, '/')
    await page.keyboard.type('epoch')
    await press(page, 'Enter')
    await press(page, 'Escape')
    await page.waitForFunction(() => globalThis.marey.page.timeline.selected?.range.name === 'epoch')
    await settled(page)
    assert.deepEqual(await page.evaluate(() => globalThis.marey.page.timeline.arrows.arrows), [], 'the 30 arrows of the ranges inside would hide the timeline')
    await press(page, '6')
    const report = JSON.parse(execFileSync(MAREY_BIN, ['gpu', '--json', file]))
    const shown = await page.locator('#pane-devices').textContent()
    for (const kernel of report.gpu_kernels) assert(shown.includes(kernel.name), kernel.name)
    gpu.close()
    return page
}

tests['the slowest step leads to the function at fault'] = async () => {
    const events = []
    for (let step = 0; step < 9; step++) {
        const load = step === 5 ? 700 : 100
        events.push({ ph: 'X', cat: 'user_annotation', name: `ProfilerStep#${step}`, pid: 1, tid: 1, ts: step * 2000, dur: load + 500 },
            { ph: 'X', name: 'load batch', pid: 1, tid: 1, ts: step * 2000 + 10, dur: load + 20 }, { ph: 'X', name: 'read file', pid: 1, tid: 1, ts: step * 2000 + 20, dur: load },
            { ph: 'X', name: 'train', pid: 1, tid: 1, ts: step * 2000 + load + 100, dur: 300 },
            { ph: 'X', name: 'a.py(3): fetch', pid: 1, tid: 2, ts: step * 2000 + 20, dur: load - 50 }, { ph: 'X', name: 'idle', pid: 1, tid: 2, ts: step * 2000 + 900, dur: 5 })
    }
    const file = path.join(MAREY_OUT, 'steps.json')
    fs.writeFileSync(file, JSON.stringify({ traceEvents: events }))
    const stepped = await serve(file)
    const page = await open(stepped.url)
    await press(page, '5')
    assert.equal(await page.locator('.step-table').count(), 1, 'only steps above the median are compared with it')
    assert.match(await page.locator('.step-table h3').textContent(), /ProfilerStep#5 1.20 ms, 600 µs over the median/)
    const row = page.locator('.step-table .grid-row', { hasText: 'read file' })
    assert.deepEqual(await row.locator('.cell').allTextContents(), ['read file', 'own thread', '+600 µs', '1', '700 µs', '100 µs', '+600 µs'])
    const names = () => page.locator('.step-table .grid-body .grid-row .cell:first-child').allTextContents()
    assert.deepEqual(await names(), ['load batch', 'read file', 'fetch (a.py:3)'], 'also of other threads, without those that do not differ')
    await page.locator('.step-table [role=columnheader] button', { hasText: 'Self difference' }).click()
    assert.deepEqual(await names(), ['read file', 'fetch (a.py:3)', 'load batch'], 'sorted by the column')
    await row.click()
    await page.waitForFunction(() => globalThis.marey.store.state.view === 'sandwich')
    assert.equal((await state(page)).name, 'read file')
    await page.goBack()
    await page.waitForFunction(() => globalThis.marey.store.state.view === 'steps')
    await page.locator('.step-table h3 button').click()
    await page.waitForFunction(() => globalThis.marey.store.state.view === 'timeline')
    await settled(page)
    assert.deepEqual((await state(page)).selection, [10_000_000, 11_200_000])
    stepped.close()
    return page
}

tests['a program that runs is followed until it ends'] = async () => {
    const capture = path.join(MAREY_OUT, 'live.marey')
    const program = spawn(MAREY_BIN, ['run', '-q', '--force', '-o', capture, '--', MAREY_LIVE], { stdio: ['pipe', 'pipe', 'ignore'] })
    await new Promise(done => program.stdout.once('data', done))
    const live = await serve(capture)
    const page = await open(live.url)
    const button = page.locator('button.live')
    const generation = () => page.evaluate(() => globalThis.marey.data.outline.traces[0].generation)
    const ranges = () => page.evaluate(() => globalThis.marey.data.outline.traces[0].range_count)
    const first = await ranges()
    await page.keyboard.press('l')
    assert.equal(await button.getAttribute('aria-pressed'), 'true')
    await page.waitForFunction(count => globalThis.marey.data.outline.traces[0].range_count > count, first, { timeout: 20000 })
    const now = await generation()
    await page.waitForFunction(number => globalThis.marey.data.outline.traces[0].generation >= number + 2, now, { timeout: 20000 })
    await page.screenshot({ path: path.join(MAREY_OUT, 'live.png') })
    program.stdin.end()
    await new Promise(done => program.on('exit', done))
    await page.waitForFunction(() => document.querySelector('button.live').hidden, null, { timeout: 20000 })
    await settled(page)
    assert.equal(await button.getAttribute('aria-pressed'), 'false')
    const whole = JSON.parse(execFileSync(MAREY_BIN, ['report', '--json', capture])).range_count
    assert.equal(await ranges(), whole)
    live.close()
    return page
}

tests['a snapshot opens at its reason'] = async () => {
    const folder = fs.mkdtempSync(path.join(MAREY_OUT, 'watched-'))
    const program = spawn(MAREY_BIN, ['run', '-q', '-o', path.join(folder, 'x.marey'), '--last', '5s', '--when', 'handle > p99', '--after', '0s', '--', MAREY_LIVE],
        { stdio: ['pipe', 'pipe', 'ignore'] })
    const written = () => fs.readdirSync(folder).find(name => name.includes('slow-handle') && name.endsWith('.marey'))
    for (let i = 0; i < 300 && !written(); i++) await new Promise(done => setTimeout(done, 100))
    program.stdin.end()
    await new Promise(done => program.on('exit', done))
    const server = await serve(path.join(folder, written()))
    const page = await open(server.url)
    const [begin, end] = (await state(page)).selection
    assert(end - begin > 500_000 && end - begin < 1_000_000_000)
    assert.match(await page.locator('.details').textContent(), /Snapshothandle took .* \(limit p99: /)
    await page.screenshot({ path: path.join(MAREY_OUT, 'reason.png') })
    server.close()
    return page
}

tests['ten million ranges are drawn, counted and found'] = async () => {
    const large = await serve(MAREY_LARGE)
    const page = await open(large.url)
    const boxes = () => page.evaluate(() => [...globalThis.marey.page.timeline.pictures.have.values()].map(entry => entry.boxes?.begin.length ?? 0))
    assert((await boxes()).every(count => count > 100 && count < 200_000), `${await boxes()} boxes`)
    await press(page, '4')
    const table = await page.evaluate(() => globalThis.marey.page.table.table)
    const report = JSON.parse(execFileSync(MAREY_BIN, ['report', '--json', MAREY_LARGE], { maxBuffer: 1e9 }))
    assert.equal(report.range_count, 10_000_000)
    assert.deepEqual(table.rows, report.rows)
    await press(page, '1')
    await press(page, '/')
    await page.keyboard.type('compress')
    await page.waitForFunction(() => / in /.test(document.querySelector('.found').textContent))
    assert.equal(Number((await page.locator('.found').textContent()).split(' ')[0].replace(/,/g, '')), report.rows.find(row => row.name === 'compress').count)
    await press(page, 'Enter')
    await press(page, 'Escape')
    await press(page, 'Escape')
    for (let i = 0; i < 12; i++) await press(page, 'w')
    const heap = await page.evaluate(() => performance.memory.usedJSHeapSize)
    assert(heap < 300e6, `the page uses ${heap} bytes`)
    assert((await boxes()).some(count => count > 0))
    const html = path.join(MAREY_OUT, 'large.html')
    execFileSync(MAREY_BIN, ['report', '--html', '-o', html, MAREY_LARGE], { stdio: 'ignore' })
    assert(fs.statSync(html).size < 3e6, `the report has ${fs.statSync(html).size} bytes`)
    large.close()
    return page
}

const slow = ['axe-core', 'odd traces', 'ten million']
let failures = 0
for (const [name, test] of Object.entries(tests)) {
    if (!name.includes(MAREY_ONLY) || (MAREY_FAST && slow.some(each => name.startsWith(each)))) continue
    try {
        const page = await test()
        if (page) {
            assert.deepEqual(page.faults, [])
            await page.context().close()
        }
        console.log(`marey view: ok: ${name}`)
    } catch (error) {
        failures++
        console.log(`marey view: FAILED: ${name}\n${error.stack}`)
        await Promise.all(browser.contexts().map((context, i) => context.pages()[0]?.screenshot({ path: path.join(MAREY_OUT, `failed_${failures}_${i}.png`) })))
        await Promise.all(browser.contexts().map(context => context.close()))
    }
}
for (const each of servers) each.kill('SIGINT') // also those of tests that failed
await browser.close()
process.exit(failures > 0 ? 1 : 0)
