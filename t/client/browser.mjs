/*
 * What the browser tests share: Debian's Chromium (or ASSAY_CHROMIUM), driven by npm's
 * playwright-core from t/node_modules or from the node_modules of the directory ASSAY_NPM.
 */
import {execFileSync} from 'node:child_process';
import {createRequire} from 'node:module';
import {resolve} from 'node:path';

const {ASSAY_NPM, ASSAY_CHROMIUM} = process.env;

function chromiumPath() {
    for (const name of ASSAY_CHROMIUM ? [ASSAY_CHROMIUM] : ['chromium', 'chromium-browser'])
        try {
            return execFileSync('/bin/sh', ['-c', 'command -v "$0"', name]).toString().trim();
        } catch {
            /* the next */
        }
    return null;
}

const packages = createRequire(ASSAY_NPM ? `${resolve(ASSAY_NPM)}/` : import.meta.url);

/* The path of a file of an npm package; throws where it is not installed. */
export const packagePath = (name) => packages.resolve(name);

function findPlaywright() {
    try {
        return packages('playwright-core');
    } catch {
        return null;
    }
}

const playwright = findPlaywright();
export const executablePath = chromiumPath();
if (playwright === null || executablePath === null) {
    console.error(
        "skipped: Chromium or npm's playwright-core is not installed: " + './bootstrap --all-tests',
    );
    process.exit(77);
}

/* node SCRIPT probe [PACKAGE…]: ends with 0 if these npm packages are installed too. */
if (process.argv[2] === 'probe') {
    for (const name of process.argv.slice(3))
        try {
            packagePath(name);
        } catch {
            console.error(`skipped: npm's ${name} is not installed: ./bootstrap --all-tests`);
            process.exit(77);
        }
    process.exit(0);
}

/* A browser; ${args}: additional options. */
export const launch = (...args) =>
    playwright.chromium.launch({
        executablePath,
        args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', ...args],
    });
