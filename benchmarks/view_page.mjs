// view_page.mjs ADDRESS MODULES: the page of `marey view` in a headless browser without a GPU: the time of a frame of 60,000
// boxes and 600 labels, beside stretching one image and drawing 600 texts, and the page's memory.
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'

const [, , address, modules] = process.argv
const { chromium } = createRequire(modules + '/')('playwright-core')
const executablePath = process.env.CHROMIUM ?? execFileSync('sh', ['-c', 'command -v chromium || command -v chromium-browser || command -v google-chrome'], { encoding: 'utf8' }).trim()
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--enable-precise-memory-info'] })
const page = await browser.newPage({ viewport: { width: 1920, height: 1200 } })
const print = line => console.log(JSON.stringify(line))

const begin = performance.now()
await page.goto(address)
await page.waitForFunction(() => globalThis.marey?.data.outline.traces[0]?.window)
print({ name: 'view_first_paint', value: Math.round(performance.now() - begin) / 1000, unit: 's', target: '<= 1 s' })
await page.waitForFunction(() => globalThis.marey.data.outline.traces[0].state === 'ready', null, { timeout: 300000 })
await page.waitForFunction(() => document.querySelector('.timeline').dataset.ready === '1', null, { timeout: 300000 })

// Boxes as the server sends them, 40 levels of 1,500, every fifth of them wide enough for a label on some levels.
const times = await page.evaluate(() => {
    const { timeline, app } = globalThis.marey.page
    const levels = 40, perLevel = 1500, labels = 600, pixels = 1900
    const canvas = document.createElement('canvas')
    canvas.width = pixels
    canvas.height = levels * 18
    const context = canvas.getContext('2d')
    const sites = new Uint32Array(16).map((_, i) => i)
    const count = levels * perLevel
    const boxes = { begin: new Float64Array(count), end: new Float64Array(count), depth: new Uint32Array(count), name: new Uint32Array(count),
        sites, merged: new Uint8Array(count), first: new Uint32Array(levels + 1), levels }
    for (let level = 0; level < levels; level++) {
        boxes.first[level + 1] = (level + 1) * perLevel
        for (let i = 0; i < perLevel; i++) {
            const at = level * perLevel + i
            boxes.begin[at] = i * pixels / perLevel
            boxes.end[at] = (i + 1) * pixels / perLevel
            boxes.depth[at] = level
            boxes.name[at] = (i * 7 + level) % 16
        }
    }
    const texts = () => {
        context.fillStyle = '#000'
        for (let i = 0; i < labels; i++) context.fillText('accept_request', i % 15 * 126, (i / 15 | 0) * 18 + 9)
    }
    const rows = document.createElement('canvas')
    rows.width = pixels
    rows.height = levels
    rows.getContext('2d').fillRect(0, 0, pixels, levels)
    const done = () => context.getImageData(0, 0, 1, 1) // waits until it is drawn
    const measure = work => {
        const start = performance.now()
        work()
        done()
        return performance.now() - start
    }
    const colours = sites.map(site => app.theme.boxes[site % app.theme.boxes.length])
    const frame = [], floor = []
    for (let i = 0; i < 31; i++) {
        floor.push(measure(() => {
            context.clearRect(0, 0, canvas.width, canvas.height)
            context.imageSmoothingEnabled = false
            context.drawImage(rows, 0, 0, pixels, levels, 0, 0, pixels, levels * 18)
            texts()
        }))
        frame.push(measure(() => {
            context.clearRect(0, 0, canvas.width, canvas.height)
            timeline.raster.draw(context, boxes, { begin: 0, perPixel: 1, width: pixels }, 0, 0, 18, site => colours[site])
            texts()
        }))
    }
    const median = values => values.sort((a, b) => a - b)[values.length >> 1]
    return { frame: median(frame), floor: median(floor) }
})
const round = value => Math.round(value * 100) / 100
print({ name: 'view_frame', value: round(times.frame), unit: 'ms', against: 'one image and 600 texts', against_value: round(times.floor), ratio: round(times.frame / times.floor), target: '<= 1.3' })

for (const key of ['2', '4', '1']) {
    await page.keyboard.press(key)
    await page.waitForTimeout(300)
    await page.waitForFunction(() => !document.querySelector('.view.busy'), null, { timeout: 300000 })
}
const heap = await page.evaluate(() => performance.memory.usedJSHeapSize)
print({ name: 'view_page_heap', value: Math.round(heap / 1e5) / 10, unit: 'MB', target: '<= 300 MB' })
await browser.close()
