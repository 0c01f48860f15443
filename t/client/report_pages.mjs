/*
 * node report_pages.mjs SCENE…: scenes of the pages of reports in headless Chromium, one after
 * another, against the server that t/client/report_pages.c started. `looks NAME` checks a state of
 * the page, `printing NAME` its PDF. `shoot` writes pictures of all states, or of those that SCENE
 * names, to the directory SHOTS. `probe` reports by its exit status whether a browser and the npm
 * packages are installed.
 */
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {randomBytes} from 'node:crypto';
import {join} from 'node:path';
import {launch} from './browser.mjs';
import {assertAccessible, assertLayout, focusOrder, watch} from './report_checks.mjs';

const {API, KEY, REPORTS, PENDING, SHOTS} = process.env;
const [scene, ...names] = process.argv.slice(2);
const ids = JSON.parse(REPORTS);
const PASSWORD = 'harbour light';
const WIDTHS = [360, 1440],
    THEMES = ['light', 'dark'],
    LANGUAGES = ['en', 'de'];

/* ---- the server, from outside ---- */

async function call(method, path, form) {
    const response = await fetch(`${API}/api/v1/${path}`, {
        method,
        headers: {Authorization: `Bearer ${KEY}`},
        body: form && new URLSearchParams(form),
    });
    const answer = await response.json();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer.data;
}

/* ---- visitors ---- */

const browser = await launch();

/* Each has an address of its own, because limits count addresses. */
async function visitor(options = {}) {
    const [a, b] = randomBytes(2);
    const context = await browser.newContext({
        reducedMotion: 'reduce',
        viewport: {width: 1440, height: 900},
        locale: 'en-GB',
        extraHTTPHeaders: {'X-Forwarded-For': `198.18.${a}.${b}`},
        ...options,
    });
    const troubles = await watch(context, API);
    context.setDefaultTimeout(8000);
    return {context, troubles};
}

const reportPath = (name) => `/reports/${ids[name]}`;
const link = (path, language) =>
    `${API}${path}${language ? `${path.includes('?') ? '&' : '?'}lang=${language}` : ''}`;

async function open(context, path, language, status = 200) {
    const page = await context.newPage();
    const response = await page.goto(link(path, language));
    assert.equal(response.status(), status, `${path}: ${await response.text()}`);
    return page;
}

async function enter(page, password) {
    await page.locator('input[type=password]').fill(password);
    await page.locator('button[type=submit]').click();
}

/* ---- the states of pages ---- */

const plain = (name, words) => ({
    words,
    open: (context, language) => open(context, reportPath(name), language),
});

/* A report of its own, because limits count reports too. */
async function openTooMany(context, language) {
    const page = await open(context, reportPath('limited'), language);
    const guess = (i) =>
        context.request.post(link(`${reportPath('limited')}/password`), {
            form: {password: `wrong ${i}`},
        });
    await Promise.all([...Array(10).keys()].map(guess));
    await enter(page, 'wrong');
    await page.locator('input').waitFor({state: 'detached'});
    return page;
}

/*
 * What each page must say, in English, and how to open it. The pending one is first, because its
 * grading ends at a time limit.
 */
