/*
 * What the browser tests of pages check on every page: errors, policy violations and requests to
 * other origins; boxes beyond the window; axe-core's rules; the order of the focus.
 */
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {packagePath} from './browser.mjs';

const AXE = readFileSync(packagePath('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/*
 * watch(context, origin): collects what no page may do: an error, a violation of its policy, a
 * dialog, a request to an origin other than ${origin}. Messages about the status of the page
 * itself are no errors.
 */
export async function watch(context, origin) {
    const troubles = [];
    await context.exposeBinding('reportViolation', (_, text) => troubles.push(text));
    await context.addInitScript(() =>
        document.addEventListener('securitypolicyviolation', (e) =>
            window.reportViolation(`policy: ${e.violatedDirective} ${e.blockedURI}`),
        ),
    );
    context.on('page', (page) => {
        page.on('pageerror', (e) => troubles.push(`thrown: ${e.stack}`));
        page.on('console', (m) => {
            if (m.type() === 'error' && !/the server responded with a status of 4/.test(m.text()))
                troubles.push(`console: ${m.text()}`);
        });
        page.on('dialog', (dialog) => {
            troubles.push(`dialog: ${dialog.message()}`);
            dialog.dismiss();
        });
        page.on('request', (request) => {
            const url = new URL(request.url());
            if (url.protocol !== 'data:' && url.origin !== origin)
                troubles.push(`request: ${request.url()}`);
        });
    });
    return troubles;
}

/* Boxes and texts that are wider than the window and not inside .scroll. Runs in the page. */
function boxesOutside() {
    const width = document.documentElement.clientWidth,
        outside = [];
    const look = (rects, what) => {
        for (const r of rects)
            if (r.width > 0 && (r.right > width + 1 || r.left < -1))
                outside.push(`${what} from ${r.left} to ${r.right} of ${width}`);
    };
    if (document.documentElement.scrollWidth > width)
        outside.push(`the page is ${document.documentElement.scrollWidth} of ${width} wide`);
    for (const element of document.body.querySelectorAll('*')) {
        if (element.closest('.scroll, .skip')) continue;
        look(element.getClientRects(), `${element.localName}.${element.getAttribute('class')}`);
        for (const node of element.childNodes)
            if (node.nodeType === Node.TEXT_NODE && node.data.trim() !== '') {
                const range = document.createRange();
                range.selectNodeContents(node);
                look(range.getClientRects(), `text ${node.data.trim().slice(0, 30)}`);
            }
    }
    return outside.slice(0, 10);
}

/* Runs in the page. */
function unfold(open) {
    for (const details of document.querySelectorAll('details')) details.open = open;
}

/* With everything that is folded, and unfolded. */
export async function assertLayout(page, what) {
    assert.deepEqual(await page.evaluate(boxesOutside), [], what);
    if ((await page.locator('details').count()) === 0) return;
    await page.evaluate(unfold, true);
    assert.deepEqual(await page.evaluate(boxesOutside), [], `${what}, unfolded`);
    await page.evaluate(unfold, false);
}

/* Needs a page without animations. */
export async function assertAccessible(page, what) {
    await page.evaluate(AXE);
    const {violations, passes} = await page.evaluate(
        (values) => window.axe.run(document, {runOnly: {type: 'tag', values}}),
        RULES,
    );
    assert.ok(passes.length > 10, `${what}: axe-core ran only ${passes.length} rules`);
    const lines = violations.flatMap((v) =>
        v.nodes.map((n) => `${v.id}: ${v.help}\n    ${n.html}\n    ${n.failureSummary}`),
    );
    assert.deepEqual(lines, [], `${what}: axe-core\n${lines.join('\n')}`);
}

/* What Tab reaches, from the start of the page to its end. Each one must show its focus. */
export async function focusOrder(page) {
    const order = [];
    for (;;) {
        await page.keyboard.press('Tab');
        const at = await page.evaluate(() => {
            const e = document.activeElement;
            if (e === null || e === document.body) return null;
            const box = e.getBoundingClientRect(),
                style = getComputedStyle(e),
                bar = document.querySelector('.bar').getBoundingClientRect();
            const all = [...document.querySelectorAll('*')];
            return {
                index: all.indexOf(e),
                text: (e.getAttribute('aria-label') || e.textContent || e.id).trim(),
                outlined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
                seen:
                    box.width > 0 &&
                    box.bottom > 0 &&
                    box.top < innerHeight &&
                    (e.closest('.bar, .skip') !== null || box.bottom > bar.bottom),
            };
        });
        if (at === null || order.some((before) => before.index === at.index)) return order;
        assert.ok(at.outlined, `no visible focus: ${at.text}`);
        assert.ok(at.seen, `the focus is outside the window: ${at.text}`);
        order.push(at);
    }
}
