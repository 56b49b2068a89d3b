// pictures.mjs TRACE FOLDER: shows a training step of TRACE in the Perfetto UI and writes timeline.png and
// timeline_dark.png to FOLDER. `make pictures` runs it through tools/pictures.sh.
import path from 'node:path'

import { expandTracks, query, startPerfetto, waitForTracks } from './perfetto_page.mjs'

const [trace, folder] = process.argv.slice(2)

// The README shows pictures about 900 pixels wide. A page of 1100 pixels keeps its labels readable there.
const size = { viewport: { width: 1100, height: 700 }, deviceScaleFactor: 1600 / 1100 }
// Hides everything except the time axis and the tracks; also the axis' offset, the host's name and the tracks' icons.
const style = `
    :root { --track-shell-width: 140px !important; }
    .pf-sidebar, .pf-topbar, .pf-statusbar, .pf-viewer-page__overview { display: none !important; }
    .pf-split-panel__handle, .pf-split-panel__drawer, .pf-timeline-toolbar { display: none !important; }
    .pf-track__canvas .pf-middle-ellipsis, .pf-track .pf-chip { display: none !important; }
    .pf-viewer-page__header { position: relative; overflow: hidden; height: 22px; }
    .pf-viewer-page__header::after { display: none; }
    .pf-viewer-page__header::before {
        content: ''; position: absolute; inset: 0 auto 0 0; width: 139px; z-index: 1; background: var(--pf-color-background);
    }
    .pf-viewer-page__scrolling-track-tree { scrollbar-gutter: auto !important; }
`

async function takePicture(perfetto, theme, file) {
    const page = await perfetto.open(trace, size, style)
    await waitForTracks(page)
    // The shortest step is the one that other programs on the machine disturbed least.
    const step = "slice where name glob 'ProfilerStep#*' order by dur limit 1"
    const start = await query(page, `select ts as n from ${step}`)
    const duration = await query(page, `select dur as n from ${step}`)
    await page.evaluate(({ theme, start, end }) => {
        const { settings, trace } = self.app
        settings.get('theme').set(theme)
        settings.get('timestampFormat').set('milliseconds')
        for (const track of trace.workspace.flatTracks) {
            if (track.name === 'System') track.remove()
            // Allocations are instants among the ranges and a counter. The counter shows them more clearly.
            const renderer = trace.tracks.getTrack(track.uri ?? '')?.renderer
            const source = renderer?.getSqlSource?.()
            if (source?.includes('from slice')) renderer.getSqlSource = () => `select * from (${source}) where name != '[memory]'`
        }
        trace.timeline.setViewportTime(BigInt(start), BigInt(end))
    }, { theme, start, end: start + duration })
    await expandTracks(page)
    await page.mouse.move(0, 0)
    await page.waitForTimeout(5000) // until the tracks are drawn
    await page.keyboard.press('Escape')
    await page.waitForTimeout(1000)
    const tracks = await page.locator('.pf-track').first().boundingBox()
    const height = Math.ceil(tracks.y + tracks.height)
    await page.screenshot({ path: file, clip: { x: 0, y: 0, width: size.viewport.width, height } })
    await page.close()
}

const perfetto = await startPerfetto()
try {
    await takePicture(perfetto, 'light', path.join(folder, 'timeline.png'))
    await takePicture(perfetto, 'dark', path.join(folder, 'timeline_dark.png'))
} finally {
    await perfetto.close()
}