const states = {
    pending: {
        words: ['This page is being graded.'],
        open: (context, language) => open(context, `/reports/${PENDING}`, language),
    },
    many: plain('many', ['What to mend first', 'Final address']),
    compared: {
        words: ['Compared with', 'Mended', 'Still there'],
        open: (context, language) =>
            open(context, `${reportPath('many')}?against=1`, language),
    },
    good: plain('good', ['Every check that applies has passed.']),
    failed: plain('failed', ['The page could not be graded']),
    failed_later: plain('failed_later', ['the last grading that succeeded']),
    history: plain('history', ['Gradings of this page']),
    form: {
        words: ['This report has a password'],
        open: (context, language) => open(context, reportPath('password'), language),
    },
    wrong: {
        words: ['The password is wrong'],
        open: async (context, language) => {
            const page = await open(context, reportPath('password'), language);
            await enter(page, 'wrong');
            await page.locator('[aria-invalid]').waitFor();
            return page;
        },
    },
    missing: {
        words: ['Page not found'],
        open: (context, language) => open(context, '/reports/999999999', language, 404),
    },
    private: {
        words: ['Page not found'],
        open: (context, language) => open(context, reportPath('private'), language, 404),
    },
    too_many: {words: ['Too many requests', 'Try again in'], open: openTooMany},
    hostile: plain('hostile', ['<script>window.__x = 1</script>']),
    script_url: plain('script_url', ['javascript:window.__x=10']),
    world: plain('world', ['قهوة', 'קפה', '港口咖啡']),
    long: plain('long_words', ['wwwwwwww']),
    elements: plain('many_elements', ['Show 195 more']),
    findings: plain('many_findings', ['check_199']),
};
async function assertBadge(context) {
    const page = await open(context, `${reportPath('many')}/badge.svg`);
    assert.equal(await page.locator('text').last().textContent(), '46');
    for (const name of ['password', 'private', 'failed'])
        await open(context, `${reportPath(name)}/badge.svg`, null, 404);
}

/* A page without and with scripts, at both widths, in both themes and languages. */
async function looks(name) {
    for (const [width, colorScheme, language, javaScriptEnabled] of [
        [360, 'light', 'en', true],
        [1440, 'dark', 'de', true],
        [360, 'dark', 'de', false],
        [1440, 'light', 'en', false],
    ]) {
        const what = `${name} ${width} ${colorScheme} ${language}`;
        const {context, troubles} = await visitor({
            viewport: {width, height: 900},
            colorScheme,
            javaScriptEnabled,
        });
        if (name === 'badge') {
            await assertBadge(context);
        } else {
            const page = await states[name].open(context, language);
            const text = await page.locator('body').innerText();
            for (const words of language === 'en' ? states[name].words : [])
                assert.ok(text.includes(words), `${what}: no "${words}" in\n${text}`);
            assert.equal(await page.locator('html').getAttribute('lang'), language, what);
            await assertLayout(page, what);
            if (javaScriptEnabled) await assertAccessible(page, what);
        }
        assert.deepEqual(troubles, [], what);
        await context.close();
    }
}

/* ---- scenes ---- */

