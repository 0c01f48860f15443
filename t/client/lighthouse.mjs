/*
 * node lighthouse.mjs URL: grades a page with Lighthouse (npm) in headless Chromium, with its
 * desktop preset. Prints a line for each category, `NAME SCORE`, and one for each audit that costs
 * points, `- NAME ID: TITLE`. Exits with 0 if all scores are 100, with 1 if not, and with 77 where
 * Chromium or a package is missing (./bootstrap --all-tests installs them).
 */
import {pathToFileURL} from 'node:url';
import {executablePath, packagePath} from './browser.mjs';

const CATEGORIES = ['performance', 'accessibility', 'best-practices', 'seo'];
const [url] = process.argv.slice(2);

async function load(name) {
    try {
        return await import(pathToFileURL(packagePath(name)));
    } catch (e) {
        if (e.code !== 'MODULE_NOT_FOUND') throw e;
        console.error("skipped: npm's lighthouse is not installed: ./bootstrap --all-tests");
        return process.exit(77);
    }
}

/* The audits of a category that cost points. */
const lost = (lhr, {auditRefs}) =>
    auditRefs
        .filter(({weight}) => weight > 0)
        .map(({id}) => lhr.audits[id])
        .filter(({score}) => score !== null && score < 1);

const {default: lighthouse, desktopConfig} = await load('lighthouse');
const {launch} = await load('chrome-launcher');
const chrome = await launch({
    chromePath: executablePath,
    chromeFlags: ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});
try {
    const {lhr} = await lighthouse(
        url,
        {port: chrome.port, logLevel: 'error', onlyCategories: CATEGORIES},
        desktopConfig,
    );
    if (lhr.runtimeError) throw new Error(`${lhr.runtimeError.code}: ${lhr.runtimeError.message}`);
    for (const name of CATEGORIES) {
        const category = lhr.categories[name],
            score = Math.round(category.score * 100);
        console.log(`${name} ${score}`);
        for (const {id, title} of lost(lhr, category)) console.log(`- ${name} ${id}: ${title}`);
        if (score < 100) process.exitCode = 1;
    }
} finally {
    chrome.kill();
}
