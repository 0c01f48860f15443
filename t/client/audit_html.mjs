/*
 * node audit_html.mjs LANGUAGE FOLDS: a file of `assay audit --html` in headless Chromium. FOLDS
 * says whether the page folds "some" elements or "none". PAGE is its address, SHOTS a directory for
 * screenshots, if any.
 */
import assert from 'node:assert/strict';
import {launch} from './browser.mjs';

const {PAGE, SHOTS} = process.env,
    [language, folds] = process.argv.slice(2);
const browser = await launch(),
    troubles = [],
    requests = [];
const page = await browser.newPage();
page.on('pageerror', (e) => troubles.push(`thrown: ${e.stack}`));
page.on('console', (m) => troubles.push(m.text()));
page.on('dialog', (d) => troubles.push(`a dialog: ${d.message()}`) && d.dismiss());
page.on('request', (r) => requests.push(r.url()));

/* It loads nothing and fits a phone and a desktop, in both themes. */
for (const [width, colorScheme] of [
    [360, 'light'],
    [1440, 'dark'],
]) {
    await page.setViewportSize({width, height: 900});
    await page.emulateMedia({colorScheme, media: 'screen'});
    await page.goto(PAGE);
    assert.ok(await page.locator('h1').isVisible());
    assert.equal(await page.locator('html').getAttribute('lang'), language);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
    if (SHOTS) await page.screenshot({path: `${SHOTS}/audit-${width}.png`, fullPage: true});
}
assert.deepEqual(
    requests.filter((url) => url !== PAGE && !url.startsWith('data:')),
    [],
);
const styles = await page.evaluate(() => document.styleSheets[0].cssRules.length);
assert.ok(styles > 50);

/* Printed, nothing is folded. */
await page.emulateMedia({media: 'print'});
const folded = page.locator('details li');
assert.equal((await folded.count()) > 0, folds === 'some');
for (let i = 0; i < (await folded.count()); i++) assert.ok(await folded.nth(i).isVisible());
assert.ok((await page.pdf({format: 'A4'})).length > 5000);
assert.deepEqual(troubles, []);
await browser.close();