async function keyboardWalk(page) {
    await page.keyboard.press('Tab');
    const skip = page.locator('.skip');
    assert.ok(await skip.evaluate((e) => e === document.activeElement && e.matches(':focus')));
    assert.ok((await skip.boundingBox()).x >= 0, 'the skip link is not visible');
    await page.keyboard.press('Enter');
    await page.waitForURL(/#main$/);
    await page.keyboard.press('Tab');
    assert.ok(await page.evaluate(() => document.activeElement.closest('main') !== null));
    await page.goto(page.url().replace('#main', ''));
    await page.reload();
    const order = await focusOrder(page);
    const indexes = order.map((e) => e.index);
    assert.deepEqual(indexes, [...indexes].sort((a, b) => a - b), 'the focus jumps');
    const all = await page.evaluate(() => {
        const some = document.querySelectorAll('a[href], button, input, summary, [tabindex="0"]');
        return [...some].filter((e) => e.checkVisibility()).length;
    });
    assert.equal(order.length, all, 'Tab does not reach everything');
}

const scenes = {
    looks,

    async keyboard() {
        const {context, troubles} = await visitor();
        for (const width of WIDTHS) {
            const page = await open(context, reportPath('many'));
            await page.setViewportSize({width, height: 700});
            await keyboardWalk(page);
            const details = page.locator('details').first();
            await details.locator('summary').focus();
            await page.keyboard.press('Enter');
            assert.ok(await details.evaluate((e) => e.open));
            await page.keyboard.press('Space');
            assert.ok(!(await details.evaluate((e) => e.open)));
            await page.locator('a[href*="against=1#"]').focus();
            await page.keyboard.press('Enter');
            await page.waitForURL(/against=1/);
            assert.ok(await page.locator('#comparison').isVisible());
            await page.locator('#comparison a').first().focus();
            await page.keyboard.press('Enter');
            await page.waitForURL((url) => !url.search.includes('against'));
            await page.close();
        }
        const form = await open(context, reportPath('password'));
        assert.equal(await form.evaluate(() => document.activeElement.id), 'password');
        await form.keyboard.type(PASSWORD);
        await form.keyboard.press('Enter');
        await form.locator('.dial').waitFor();
        assert.deepEqual(troubles, []);
    },

    /* A page that waits shows the result by itself. */
    async waits(how) {
        const {context, troubles} = await visitor({javaScriptEnabled: how === 'script'});
        const page = await states.pending.open(context);
        await page.locator('[role=status]').waitFor();
        assert.equal(await page.locator('.dial, button').count(), 0);
        console.log('the page is open');
        await page.locator('.dial').waitFor();
        assert.equal(await page.locator('[role=status]').count(), 0);
        assert.deepEqual(troubles, []);
    },

    /* The cookie of a password opens the page until it ends or the password changes. */
    async password() {
        const {context, troubles} = await visitor();
        const page = await states.wrong.open(context);
        const opened = async () => {
            await page.goto(link(reportPath('password')));
            return (await page.locator('.dial').count()) === 1;
        };
        assert.ok(!(await opened()));
        await enter(page, PASSWORD);
        await page.locator('.dial').waitFor();
        assert.ok(await opened());
        const [cookie, ...others] = await context.cookies();
        assert.deepEqual(others, []);
        assert.ok(cookie.httpOnly && cookie.sameSite === 'Lax', JSON.stringify(cookie));
        assert.equal(cookie.path, reportPath('password'));
        const hours = (cookie.expires - Date.now() / 1000) / 3600;
        assert.ok(hours > 11.9 && hours <= 12.01, `${hours} h`);
        const stranger = (await visitor()).context;
        await open(stranger, reportPath('password')).then((p) => p.locator('form').waitFor());

        await context.addCookies([{...cookie, expires: Date.now() / 1000 - 1}]);
        assert.ok(!(await opened()), 'the cookie has expired');
        await context.addCookies([{...cookie, value: cookie.value.replace(/.$/, '_')}]);
        assert.ok(!(await opened()), 'the cookie is forged');
        await context.addCookies([cookie]);
        assert.ok(await opened());
        await call('PUT', `reports/${ids.password}`, {privacy: 2, password: 'another word'});
        assert.ok(!(await opened()), 'the password has changed');
        await call('PUT', `reports/${ids.password}`, {privacy: 2, password: PASSWORD});
        assert.ok(!(await opened()), 'the cookie is of an older password');
        assert.deepEqual(troubles, []);
    },

    /* Nothing that came from a stranger is markup. */
    async hostile() {
        for (const name of ['hostile', 'script_url'])
            for (const javaScriptEnabled of [true, false]) {
                const {context, troubles} = await visitor({javaScriptEnabled});
                const page = await states[name].open(context);
                for (const summary of await page.locator('summary').all()) await summary.click();
                assert.deepEqual(
                    await page.evaluate(() =>
                        [...document.querySelectorAll('*')]
                            .filter(
                                (e) =>
                                    e.matches('base, iframe, img, object, style, [style]') ||
                                    (e.matches('body *') && e.matches('script, link, meta')) ||
                                    [...e.attributes].some((a) => a.name.startsWith('on')) ||
                                    /^\s*(javascript|data|vbscript):/i.test(
                                        e.matches('link') ? '' : e.getAttribute('href') || '',
                                    ),
                            )
                            .map((e) => e.outerHTML.slice(0, 200)),
                    ),
                    [],
                );
                assert.equal(await page.evaluate(() => window.__x), undefined);
                const [url] = [page.url(), await page.locator('h1').click()];
                assert.equal(await page.evaluate(() => window.__x), undefined);
                assert.ok(troubles.every((t) => t.startsWith('request: https://shop.example/')));
                assert.ok(url.startsWith(API));
                await context.close();
            }
    },

    /* The start page, which has one language and no script. */
    async fixed(path, width, colorScheme) {
        const viewport = {width: Number(width), height: 900},
            {context, troubles} = await visitor({viewport, colorScheme}),
            page = await open(context, path);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= viewport.width, `the page is ${wide} px wide`);
        await assertAccessible(page, path);
        assert.deepEqual(troubles, []);
    },

    /* Forced colours, reduced motion and a large text. */
    async modes() {
        const {context, troubles} = await visitor({forcedColors: 'active'});
        const page = await open(context, reportPath('many'));
        const colours = await page.evaluate(() => {
            const of = (selector, name) =>
                getComputedStyle(document.querySelector(selector))[name];
            return [
                [of('.dial .arc', 'stroke'), of('.dial .track', 'stroke')],
                [of('.bars rect:last-child', 'fill'), of('.bars .track', 'fill')],
                [of('.dial text', 'fill'), of('body', 'backgroundColor')],
                [of('.chart polyline', 'stroke'), of('body', 'backgroundColor')],
            ];
        });
        for (const [front, back] of colours) assert.notEqual(front, back);
        await assertLayout(page, 'forced colours');
        const moves = () => page.evaluate(() => document.getAnimations().length);
        assert.equal(await moves(), 0);
        await page.emulateMedia({reducedMotion: 'no-preference', forcedColors: 'none'});
        await page.reload();
        assert.ok((await moves()) > 0);
        await page.emulateMedia({reducedMotion: 'reduce'});
        assert.equal(await moves(), 0);
        await page.setViewportSize({width: 720, height: 900});
        await page.evaluate(() => (document.documentElement.style.fontSize = '200%'));
        await assertLayout(page, 'text of twice the size');
        assert.deepEqual(
            troubles.filter((text) => !text.startsWith('policy: style-src')),
            [],
        );
    },

    async printing(name) {
        const {context, troubles} = await visitor();
        for (const format of ['A4', 'Letter'])
            await assertPrint(await states[name].open(context), format, name);
        if (name === 'many') await assertUnfolds(await states[name].open(context));
        assert.deepEqual(troubles, []);
    },

    async shoot() {
        const {SCENE} = process.env;
        const all = [...Object.keys(states), ...Object.keys(shootings)];
        for (const name of SCENE ? SCENE.split(' ') : all)
            await (shootings[name] || shootState)(name);
    },
};

