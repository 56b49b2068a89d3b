// speedscope.mjs: an exported trace opens in speedscope, which finds every profile, frame and range in it.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import http from 'node:http'
import { createRequire } from 'node:module'
import path from 'node:path'

const { MAREY_BIN, MAREY_CAPTURE, MAREY_OUT, MAREY_MODULES, CHROMIUM } = process.env
const { chromium } = createRequire(MAREY_MODULES + '/')('playwright-core')

const exported = path.join(MAREY_OUT, 'pipeline.speedscope.json')
execFileSync(MAREY_BIN, ['export', MAREY_CAPTURE, '-o', exported], { stdio: 'ignore' })
const info = JSON.parse(execFileSync(MAREY_BIN, ['info', '--json', MAREY_CAPTURE], { maxBuffer: 1 << 28 }))
const file = JSON.parse(fs.readFileSync(exported, 'utf8'))

// One server for speedscope and the trace.
const dist = path.join(MAREY_MODULES, 'speedscope', 'dist', 'release')
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json' }
const server = http.createServer((request, response) => {
    const name = path.basename(new URL(request.url, 'http://localhost').pathname) || 'index.html'
    const source = name === path.basename(exported) ? exported : path.join(dist, name)
    fs.readFile(source, (error, bytes) => {
        response.writeHead(error ? 404 : 200, { 'Content-Type': types[path.extname(name)] ?? 'application/octet-stream' })
        response.end(error ? '' : bytes)
    })
})
await new Promise(done => server.listen(0, '127.0.0.1', done))
const base = `http://127.0.0.1:${server.address().port}/`

// Walks speedscope's components to the profiles that they show.
function loadedProfiles() {
    const seen = new Set()
    const find = node => {
        if (!node || typeof node !== 'object' || seen.has(node)) return null
        seen.add(node)
        if (Array.isArray(node)) return node.map(find).find(found => found) ?? null
        const group = node.props?.profileGroup ?? node.__c?.props?.profileGroup
        return group?.profiles?.length ? group.profiles : find(node.__k)
    }
    const profiles = [...document.querySelectorAll('*')].map(node => find(node.__k)).find(found => found)
    if (!profiles) return null
    const below = node => node.children.reduce((sum, child) => sum + 1 + below(child), 0)
    return profiles.map(({ profile }) => {
        const frames = new Set()
        profile.forEachFrame(frame => frames.add(frame))
        return {
            name: profile.getName(),
            ranges: below(profile.appendOrderCalltreeRoot),
            frames: frames.size,
            weight: profile.getTotalWeight(),
        }
    })
}

const failures = []
const expect = (what, actual, expected) => {
    if (actual !== expected) failures.push(`${what}: ${actual}, not ${expected}`)
}
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--use-gl=swiftshader', '--enable-unsafe-swiftshader'] })
try {
    const page = await browser.newPage({ viewport: { width: 1400, height: 800 } })
    page.on('pageerror', error => failures.push(`error in the page: ${error.message}`))
    page.on('dialog', dialog => { failures.push(`message from speedscope: ${dialog.message()}`); dialog.dismiss() })
    await page.goto(`${base}#profileURL=${encodeURIComponent(base + path.basename(exported))}`)
    const loaded = await (await page.waitForFunction(loadedProfiles, null, { timeout: 60000 })).jsonValue()

    const length = info.window.end_ns - info.window.start_ns
    expect('profiles', loaded.length, file.profiles.length)
    expect('ranges', loaded.reduce((sum, profile) => sum + profile.ranges, 0), info.ranges)
    file.profiles.forEach((wanted, i) => {
        const opened = wanted.events.filter(event => event.type === 'O')
        expect(`name of profile ${i}`, loaded[i]?.name, wanted.name)
        expect(`ranges of ${wanted.name}`, loaded[i]?.ranges, opened.length)
        expect(`frames of ${wanted.name}`, loaded[i]?.frames, new Set(opened.map(event => event.frame)).size)
        expect(`length of ${wanted.name}`, loaded[i]?.weight, length)
    })
    await page.waitForTimeout(1500) // until it is drawn
    await page.screenshot({ path: path.join(MAREY_OUT, 'speedscope.png') })
    console.log(`speedscope: ${loaded.length} profiles, ${info.ranges} ranges; screenshot ${MAREY_OUT}/speedscope.png`)
} finally {
    await browser.close()
    server.close()
}
for (const failure of failures) console.log(`FAILED: speedscope: ${failure}`)
process.exit(failures.length > 0 ? 1 : 0)
