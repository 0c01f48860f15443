/*
 * node widget.mjs SCENE…: scenes of the chat widget in headless Chromium, one after another,
 * against the server that t/client/widget.c started. `probe` reports by its exit status whether a
 * browser and playwright-core are installed. A failed assertion ends it with an error.
 */
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {createServer} from 'node:http';
import {connect, createServer as createWire} from 'node:net';
import {setTimeout as sleep} from 'node:timers/promises';
import {launch} from './browser.mjs';

const {API, AGENT, KEY, MASTER, ASSAY_PROGRAM, CONF} = process.env;
const wanted = process.argv.slice(2);
const HOSTILE =
    '<img src=x onerror="window.broken=1"><script>window.broken=2</script> ' +
    'javascript:alert(1) https://example.com/a?b=1.';

/* ---- the connection to the server, which tests can cut ---- */

const ends = new Set();
let whole = true;
const wire = createWire((near) => {
    const far = whole ? connect(new URL(API).port, '127.0.0.1') : near;
    for (const [end, other] of [
        [near, far],
        [far, near],
    ]) {
        ends.add(end);
        end.on('error', () => {}).on('close', () => ends.delete(end) && other.destroy());
        if (whole) end.pipe(other);
        else end.destroy();
    }
});
await new Promise((done) => wire.listen(0, '127.0.0.1', done));
const PUBLIC = `http://127.0.0.1:${wire.address().port}`;

function cut() {
    whole = false;
    ends.forEach((end) => end.destroy());
}

function mend() {
    whole = true;
}

/* ---- the server, from outside ---- */

const assay = (...words) =>
    execFileSync(ASSAY_PROGRAM, ['-c', CONF, '--set', `base_url=${PUBLIC}`, ...words]).toString();

async function call(credential, method, path, body) {
    const response = await fetch(`${API}${path}`, {
        method,
        headers: {
            Authorization: `Bearer ${credential}`,
            ...(body ? {'Content-Type': 'application/json'} : {}),
        },
        body: body && JSON.stringify(body),
    });
    const answer = await response.json();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer.data;
}
const operate = (method, path, body) => call(KEY, method, `/api/v1/${path}`, body);
const conversations = () => operate('GET', 'conversations');
const answer = (id, message) => operate('POST', `conversations/${id}/messages`, {message});
const messagesOf = async (id) => (await operate('GET', `conversations/${id}?limit=100`)).messages;

async function until(what, holds, withinMs = 5000) {
    for (const end = Date.now() + withinMs; ; await sleep(20)) {
        const found = await holds();
        if (found) return found;
        assert.ok(Date.now() < end, `not within ${withinMs} ms: ${what}`);
    }
}
const onlyConversation = () => until('a conversation', async () => (await conversations())[0]);

/* ---- a site: pages whose policy allows only the widget's script and calls ---- */

const PICTURE = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk' +
        '+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
);
let snippet = assay('agent', 'embed', AGENT).trim();
const site = createServer((request, response) => {
    const {pathname, searchParams} = new URL(request.url, 'http://site');
    if (pathname === '/picture.png') {
        response.writeHead(200, {'Content-Type': 'image/png'}).end(PICTURE);
        return;
    }
    const element = snippet.replace(' ', ` ${searchParams.get('attributes') || ''} `);
    response.writeHead(pathname === '/' ? 200 : 404, {
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Security-Policy':
            `default-src 'none'; script-src ${PUBLIC}; connect-src ${PUBLIC}; style-src 'none'; ` +
            `${searchParams.get('policy') || ''}; ` +
            "require-trusted-types-for 'script'; trusted-types 'none'",
        'Cross-Origin-Embedder-Policy': 'require-corp',
    });
    response.end(
        `<!doctype html><html lang=en><title>A <site></title>` +
            `<p>Text with <a href="#x">a link</a>.</p>${element}</html>`,
    );
});
await new Promise((done) => site.listen(0, '127.0.0.1', done));
const port = site.address().port,
    ORIGIN = `http://127.0.0.1:${port}`,
    FOREIGN = `http://localhost:${port}`;
assay('agent', 'update', AGENT, '--origin', ORIGIN);

/* an https page can use the server on loopback */
const browser = await launch('--disable-features=LocalNetworkAccessChecks');

/*
 * Errors of any page: refused by its policy, thrown, or reported by the browser about the script.
 */
const troubles = [],
    heard = [];

async function visitor(options = {}) {
    const context = await browser.newContext(options);
    await context.exposeFunction('reportViolation', (text) => troubles.push(text));
    await context.addInitScript(() =>
        document.addEventListener('securitypolicyviolation', (e) =>
            window.reportViolation(
                `policy: ${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber}`,
            ),
        ),
    );
    return context;
}

async function visit(context, url = `${ORIGIN}/`) {
    const page = await context.newPage();
    page.on('pageerror', (e) => troubles.push(`thrown: ${e.stack}`));
    page.on('console', (m) => heard.push(m.text()));
    page.setDefaultTimeout(5000);
    await page.goto(url);
    await page.locator('.launcher').waitFor({state: 'attached'});
    return page;
}