/* ---- printing ---- */

const letters = (text) => text.replace(/[\s\u00ad\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, '');

/* Every text of the page that is printed. Runs in the page. */
function printedTexts() {
    document.querySelectorAll('details').forEach((d) => (d.open = true));
    const texts = [],
        walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode())
        if (
            node.data.trim() !== '' &&
            !node.parentElement.closest('.bar, .skip, .tools, summary, title, tr > :last-child')
        )
            texts.push(node.data.trim());
    document.querySelectorAll('details').forEach((d) => (d.open = false));
    return texts;
}

/* What is folded is open while the browser prints, and what a reader opened stays open. */
async function assertUnfolds(page) {
    const all = page.locator('details'),
        open = page.locator('details[open]'),
        fire = (name) => page.evaluate((type) => dispatchEvent(new Event(type)), name);
    await all.first().evaluate((details) => (details.open = true));
    await fire('beforeprint');
    assert.ok((await all.count()) > 1);
    assert.equal(await open.count(), await all.count());
    await fire('afterprint');
    assert.equal(await open.count(), 1);
    await all.first().evaluate((details) => (details.open = false));
}

async function assertPrint(page, format, name) {
    const what = `${name} on ${format}`;
    const pdf = await page.pdf({format, preferCSSPageSize: true, printBackground: false});
    const pages = execFileSync('pdftotext', ['-layout', '-', '-'], {
        input: pdf,
        maxBuffer: 1 << 26,
    })
        .toString()
        .split('\f')
        .slice(0, -1);
    const [width, height] = /Page size: +([\d.]+) x ([\d.]+)/
        .exec(execFileSync('pdfinfo', ['-'], {input: pdf}).toString())
        .slice(1)
        .map(Number);
    const wanted = format === 'A4' ? [595, 842] : [612, 792];
    assert.ok(Math.hypot(width - wanted[0], height - wanted[1]) < 2, `${what}: ${width}×${height}`);
    for (const [i, text] of pages.entries()) {
        const number = `${i + 1}/${pages.length}`;
        assert.ok(letters(text).endsWith(number), `${what}: page ${number} has no number\n${text}`);
        assert.ok(text.trim().length > number.length + 20, `${what}: page ${number} is empty`);
    }
    assert.ok(pages.length >= 1 && pages.length <= most[name], `${what}: ${pages.length} pages`);
    const raw = execFileSync('pdftotext', ['-raw', '-', '-'], {input: pdf, maxBuffer: 1 << 26});
    const all = letters(raw.toString().replace(/^\f?\d+ ?\/ ?\d+$/gm, ''));
    for (const gone of ['Skip to content', 'Deutsch'])
        assert.ok(!all.includes(letters(gone)), `${what}: "${gone}" is printed`);
    /* pdftotext writes right-to-left lines in another order */
    for (const text of (await page.evaluate(printedTexts)).filter((t) => /^[ -~]*$/.test(t)))
        assert.ok(all.includes(letters(text)), `${what}: "${text}" is not printed`);
    await page.close();
}

