// pictures.mjs MAREY TRACE FOLDER: takes the pictures of the documents in the page of `marey view`. `make pictures` runs it.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import path from 'node:path'

const [marey, trace, folder] = process.argv.slice(2)
const { MAREY_MODULES, CHROMIUM } = process.env
const { chromium } = createRequire(MAREY_MODULES + '/')('playwright-core')

const server = spawn(marey, ['view', '--no-browser', trace], { stdio: ['ignore', 'pipe', 'inherit'] })
const address = await new Promise((found, failed) => {
    let text = ''
    server.stdout.on('data', bytes => {
        text += bytes
        const match = /http:\S+/.exec(text)
        if (match) found(match[0])
    })
    server.on('exit', () => failed(new Error(`marey view ended: ${text}`)))
})
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] })

// Takes one picture after `prepare(page)`. The README shows pictures about 900 pixels wide.
async function picture(name, prepare, { colorScheme = 'light', height = 620 } = {}) {
    const page = await browser.newPage({ viewport: { width: 1180, height }, deviceScaleFactor: 1600 / 1180, colorScheme })
    await page.goto(address)
    await page.waitForSelector('.timeline[data-ready="1"]')
    await prepare(page)
    await page.waitForTimeout(1000) // until the names have arrived and are drawn
    await page.screenshot({ path: path.join(folder, name) })
    await page.close()
}

// Shows the shortest step, which other programs on the machine disturbed least, and the step after it.
const step = page => page.evaluate(() => {
    const { steps, app } = globalThis.marey.page.timeline
    const shortest = steps.slice(0, -1).reduce((a, b) => (b.end - b.begin < a.end - a.begin ? b : a))
    app.store.set({ window: [shortest.begin, shortest.begin + (shortest.end - shortest.begin) * 1.25] })
})
await picture('timeline.png', step)
await picture('timeline_dark.png', step, { colorScheme: 'dark' })
await picture('view_flame.png', page => page.keyboard.press('2'), { height: 480 })
await picture('view_steps.png', page => page.keyboard.press('5'), { height: 560 })

await browser.close()
server.kill('SIGINT')