const withAttributes = (text) => `${ORIGIN}/?attributes=${encodeURIComponent(text)}`;
const said = (page, text) => page.locator('.bubble', {hasText: text});
const input = (page) => page.getByRole('textbox', {name: 'Your message'});
const open = (page) => page.getByRole('button', {name: /^Chat/}).click();
const say = async (page, text) => {
    await input(page).fill(text);
    await input(page).press('Enter');
};
const choose = async (page, item) => {
    await page.getByRole('button', {name: 'More options'}).click();
    await page.getByRole('button', {name: item}).click();
};
const focused = (page) =>
    page.evaluate(() => {
        let at = document.activeElement;
        while (at && at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement;
        const name = at && (at.getAttribute('aria-label') || at.id || at.name || '');
        return at ? `${at.tagName.toLowerCase()} ${name}`.trim() : '';
    });

/* ---- the scenes ---- */

const scenes = {
    /* with the keyboard only, and as announced to a screen reader */
    async chat() {
        const page = await visit(await visitor());
        let reads = 0;
        page.on('request', (r) => {
            reads += r.url().endsWith('/conversation/read') && r.method() === 'POST';
        });
        assert.equal(
            (await conversations()).length,
            0,
            'a page view without a click leaves nothing behind',
        );
        await page.keyboard.press('Tab');
        await page.keyboard.press('Tab');
        assert.equal(await focused(page), 'button Chat');
        await page.keyboard.press('Enter');
        assert.equal(await focused(page), 'textarea message');
        await page.getByRole('heading', {name: 'Harbour <b>Shop</b>'}).waitFor();
        const tree = await page.locator('body').ariaSnapshot();
        for (const part of [
            'button "Chat" [expanded]',
            'button "Close chat"',
            'dialog "Harbour <b>Shop</b>"',
            'heading "Harbour <b>Shop</b>" [level=2]',
            'button "More options"',
            'log "Conversation"',
            'button "Are you open?"',
            'textbox "Your message"',
            'button "Send"',
        ])
            assert.ok(tree.includes(part), `${part} is not in\n${tree}`);
        await page.keyboard.press('Escape');
        assert.equal(await page.getByRole('dialog').count(), 0);
        assert.equal(await focused(page), 'button Chat');
        await page.keyboard.press('Enter');

        const {id} = await onlyConversation();
        await page.keyboard.type('one');
        await until(
            'the visitor types',
            async () => (await operate('GET', `conversations/${id}`)).visitor_typing,
        );
        await page.keyboard.press('Shift+Enter');
        await page.keyboard.type(HOSTILE);
        await page.keyboard.press('Enter');
        assert.equal(await focused(page), 'textarea message');
        await said(page, 'I found nothing about that').waitFor();
        await until('both are stored', async () => (await messagesOf(id)).length === 2);
        assert.equal((await messagesOf(id))[0].content, `one\n${HOSTILE}`);

        await operate('POST', `conversations/${id}/claim`);
        await page.locator('.note', {hasText: 'A person has joined'}).waitFor();
        await operate('POST', `conversations/${id}/close`);
        await page.locator('.note', {hasText: 'The chat has ended'}).waitFor();
        await operate('POST', `conversations/${id}/claim`, {name: `Anna ${HOSTILE.slice(0, 60)}`});
        await page
            .locator('.note', {hasText: `Anna ${HOSTILE.slice(0, 60)} has joined the chat.`})
            .waitFor();
        await page.locator('.note', {hasText: 'The chat is open again.'}).waitFor();
        assert.equal(await page.getByText('has left the chat').count(), 0, 'the close is shown');
        await operate('POST', `conversations/${id}/typing`);
        await page
            .getByRole('status')
            .filter({hasText: /^Anna .* is typing…$/s})
            .waitFor();
        const sent = Date.now();
        await answer(id, `Yes! ${HOSTILE}`);
        await said(page, 'Yes!').waitFor();
        assert.ok(Date.now() - sent < 1000, `an operator's answer took ${Date.now() - sent} ms`);
        assert.equal(await page.getByText('is typing').count(), 0);
        assert.equal(
            await page.locator('.bubble').count(),
            4,
            await page.locator('.log').innerText(),
        );
        assert.equal(
            await page.locator('.bubble').first().textContent(),
            'Harbour <b>Shop</b>: Hello! How can we help?',
        );
        assert.equal(
            await page.locator('.message.visitor .bubble').textContent(),
            `You: one\n${HOSTILE.slice(0, -1)} (opens in a new window).`,
        );

        /* text is escaped; only web addresses in it become links */
        assert.equal(await page.evaluate(() => window.broken), undefined);
        assert.equal(await page.locator('.log img, .log script, h2 b').count(), 0);
        const links = await page
            .locator('.log a')
            .evaluateAll((all) => all.map((a) => [a.href, a.rel, a.target]));
        assert.deepEqual(
            links,
            Array(2).fill([
                'https://example.com/a?b=1',
                'noopener noreferrer nofollow ugc',
                '_blank',
            ]),
        );
        assert.ok(reads > 0, 'a visible message counts as read');

        /* sources of an answer are links if they are web addresses */
        const permalinks = [
            'javascript:window.broken=3',
            'data:text/html,x',
            'nowhere',
            'https://example.com/shipping',
        ];
        await page.route('**/widget/messages', (route) =>
            route.fulfill({
                headers: {'Access-Control-Allow-Origin': ORIGIN},
                json: {
                    data: {
                        message_id: '7'.repeat(26),
                        answer_id: '7'.repeat(25) + '8',
                        content: 'By ship.',
                        human_takeover: false,
                        low_confidence: false,
                        citations: permalinks.map((url) => ({title: `See ${url}`, url})),
                    },
                },
            }),
        );
        await say(page, 'How do you ship?');
        await said(page, 'By ship.').waitFor();
        assert.deepEqual(
            await page.locator('.under a').evaluateAll((all) => all.map((a) => a.href)),
            ['https://example.com/shipping'],
        );
        await page.unroute('**/widget/messages');

        /* while closed, the launcher announces new messages */
        await page.keyboard.press('Escape');
        await answer(id, 'Still there?');
        await page.getByRole('button', {name: 'Chat (1 unread)'}).waitFor();
        await page.keyboard.press('Enter');
        await page.getByRole('button', {name: 'Chat', exact: true, expanded: true}).waitFor();
        await said(page, 'Still there?').waitFor();
    },

    /*
     * what visitors send: an address, a rating, the codes of a good and an unknown coupon; then
     * nothing
     */
    async leave() {
        const page = await visit(
            await visitor(),
            withAttributes('data-features="human lead rating coupon end erase" data-load="eager"'),
        );
        await open(page);
        const {id} = await onlyConversation();
        await until('the page view is stored', async () =>
            (await operate('GET', 'events')).some(
                (e) => e.kind === 'page.viewed' && e.payload.url.startsWith(ORIGIN),
            ),
        );

        await choose(page, 'Leave your details');
        assert.equal(await focused(page), 'input email');
        await page.getByRole('button', {name: 'Send'}).click();
        const email = page.getByRole('textbox', {name: /E-mail address/});
        assert.equal(await email.getAttribute('aria-invalid'), 'true');
        await email.fill('ada@lovelace.example');
        await page.getByRole('textbox', {name: /^Name/}).fill(HOSTILE.slice(0, 60));
        await page.getByRole('button', {name: 'Send'}).click();
        assert.equal(
            await focused(page),
            'input company',
            'the field the agent asks for is required',
        );
        await page.getByRole('textbox', {name: /^Company/}).fill('Engines & Co');
        await page.keyboard.press('Enter');
        await page.getByRole('status').filter({hasText: 'We have your details'}).waitFor();
        const [lead] = await operate('GET', 'leads');
        assert.deepEqual(
            [lead.email, lead.name, lead.fields],
            ['ada@lovelace.example', HOSTILE.slice(0, 60), {company: 'Engines & Co'}],
        );
        await page.getByRole('button', {name: 'Back'}).click();

        await choose(page, 'Leave your details');
        /*
         * the server's message is shown beside the field, whether the browser accepts the value or
         * not
         */
        await email.fill('ada@.example');
        await page.getByRole('textbox', {name: /^Company/}).fill('x');
        await page.keyboard.press('Enter');
        await until(
            'the error is shown',
            async () => (await page.locator('.mistake').first().innerText()) !== '',
        );
        await page.keyboard.press('Escape');
        assert.equal(await focused(page), 'textarea message');

        await choose(page, 'Rate this chat');
        await page.keyboard.press('ArrowRight'); /* as in every radio group */
        await page.getByRole('radio', {name: '4 of 5'}).check();
        await page.getByRole('textbox', {name: /Your comment/}).fill('good');
        await page.getByRole('button', {name: 'Send'}).click();
        await page.getByRole('status').filter({hasText: 'Thank you for your rating'}).waitFor();
        assert.deepEqual(
            (await operate('GET', 'ratings')).map((r) => [r.rating, r.comment]),
            [[4, 'good']],
        );
        await page.getByRole('button', {name: 'Back'}).click();

        const token = assay('token', 'create', '--workspace', 'main').trim();
        const pendingCodes = async () =>
            (await call(token, 'GET', `/v1/wp/coupons/pending?conversation_id=${id}`)).coupons.map(
                (c) => c.code,
            );
        await call(token, 'POST', '/v1/wp/coupons/sync', {
            agent_id: AGENT,
            site_url: 'https://shop.example',
            plugin_version: '1.0',
            coupons: [{code: 'Harbour10', discount: '10%'}],
        });
        await choose(page, 'Enter a coupon code');
        await page.getByRole('textbox', {name: 'Coupon code'}).fill('harbour10');
        await page.keyboard.press('Enter');
        await page
            .getByRole('status')
            .filter({hasText: 'The code Harbour10 is valid and will be applied in your basket.'})
            .waitFor();
        assert.deepEqual(await pendingCodes(), ['Harbour10'], 'the shop receives it');
        await page.getByRole('button', {name: 'Back'}).click();

        await choose(page, 'Enter a coupon code');
        await page.getByRole('textbox', {name: 'Coupon code'}).fill('SPRING');
        await page.keyboard.press('Enter');
        await page.getByRole('alert').filter({hasText: 'This code is unknown'}).waitFor();
        await page.getByRole('button', {name: 'Back'}).click();

        await choose(page, 'Talk to a person');
        await until(
            'a person is asked for',
            async () => (await operate('GET', `conversations/${id}`)).human_requested,
        );
        await say(page, 'that is all');
        await said(page, 'that is all').waitFor();
        await choose(page, 'End chat');
        await until(
            'it is closed',
            async () => (await operate('GET', `conversations/${id}`)).status === 'closed',
        );
        await page.getByRole('radio', {name: '1 of 5'}).waitFor();
        await page.keyboard.press('Escape');
        await page.locator('.note', {hasText: 'The chat has ended'}).waitFor();

        await choose(page, 'Delete my data');
        await page.getByRole('button', {name: 'Delete my data'}).click();
        await page.getByRole('status').filter({hasText: 'has been deleted'}).waitFor();
        assert.equal(
            (await conversations()).length +
                (await operate('GET', 'leads')).length +
                (await operate('GET', 'ratings')).length,
            0,
        );
        await assert.rejects(pendingCodes(), /: 404 /);
        assert.equal(await page.evaluate(() => localStorage.length), 0);
        await page.waitForTimeout(500); /* a stream that reconnects would make a new visitor */
        assert.equal((await conversations()).length, 0);
    },

    /* offline and back, a lost answer, a reloaded page */
    async weather() {
        const context = await visitor(),
            page = await visit(context);
        await open(page);
        await say(page, 'first');
        await said(page, 'I found nothing').waitFor();
        const {id} = await onlyConversation();

        cut();
        await context.setOffline(true);
        await say(page, 'from the tunnel');
        await page
            .locator('.message', {hasText: 'from the tunnel'})
            .getByText('Sending…')
            .waitFor();
        await page.getByRole('status').filter({hasText: 'You are offline'}).waitFor();
        await answer(id, 'while you were away');
        mend();
        await context.setOffline(false);
        await said(page, 'while you were away').waitFor();
        await until('the message is sent', async () =>
            (await messagesOf(id)).some((m) => m.content === 'from the tunnel'),
        );
        await until(
            'nothing is on its way',
            async () => (await page.getByText('Sending…').count()) === 0,
        );

        /* the browser reports a connection, but no server answers */
        cut();
        await say(page, 'into the void');
        await page.getByRole('status').filter({hasText: 'The connection is lost'}).waitFor();
        await answer(id, 'from the void');
        mend();
        await said(page, 'from the void').waitFor();
        await until('the message is sent', async () =>
            (await messagesOf(id)).some((m) => m.content === 'into the void'),
        );

        /*
         * the answer is lost after the server accepted the message: the widget sends it again, the
         * server stores it once
         */
        let lost = 0;
        await page.route('**/widget/messages', async (route) => {
            if (lost++ > 0) return route.fallback();
            await route.fetch();
            return route.abort('connectionreset');
        });
        await say(page, 'only once');
        await until('it was sent twice', () => lost >= 2);
        await until(
            'nothing is on its way',
            async () => (await page.getByText('Sending…').count()) === 0,
        );
        await page.unroute('**/widget/messages');

        /* a captive portal answers in place of the server */
        let portal = 0;
        await page.route('**/widget/messages', (route) =>
            portal++ > 0
                ? route.fallback()
                : route.fulfill({
                      status: 200,
                      body: '<html>Welcome</html>',
                      headers: {'Access-Control-Allow-Origin': ORIGIN},
                  }),
        );
        await say(page, 'past the portal');
        await until('it has arrived', async () =>
            (await messagesOf(id)).some((m) => m.content === 'past the portal'),
        );
        await page.unroute('**/widget/messages');

        /*
         * a message written offline survives its page, and so does one accepted without an answer
         */
        let taken = 0;
        await page.route('**/widget/messages', async (route) => {
            await route.fetch();
            taken++;
        });
        await say(page, 'taken before the reload');
        await until('it is taken', () => taken > 0);
        await context.setOffline(true);
        await say(page, 'written before the reload');
        await page.close();
        await context.setOffline(false);
        const again = await visit(context);
        await open(again);
        await said(again, 'written before the reload').waitFor();
        await until('it is sent', async () =>
            (await messagesOf(id)).some((m) => m.content === 'written before the reload'),
        );
        for (const text of [
            'first',
            'from the tunnel',
            'into the void',
            'from the void',
            'only once',
            'while you were away',
            'taken before the reload',
            'written before the reload',
        ]) {
            await until(`${text} once`, async () => (await said(again, text).count()) === 1);
            assert.equal((await messagesOf(id)).filter((m) => m.content === text).length, 1, text);
        }

        await context.close();
    },

    /* a network without streams; a new generation of workers; an expired token */
    async server() {
        const other = await visitor(),
            looks = [];
        await other.clock.install();
        await other.route('**/conversation/stream', (route) =>
            route.fulfill({
                status: 400,
                body: 'no',
                headers: {'Access-Control-Allow-Origin': ORIGIN},
            }),
        );
        const plain = await visit(other);
        plain.on(
            'response',
            (r) => r.url().includes('/conversation/messages') && looks.push(r.status()),
        );
        await open(plain);
        await say(plain, 'hello');
        await said(plain, 'What would you like to know?').waitFor();
        assert.equal(await plain.locator('.under button').count(), 0, 'a greeting needs no person');
        await answer((await onlyConversation()).id, 'by looking');
        const later = () => other.clock.fastForward(3100);
        await until(
            'it is seen',
            async () => (await later(), (await said(plain, 'by looking').count()) === 1),
        );
        await until(
            'an unchanged conversation is a 304',
            async () => (await later(), looks.includes(304)),
        );
        const [{id: first}] = await conversations();

        const context = await visitor(),
            again = await visit(context),
            streams = [];
        again.on(
            'request',
            (r) =>
                r.url().endsWith('/conversation/stream') &&
                streams.push(r.headers()['last-event-id']),
        );
        await open(again);
        await say(again, 'first');
        await said(again, 'I found nothing').waitFor();
        const {id} = (await conversations()).find((c) => c.id !== first);

        /* the stream ends and resumes from its last id */
        await until('a stream', () => streams.length > 0);
        const before = streams.length;
        process.kill(Number(MASTER), 'SIGHUP');
        await until('the stream reconnects', () => streams.length > before);
        assert.match(streams.at(-1), /^[0-9A-Z]{26}$/);
        await answer(id, 'from the new ones');
        await said(again, 'from the new ones').waitFor();
        assert.equal(await said(again, 'from the new ones').count(), 1);

        /* an invalid token is renewed, and the message arrives */
        let refused = 0;
        await again.route('**/widget/messages', (route) =>
            refused++ > 0
                ? route.fallback()
                : route.fulfill({
                      status: 401,
                      json: {error: {code: 'unauthorized', message: ''}},
                      headers: {'Access-Control-Allow-Origin': ORIGIN},
                  }),
        );
        await say(again, 'after the token');
        await until('it is stored', async () =>
            (await messagesOf(id)).some((m) => m.content === 'after the token'),
        );
        assert.equal((await conversations()).length, 2);
    },

    /* a hidden tab closes its connection and polls; a buffered stream is replaced by polling */
    async hidden() {
        const context = await visitor();
        await context.clock.install();
        const page = await visit(context),
            streams = [],
            looks = [];
        page.on('request', (r) => r.url().endsWith('/conversation/stream') && streams.push(r));
        page.on(
            'response',
            (r) => r.url().includes('/conversation/messages') && looks.push(r.status()),
        );
        const hide = (hidden) =>
            page.evaluate((yes) => {
                Object.defineProperty(document, 'hidden', {configurable: true, get: () => yes});
                document.dispatchEvent(new Event('visibilitychange'));
            }, hidden);
        await open(page);
        await until('a stream', () => streams.length === 1);
        await page.waitForTimeout(200);
        await page.evaluate(() => {
            const chat = window.AssayWidget.get();
            for (let i = 0; i < 4; i++) chat.toggle();
        });
        await until(
            'a stream again',
            () => streams.filter((r) => r.failure() === null).length === 1,
        );
        await page.waitForTimeout(300);
        assert.equal(
            streams.filter((r) => r.failure() === null).length,
            1,
            'closed and opened at once, it has one stream',
        );
        streams.splice(0, streams.length - 1);
        await hide(true);
        await context.clock.fastForward(21000);
        await until('a look', () => looks.length === 1);
        assert.ok(streams[0].failure() !== null, 'the stream was closed');
        await answer((await onlyConversation()).id, 'while hidden');
        await context.clock.fastForward(61000);
        await said(page, 'while hidden').waitFor();
        assert.equal(streams.length, 1);
        await hide(false);
        await until('a stream again', () => streams.length === 2);

        await page.waitForTimeout(200);
        await page.route('**/conversation/stream', () => {}); /* held back */
        await page.evaluate(() => dispatchEvent(new Event('online')));
        await until('a third', () => streams.length === 3);
        looks.length = 0;
        await context.clock.fastForward(11000);
        await until('a look', () => looks.length > 0);
    },

    /* several tabs, earlier messages, no storage, phones */
    async pages() {
        const context = await visitor(),
            one = await visit(context),
            two = await visit(context);
        await open(one);
        await open(two);
        await say(one, 'in the first tab');
        const {id} = await onlyConversation();
        await until('both tabs are one visitor', async () => (await conversations()).length === 1);
        await said(two, 'in the first tab')
            .waitFor()
            .catch(async () => {
                await two.bringToFront();
                await said(two, 'in the first tab').waitFor();
            });
        await one.bringToFront();
        await answer(id, 'for both');
        await said(one, 'for both').waitFor();

        /* the page gets the last thirty messages; earlier ones are loaded on request */
        for (let i = 0; i < 40; i++) await answer(id, `line ${i}.`);
        await one.reload();
        await open(one);
        await said(one, 'line 39.').waitFor();
        assert.equal(await one.locator('.bubble').count(), 31, 'the greeting and thirty messages');
        await one.getByRole('button', {name: 'Earlier messages'}).click();
        await said(one, 'in the first tab').waitFor();
        const shown = await one.locator('.message.other .bubble').allTextContents();
        assert.deepEqual(
            shown.slice(-40),
            Array.from({length: 40}, (_, i) => `Support: line ${i}.`),
        );
        await context.close();

        const blocked = await visitor();
        await blocked.addInitScript(() =>
            Object.defineProperty(window, 'localStorage', {
                get() {
                    throw new DOMException('no', 'SecurityError');
                },
            }),
        );
        const bare = await visit(blocked);
        await open(bare);
        await bare.getByRole('button', {name: 'Are you open?'}).click();
        await said(bare, 'I found nothing').waitFor();
        assert.equal(
            await focused(bare),
            'textarea message',
            'the button is removed, the focus stays',
        );
        await blocked.close();

        const phone = await visit(
            await visitor({
                viewport: {width: 360, height: 640},
                hasTouch: true,
                reducedMotion: 'reduce',
                colorScheme: 'dark',
            }),
        );
        await open(phone);
        const panel = phone.getByRole('dialog');
        assert.deepEqual(await panel.boundingBox(), {x: 0, y: 0, width: 360, height: 640});
        assert.equal(await panel.evaluate((node) => getComputedStyle(node).animationName), 'none');
        assert.equal(await panel.getAttribute('aria-modal'), 'true');
        for (const button of await panel.getByRole('button').all()) {
            const box = await button.boundingBox();
            assert.ok(
                box.width >= 44 && box.height >= 44,
                `${await button.innerText()}: ${box.width} × ${box.height}`,
            );
        }
        for (let i = 0; i < 8; i++) {
            await phone.keyboard.press('Tab');
            assert.ok(
                await phone.evaluate(() => document.activeElement.shadowRoot !== null),
                'Tab stays in the panel',
            );
        }
    },

    /*
     * a page that may not show it, a form before the chat, a deleted agent, a page that controls it
     * by API
     */
    async rules() {
        const foreign = await visit(await visitor(), `${FOREIGN}/`);
        await open(foreign);
        await foreign.getByRole('status').filter({hasText: 'not available'}).waitFor();
        assert.ok(await input(foreign).isDisabled());

        const sudden = await visit(await visitor());
        await open(sudden);
        await say(sudden, 'before');
        await said(sudden, 'I found nothing').waitFor();
        assay('agent', 'update', AGENT, '--require-lead');
        await say(sudden, 'after');
        await sudden.getByText('Please leave your details before we begin').waitFor();

        const asked = await visit(await visitor());
        await open(asked);
        await asked.getByText('Please leave your details before we begin').waitFor();
        assert.equal(await input(asked).count(), 0);
        await asked.getByRole('textbox', {name: /E-mail/}).fill('b@example.com');
        await asked.getByRole('textbox', {name: /^Company/}).fill('B');
        await asked.keyboard.press('Enter');
        await asked.getByRole('button', {name: 'Back'}).click();
        await say(asked, 'may I now?');
        await said(asked, 'I found nothing').waitFor();

        assay('agent', 'update', AGENT, '--unpublished');
        await asked.getByRole('status').filter({hasText: 'not available'}).waitFor();

        /* the page events and methods of the API */
        assay('agent', 'update', AGENT, '--published', '--no-require-lead');
        const scripted = await visit(
            await visitor(),
            withAttributes(
                'data-launcher="none" data-text-send="Los" data-position="left" data-color="#ff0"',
            ),
        );
        assert.equal(await scripted.getByRole('button', {name: /^Chat/}).count(), 0);
        const got = await scripted.evaluate(async (agent) => {
            const chat = window.AssayWidget.get(agent),
                sent = new Promise((done) => chat.on('sent', done));
            chat.element.hidden = false;
            chat.open();
            chat.send('by the page');
            const refusal = await chat.coupon('X').catch((e) => e.code);
            return [
                (await sent).content,
                refusal,
                window.AssayWidget.get(agent) === window.AssayWidget.create({agent: chat.agent}),
            ];
        }, AGENT);
        assert.deepEqual(got, ['by the page', 'invalid_coupon', true]);
        await scripted.getByRole('button', {name: 'Los', exact: true}).waitFor();
        assert.equal(
            await scripted.locator('.main').evaluate((node) => getComputedStyle(node).color),
            'rgb(0, 0, 0)',
            'black on yellow',
        );
    },

    /*
     * appearance: at the first paint, with the keyboard, while messages arrive, and beside products
     */
    async looks() {
        assay(
            'agent',
            'update',
            AGENT,
            '--theme',
            '{"color":"#0b6e4f","position":"left"}',
            '--lead-fields',
            '[{"name":"order_number"}]',
        );
        snippet = assay('agent', 'embed', AGENT).trim();
        const context = await visitor({viewport: {width: 800, height: 600}}),
            page = await visit(context);
        const launcher = page.getByRole('button', {name: /^Chat/});
        assert.ok(
            (await launcher.boundingBox()).x < 100,
            'the launcher is at the left before the server is asked',
        );
        assert.equal(
            await launcher.evaluate((node) => getComputedStyle(node).backgroundColor),
            'rgb(11, 110, 79)',
        );
        assert.equal((await conversations()).length, 0);

        /* one focus ring per field */
        await launcher.press('Enter');
        await page.getByRole('heading', {name: 'Harbour'}).waitFor();
        assert.deepEqual(
            await input(page).evaluate((node) => {
                const style = getComputedStyle(node);
                return [
                    node.matches(':focus-visible'),
                    style.outlineStyle,
                    style.outlineWidth,
                    style.boxShadow,
                ];
            }),
            [true, 'solid', '2px', 'none'],
        );
        await choose(page, 'Leave your details');
        await page.getByRole('textbox', {name: 'Order number (optional)'}).waitFor();
        await page.keyboard.press('Escape');

        /*
         * The newest message is visible when the other side types, after a reload and after the
         * panel was closed. A reader who scrolled up stays there.
         */
        const {id} = await onlyConversation();
        for (let i = 0; i < 12; i++) await answer(id, `line ${i}.`);
        await said(page, 'line 11.').waitFor();
        const log = page.locator('.log'),
            hiddenBelow = () =>
                log.evaluate((node) => {
                    const messages = node.querySelectorAll('.message');
                    return Math.round(
                        messages[messages.length - 1].getBoundingClientRect().bottom -
                            node.getBoundingClientRect().bottom,
                    );
                });
        const seen = (what) => until(what, async () => (await hiddenBelow()) <= 0);
        await operate('POST', `conversations/${id}/typing`);
        await page.getByText('is typing').waitFor();
        await page.evaluate(
            () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
        );
        assert.ok((await hiddenBelow()) <= 0, 'the last message while the other side types');
        await page.reload();
        await open(page);
        await said(page, 'line 11.').waitFor();
        await seen('the last message after a reload');
        await page.keyboard.press('Escape');
        await answer(id, 'while it was closed.');
        await page.getByRole('button', {name: 'Chat (1 unread)'}).click();
        await seen('the last message after it was closed');
        await log.evaluate((node) => {
            node.scrollTop = 0;
        });
        await page.waitForTimeout(50); /* for its event */
        await answer(id, 'out of sight.');
        await said(page, 'out of sight.').waitFor({state: 'attached'});
        assert.equal(await log.evaluate((node) => node.scrollTop), 0);

        /* a lead by the page API equals one by the form */
        assay('agent', 'update', AGENT, '--require-lead');
        const asked = await visit(await visitor());
        await open(asked);
        await asked.getByText('Please leave your details before we begin').waitFor();
        await asked.evaluate(() => window.AssayWidget.get().lead({email: 'c@example.com'}));
        assert.equal(await asked.locator('.sheet').count(), 0);
        assert.equal(await focused(asked), 'textarea message');
        assay('agent', 'update', AGENT, '--no-require-lead');

        /* on a phone the title receives the focus; it is not a control */
        const phone = await visit(
            await visitor({viewport: {width: 360, height: 640}, hasTouch: true}),
        );
        await phone.getByRole('button', {name: /^Chat/}).press('Enter');
        await phone.getByRole('heading', {name: 'Harbour'}).waitFor();
        assert.equal(await focused(phone), 'h2 title');
        assert.deepEqual(
            await phone
                .locator('h2')
                .evaluate((node) => [
                    node.matches(':focus-visible'),
                    getComputedStyle(node).outlineStyle,
                    getComputedStyle(node).boxShadow,
                ]),
            [true, 'none', 'none'],
        );
    },

    /*
     * product pictures: where the page's policy allows them, from the web, and only over https on
     * an https page
     */
    async pictures() {
        const SECURE = 'https://shop.example',
            secure = `${SECURE}/picture.png`,
            plain = `${ORIGIN}/picture.png`;
        assay('agent', 'update', AGENT, '--origin', ORIGIN, '--origin', SECURE);
        const shown = async (url, images) => {
            const context = await visitor();
            await context.route(`${SECURE}/**`, (route) =>
                route.request().url() === secure
                    ? route.fulfill({contentType: 'image/png', body: PICTURE})
                    : route.fulfill({
                          contentType: 'text/html',
                          body: `<!doctype html><title>shop</title>${snippet}`,
                      }),
            );
            await context.route('**/widget/messages', (route) =>
                route.fulfill({
                    headers: {'Access-Control-Allow-Origin': new URL(url).origin},
                    json: {
                        data: {
                            message_id: '7'.repeat(26),
                            answer_id: '7'.repeat(25) + '8',
                            content: 'Kenya, in stock.',
                            human_takeover: false,
                            low_confidence: false,
                            citations: images.map((image_url, i) => ({
                                title: `Kenya ${i}`,
                                url: `${SECURE}/${i}`,
                                image_url,
                            })),
                        },
                    },
                }),
            );
            const page = await visit(context, url);
            await open(page);
            await say(page, 'Kenya?');
            await said(page, 'Kenya, in stock.').waitFor();
            assert.equal(
                await page.locator('.under a').count(),
                images.length,
                'each source is a link, with a picture or without',
            );
            await page.waitForFunction(() =>
                Array.from(
                    document.querySelector('assay-widget').shadowRoot.querySelectorAll('img'),
                ).every((img) => img.complete),
            );
            return page
                .locator('.under img')
                .evaluateAll((all) =>
                    all.map((img) => [
                        img.src,
                        img.alt,
                        img.getBoundingClientRect().width,
                        img.getBoundingClientRect().height,
                    ]),
                );
        };
        const allowed = `${ORIGIN}/?policy=${encodeURIComponent(`img-src ${ORIGIN}`)}`;
        const others = [
            'javascript:window.broken=4',
            'data:image/png;base64,AAAA',
            'picture.png',
            `${ORIGIN}/none`,
            null,
        ];
        assert.deepEqual(await shown(allowed, [plain, ...others]), [[plain, '', 48, 48]]);
        assert.deepEqual(await shown(`${SECURE}/`, [plain, secure, ...others]), [
            [secure, '', 48, 48],
        ]);
        assert.deepEqual(troubles, []);
        assert.deepEqual(
            await shown(`${ORIGIN}/`, [plain]),
            [],
            'a policy without img-src: no picture, and all else is there',
        );
        assert.equal(troubles.splice(0).length, 1);
    },

    /* ten calls in two seconds: further messages still arrive, once each and in order */
    async limits() {
        const page = await visit(await visitor()),
            refusals = [];
        page.on('response', (r) => r.status() === 429 && refusals.push(r.url()));
        await open(page);
        const texts = Array.from({length: 12}, (_, i) => `number ${i}.`);
        /* it shows for a second, perhaps before the last text */
        const told = page
            .getByRole('status')
            .filter({hasText: /Trying again in \d seconds/})
            .waitFor({timeout: 15000});
        const sayAll = async () => {
            for (const text of texts) await say(page, text);
        };
        await Promise.all([told, sayAll()]);
        const {id} = await onlyConversation();
        const arrived = async () =>
            (await messagesOf(id)).filter((m) => m.role === 'visitor').map((m) => m.content);
        await until(
            'all have arrived',
            async () => (await arrived()).length >= texts.length,
            12000,
        );
        assert.deepEqual(await arrived(), texts);
        assert.ok(refusals.some((url) => url.endsWith('/widget/messages')));
        await until(
            'the page shows them',
            async () => (await page.locator('.message.visitor').count()) === texts.length,
        );
        await until(
            'nothing is on its way',
            async () => (await page.getByText('Sending…').count()) === 0,
        );
        assert.equal(await page.getByText('Not sent').count(), 0);

        /* the limit is full again after the wait: the widget says so, and the visitor can retry */
        let full = 0;
        await page.route('**/widget/messages', (route) =>
            full++ > 1
                ? route.fallback()
                : route.fulfill({
                      status: 429,
                      json: {error: {code: 'rate_limited', message: 'Wait a little.'}},
                      headers: {
                          'Access-Control-Allow-Origin': ORIGIN,
                          'Access-Control-Expose-Headers': 'Retry-After',
                          'Retry-After': '1',
                      },
                  }),
        );
        await say(page, 'one more');
        await page.getByRole('alert').filter({hasText: 'Not sent. Wait a little.'}).waitFor();
        assert.equal(full, 2, 'it waits once');
        await page.getByRole('button', {name: 'Try again'}).click();
        await until('it has arrived', async () => (await arrived()).at(-1) === 'one more');
        assert.equal(await said(page, 'one more').count(), 1);
    },
};

try {
    for (const name of wanted) {
        const started = Date.now();
        await scenes[name]();
        assert.deepEqual(troubles, []);
        console.log(`${name}: ok in ${Date.now() - started} ms`);
        await Promise.all(browser.contexts().map((context) => context.close()));
    }
} catch (e) {
    console.error(e, troubles, heard);
    process.exitCode = 1;
} finally {
    await browser.close();
    site.close();
    wire.close();
    cut();
}