/* The most pages of a document. */
const most = {many: 12, good: 2, world: 20, long: 30, history: 16};

/* ---- pictures ---- */

const shot = (page, name) =>
    page.screenshot({path: join(SHOTS, `${name}.png`), fullPage: true, animations: 'disabled'});

async function shootState(name) {
    for (const language of LANGUAGES) {
        const {context} = await visitor();
        const page = await states[name].open(context, language);
        for (const width of WIDTHS)
            for (const colorScheme of THEMES) {
                await page.setViewportSize({width, height: 900});
                await page.emulateMedia({colorScheme, reducedMotion: 'reduce'});
                await shot(page, `${name}-${width}-${colorScheme}-${language}`);
            }
        await context.close();
    }
}

const shootings = {
    /* the picture in README.md */
    async readme() {
        const {context} = await visitor({viewport: {width: 1200, height: 1010}});
        const page = await states.many.open(context, 'en');
        await page.screenshot({path: join(SHOTS, 'report-page.png'), animations: 'disabled'});
    },
    /* in a page: Playwright takes no pictures of SVG documents */
    async badge() {
        const {context} = await visitor();
        const page = await context.newPage();
        await page.setContent(`<img alt src="${link(reportPath('many'))}/badge.svg">`);
        await page.locator('img').screenshot({path: join(SHOTS, 'badge.png')});
    },
    async modes() {
        const {context} = await visitor({forcedColors: 'active'});
        await shot(await open(context, reportPath('many')), 'many-forced-colours');
    },
    async printing() {
        const {context} = await visitor();
        for (const format of ['A4', 'Letter'])
            for (const language of LANGUAGES) {
                const page = await states.many.open(context, language);
                const path = join(SHOTS, `many-${format}-${language}.pdf`);
                await page.pdf({path, format, preferCSSPageSize: true});
            }
    },
};

await scenes[scene](...names);
await browser.close();
