// build.mjs [FOLDER]: bundles src/ into FOLDER (dist). The output depends on the sources and the locked packages only.
import { build } from 'esbuild'
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const here = path.dirname(fileURLToPath(import.meta.url))
const folder = path.resolve(process.argv[2] ?? path.join(here, 'dist'))
const limit = 250_000 // bytes, all files together

fs.rmSync(folder, { recursive: true, force: true })
fs.mkdirSync(folder, { recursive: true })
await build({
    absWorkingDir: here,
    entryPoints: { app: 'src/main.ts', 'app.css': 'src/style.css' },
    entryNames: '[name]',
    outdir: folder,
    bundle: true,
    minify: true,
    charset: 'utf8',
    target: ['es2022', 'chrome110', 'firefox115', 'safari16'],
    format: 'iife',
    legalComments: 'none',
    logLevel: 'warning',
})
fs.renameSync(path.join(folder, 'app.css.css'), path.join(folder, 'app.css'))
fs.copyFileSync(path.join(here, 'index.html'), path.join(folder, 'index.html'))

const bytes = fs.readdirSync(folder).reduce((sum, name) => sum + fs.statSync(path.join(folder, name)).size, 0)
console.log(`web: ${bytes} bytes in ${path.relative(process.cwd(), folder)}`)
if (bytes > limit) {
    console.error(`web: more than ${limit} bytes`)
    process.exit(1)
}
