/*
 * node demo_page.mjs: a visitor of the demo's shop in headless Chromium. PAGE is the chat's page,
 * SHOTS a directory for screenshots, if any.
 */
import assert from 'node:assert/strict';
import {launch} from './browser.mjs';

const {PAGE, SHOTS} = process.env;
const browser = await launch(),
    troubles = [];
const context = await browser.newContext({viewport: {width: 1280, height: 860}});

async function open(url) {
    const page = await context.newPage();
    page.on('pageerror', (e) => troubles.push(`thrown: ${e.stack}`));
    page.on('console', (m) => m.type() === 'error' && troubles.push(m.text()));
    page.setDefaultTimeout(10000);
    await page.goto(url);
    await page.locator('.launcher').waitFor({state: 'attached'});
    return page;
}

const shoot = async (page, name) => SHOTS && page.screenshot({path: `${SHOTS}/${name}.png`});

/* Each answer links a page of the shop, and the chat continues there. */
const page = await open(PAGE);
await shoot(page, 'front');
const questions = page.locator('.question'),
    answers = page.locator('.other .bubble');
assert.equal(await questions.count(), 3);
for (let i = 0; i < 3; i++) {
    await questions.nth(i).click();
    await answers.nth(i + 1).waitFor(); /* the greeting is first */
    assert.equal(
        await page
            .locator('.under')
            .filter({has: page.locator('a')})
            .count(),
        i + 1,
    );
}
await page.locator('.under img').first().waitFor();
await shoot(page, 'asked');
const code = (await answers.nth(1).textContent()).match(/\b[A-Z]+\d+\b/)[0];
const cited = await page.locator('.under a').first().getAttribute('href');
const next = await open(cited);
assert.ok((await next.locator('main').textContent()).includes(code));
await next.locator('.launcher').click();
await next.locator('.other .bubble').nth(3).waitFor();
await shoot(next, 'cited');

/* The code from the chat works in the cart; another one is refused. */
await page.locator('[aria-label="Close chat"]').click();
await page.getByLabel(/Coupon code/).fill('nope');
await page.getByRole('button', {name: 'Apply'}).click();
await page.getByText('This code is unknown').waitFor();
await page.getByLabel(/Coupon code/).fill(code);
await page.getByRole('button', {name: 'Apply'}).click();
await page.getByText('The coupon is applied.').waitFor();
assert.equal(await page.locator('[data-total]').textContent(), '£15.30');
await page.locator('.basket').scrollIntoViewIfNeeded();
await shoot(page, 'basket');

/* The console shows only the 400 of the refused coupon. */
assert.deepEqual(
    troubles.filter((text) => !/status of 400/.test(text)),
    [],
);
await browser.close();
