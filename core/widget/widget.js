/* One chat on a page: launcher and panel, connected to the session. */
const INIT_MESSAGES = 30; /* maximum number with a session; there may be more */
const TYPING_EVERY_MS = 3000; /* the server forgets a typing status after 5 s */
const PHONE = '(max-width: 480px)';

/* For calls in the background: refusals are ignored, bugs are not. */
function unasked(promise) {
    promise.catch((e) => {
        if (!(e instanceof Refused))
            throw e;
    });
}

class Widget {
    constructor(config) {
        const {texts} = config;
        Object.assign(this, {
            config, texts, names: {operator: texts.operator}, listeners: {}, conversation: null,
            agent: {}, unread: 0, pingAt: 0,
            events: [], claimed: false, closed: false, leadNeeded: false, shown: null, spoke: false,
        });
        this.session = new Session(config,
            {opened: (data) => this.opened(data), wait: (n) => this.waits(n)});
        this.live = new Live(this.session, {
            message: (m) => this.came(m),
            typing: (yes) => this.say(this.typing,
                yes ? fill(texts.typing, {name: this.names.operator}) : ''),
            event: (name, data) => this.happened(name, data),
            link: (good) => this.linked(good),
            gone: (e) => this.gone(e),
        });
        this.outbox = new Outbox(this.session, {
            sent: (item, result) => this.sent(item, result),
            failed: (item, e) => this.failed(item, e),
        });
        this.log = new Log(texts, this.names, {
            again: (item) => {
                this.deliver(item);
                this.focus();
            },
            human: config.features.includes('human') ? () => this.attempt(this.human()) : null,
        });
        this.build();
        this.listen();
    }

    /* ---- elements ---- */

    button(label, work, {className, picture} = {}) {
        return element('button', {type: 'button', class: className,
            'aria-label': picture ? label : null, onclick: work},
            picture ? icon(picture) : label);
    }

    build() {
        const {texts, config} = this;
        this.host = element('assay-widget',
            {position: config.position, hidden: config.launcher === 'none', lang: config.language});
        this.root = this.host.attachShadow({mode: 'open'});
        dress(this.root, config.nonce);
        this.launcher = this.button(texts.launcher, () => this.toggle(),
            {className: 'launcher', picture: ICONS.chat});
        this.launcher.setAttribute('aria-haspopup', 'dialog');
        this.launcher.setAttribute('aria-expanded', 'false');
        this.launcher.setAttribute('aria-controls', 'panel');
        this.badge = element('span', {class: 'badge', 'aria-hidden': 'true', hidden: true});
        this.launcher.append(this.badge);
        this.told = element('p', {class: 'unseen', role: 'status'});
        this.root.append(this.launcher, this.told, this.buildPanel());
        this.color(config.color);
    }

    buildPanel() {
        const {texts, config} = this;
        this.title = element('h2', {id: 'title', tabindex: '-1'}, config.title || texts.title);
        this.more = this.button(texts.menu, () => this.menuOpen(this.menu.hidden),
            {picture: ICONS.more});
        this.more.setAttribute('aria-expanded', 'false');
        this.more.setAttribute('aria-controls', 'menu');
        this.menu = element('ul', {class: 'menu', id: 'menu', hidden: true}, ...this.menuItems());
        this.typing = element('p', {class: 'status', role: 'status'});
        this.state = element('p', {class: 'status', role: 'status'});
        this.prompts = element('div', {class: 'prompts'});
        this.input = element('textarea', {id: 'message', rows: 1, maxlength: 4000,
            placeholder: texts.message, enterkeyhint: 'send',
            onkeydown: (e) => this.typed(e), oninput: () => this.changed()});
        const send = element('button', {class: 'main', type: 'submit', 'aria-label': texts.send},
            icon(ICONS.send));
        this.composer = element('form', {class: 'composer', onsubmit: (e) => this.submitted(e)},
            element('label', {class: 'unseen', for: 'message'}, texts.message), this.input, send);
        this.talk = [this.log.box, this.typing, this.state, this.prompts, this.composer];
        this.panel = element('section',
            {class: 'panel', id: 'panel', role: 'dialog', 'aria-labelledby': 'title', hidden: true,
            onkeydown: (e) => this.pressed(e)},
        element('header', {}, this.title, this.more,
            this.button(texts.close, () => this.close(), {picture: ICONS.close})),
        this.menu, ...this.talk);
        return this.panel;
    }

    color(color) {
        if (!isColor(color))
            return;
        this.host.style.setProperty('--accent', color);
        this.host.style.setProperty('--on-accent', readableOn(color));
    }

    say(place, text) {
        if (place.textContent !== text)
            place.textContent = text;
    }

    /* ---- menu ---- */

    /* Columns: required feature, text, action. */
    menuItems() {
        return [
            ['human', 'human', () => this.attempt(this.human())],
            ['lead', 'lead', () => this.show('lead')],
            ['coupon', 'coupon', () => this.show('coupon')],
            ['rating', 'rate', () => this.show('rate')],
            ['end', 'end', () => this.attempt(this.end())],
            ['erase', 'erase', () => this.show('erase')],
        ].filter(([feature]) => this.config.features.includes(feature)).map(([, text, work]) =>
            element('li', {}, this.button(this.texts[text], () => {
                this.menuOpen(false);
                this.input.focus();
                work();
            })));
    }

    menuOpen(open) {
        this.menu.hidden = !open;
        this.more.setAttribute('aria-expanded', String(open));
        (open ? this.menu.querySelector('button') : this.more).focus();
    }

    /* For calls that the visitor started: a refusal is shown. */
    attempt(promise) {
        promise.catch((e) => {
            if (!(e instanceof Refused))
                throw e;
            const text = e.status === 0 ? this.texts.offline : e.message;
            this.say(this.state, text || this.texts.unavailable);
        });
    }

    async human() {
        await this.session.post('request-human');
        this.log.note(this.texts.humanAsked);
    }

    async end() {
        await this.session.post('conversation/close');
        this.happened('closed');
        if (this.config.features.includes('rating'))
            this.show('rate');
    }

    /* ---- forms ---- */

    sheetTable() {
        const {texts} = this;
        return {
            lead: () => ({
                title: texts.lead, intro: this.leadNeeded ? texts.leadFirst : '',
                submit: texts.send,
                fields: this.leadFields(), back: !this.leadNeeded,
                send: (values) => this.keepLead(values).then(() => texts.leadKept),
            }),
            coupon: () => ({
                title: texts.coupon, submit: texts.apply,
                fields: [field(texts, {name: 'code', label: texts.code, required: true,
                    maxlength: 64}, 0)],
                send: ({code}) => this.coupon(code).then((data) => fill(texts.couponGood, data)),
            }),
            rate: () => ({
                title: texts.rate, submit: texts.send,
                fields: [scale(texts, texts.rateScale),
                    field(texts, {name: 'comment', label: texts.comment, type: 'textarea'}, 1)],
                send: ({rating, comment}) => this.rate(rating, comment).then(() => texts.rated),
            }),
            erase: () => ({
                title: texts.erase, intro: texts.eraseSure, submit: texts.erase, fields: [],
                send: () => this.erase().then(() => texts.erased),
            }),
        };
    }

    /* E-mail, name and the agent's lead form fields, which can override them. */
    leadFields() {
        const {texts} = this, wanted = new Map([
            ['email', {name: 'email', label: texts.email, type: 'email', required: true,
                autocomplete: 'email', maxlength: 254}],
            ['name', {name: 'name', label: texts.name, autocomplete: 'name', maxlength: 200}],
        ]);
        for (const f of this.agent.lead_form_fields || []) {
            const usual = f.name === 'phone' ? {
                label: texts.phone, type: 'tel', autocomplete: 'tel', maxlength: 64,
            } : {
                label: f.name[0].toUpperCase() + f.name.slice(1).replace(/_/g, ' '),
            };
            wanted.set(f.name, {...usual, ...wanted.get(f.name), ...f,
                ...(f.name === 'email' ? {required: true, type: 'email'} : {})});
        }
        return Array.from(wanted.values(), (f, i) => field(texts, f, i));
    }

    show(name) {
        this.hideSheet();
        this.shown = sheet(this.texts, {...this.sheetTable()[name](), done: () => this.leave()});
        this.shown.name = name;
        this.talk.forEach((node) => {
            node.hidden = true;
        });
        this.panel.append(this.shown.box);
        if (!this.panel.hidden)
            this.shown.first.focus();
    }

    hideSheet() {
        if (this.shown === null)
            return;
        this.shown.box.remove();
        this.shown = null;
        this.talk.forEach((node) => {
            node.hidden = false;
        });
    }

    /* Returns to the conversation, or closes the panel if the conversation was erased. */
    leave() {
        this.hideSheet();
        if (this.session.data === null)
            this.close();
        else
            this.focus();
    }

    /* ---- open and close ---- */

    toggle() {
        if (this.panel.hidden)
            this.open();
        else
            this.close();
    }

    open() {
        if (!this.panel.hidden)
            return;
        this.opener = document.activeElement;
        this.panel.hidden = false;
        this.panel.setAttribute('aria-modal', String(matchMedia(PHONE).matches));
        this.launcher.setAttribute('aria-expanded', 'true');
        this.begin();
        this.seen();
        this.focus();
        this.track('widget.opened');
        this.emit('open');
    }

    close() {
        if (this.panel.hidden)
            return;
        const inside = this.root.activeElement !== null;
        this.panel.hidden = true;
        this.menu.hidden = true;
        this.more.setAttribute('aria-expanded', 'false');
        this.launcher.setAttribute('aria-expanded', 'false');
        this.label();
        if (inside)
            (this.config.launcher === 'none' && this.opener ? this.opener : this.launcher).focus();
        if (!this.spoke)
            this.live.end();
        this.emit('close');
    }

    /* On touch screens the input gets no focus, because the keyboard would cover the messages. */
    focus() {
        const silent = matchMedia('(pointer: coarse)').matches || this.input.disabled;
        (this.shown !== null ? this.shown.first : silent ? this.title : this.input).focus();
    }

    pressed(event) {
        if (event.key === 'Escape') {
            event.stopPropagation();
            if (!this.menu.hidden)
                this.menuOpen(false);
            else if (this.shown !== null && !this.leadNeeded)
                this.leave();
            else
                this.close();
        } else if (event.key === 'Tab' && matchMedia(PHONE).matches)
            this.turn(event);
    }

    /* On a phone the panel covers the page, so Tab stays inside it. */
    turn(event) {
        const stops = Array.from(
            this.panel.querySelectorAll('button, input, textarea, a, [tabindex="0"]'))
            .filter((node) => !node.disabled && node.getClientRects().length > 0);
        const first = stops[0], last = stops[stops.length - 1];
        const ends = event.shiftKey ? [first, last] : [last, first];
        if (this.root.activeElement === ends[0]) {
            event.preventDefault();
            ends[1].focus();
        }
    }

    label() {
        const {texts, unread} = this;
        const count = unread > 0 ? fill(texts.unread, {n: unread}) : '';
        this.badge.hidden = unread === 0;
        this.badge.textContent = unread > 99 ? '99+' : String(unread);
        this.launcher.setAttribute('aria-label',
            count === '' ? texts.launcher : `${texts.launcher} (${count})`);
        this.say(this.told, this.panel.hidden ? count : '');
    }

    /* ---- the session ---- */

    begin() {
        if (this.session.data === null)
            this.session.open().catch((e) => this.notBegun(e));
        else
            this.live.start();
    }

    notBegun(error) {
        if (!(error instanceof Refused))
            throw error;
        if ([403, 404, 422].includes(error.status))
            this.gone(error);
        else {
            this.linked(false);
            this.live.start(); /* retries */
        }
    }

    opened(data) {
        const {theme} = data.agent;
        this.agent = data.agent;
        this.names.assistant = data.agent.name;
        this.names.operator = data.operator_name || this.texts.operator;
        this.color(this.config.color || theme.color);
        if (!this.config.position && theme.position === 'left')
            this.host.setAttribute('position', 'left');
        this.say(this.title, this.config.title || theme.title || data.agent.name);
        if (this.conversation !== data.conversation_id)
            this.enter(data);
        data.messages.forEach((message) => this.live.took(message));
        this.leadNeeded = data.agent.require_lead_before_chat && !data.lead_captured;
        if (this.leadNeeded && this.shown === null)
            this.show('lead');
        this.linked(true);
        this.outbox.flush();
        if (!this.panel.hidden || this.spoke)
            this.live.start();
        this.flushEvents();
    }

    /* Shows a conversation for the first time on this page. Its messages are not new. */
    enter(data) {
        const seen = this.session.kept.get('seen') || '';
        this.conversation = data.conversation_id;
        this.live.last = NOTHING_YET;
        this.live.tag = null;
        this.spoke = data.messages.length > 0 || this.outbox.items.length > 0;
        this.claimed = this.closed = false;
        this.unread = data.messages.filter((m) => m.role !== 'visitor' && m.id > seen).length;
        this.log.quietly(() => {
            this.log.clear();
            const greeting =
                this.config.greeting || data.agent.theme.greeting || this.texts.greeting;
            this.log.insert(this.log.entry('assistant', String(greeting)));
            data.messages.forEach((message) => this.log.add(message));
            if (data.messages.length === INIT_MESSAGES)
                this.log.box.prepend(this.button(this.texts.earlier,
                    (e) => this.attempt(this.earlier(e.target)), {className: 'earlier'}));
            const arrived = new Set(data.messages.map((message) => message.client_message_id));
            this.outbox.items.filter((item) => !arrived.has(item.id))
                .forEach((item) => this.log.wait(item));
        });
        const prompts = this.spoke ? [] : data.agent.starter_prompts;
        this.prompts.replaceChildren(...prompts.map((text) => this.button(text, () => {
            this.send(text);
            this.focus();
        })));
        this.seen();
        this.emit('ready', {conversation_id: data.conversation_id});
    }

    async earlier(button) {
        const data = await dataOf(await this.session.call('GET',
            `conversation/messages?limit=100&before=${this.log.first}`));
        this.log.quietly(() => data.messages.forEach((message) => this.log.add(message)));
        this.log.box.focus();
        button.hidden = !data.has_more;
    }

    gone(error) {
        this.say(this.state, this.texts.unavailable);
        this.input.disabled = true;
        this.prompts.replaceChildren();
        if (this.panel.hidden)
            this.host.hidden = true;
        this.emit('error', {status: error.status, code: error.code});
    }

    /* ${good}: the server responds. */
    linked(good) {
        if (good)
            this.input.disabled = false;
        this.say(this.state, good ? '' : navigator.onLine ? this.texts.lost : this.texts.offline);
    }

    waits(seconds) {
        const text = fill(this.texts.wait, {n: seconds});
        this.say(this.state, text);
        setTimeout(() => this.state.textContent === text && this.say(this.state, ''),
            seconds * 1000);
    }

    /* ---- messages ---- */

    send(text) {
        const words = clean(String(text).trim(), 4000);
        if (words === '')
            return;
        this.prompts.replaceChildren();
        this.deliver({id: randomId(), text: words});
    }

    deliver(item) {
        this.spoke = true;
        this.closed = false;
        this.log.wait(item);
        if (!navigator.onLine)
            this.linked(false);
        this.outbox.add(item);
        this.begin();
    }

    sent(item, result) {
        this.log.add({id: result.message_id, role: 'visitor', content: item.text,
            client_message_id: item.id});
        if (result.content !== null && result.answer_id)
            this.came({...result, id: result.answer_id, role: 'assistant'});
        this.emit('sent', {message_id: result.message_id, content: item.text});
    }

    failed(item, error) {
        this.log.fail(item, error.message);
        if (error.code === 'lead_required') { /* the agent's setting has just changed */
            this.leadNeeded = true;
            this.show('lead');
        }
        this.emit('error', {status: error.status, code: error.code});
    }

    came(message) {
        if (!this.log.add(message))
            return;
        this.spoke = true;
        this.prompts.replaceChildren();
        if (message.role !== 'visitor') {
            this.unread++;
            this.say(this.typing, '');
            this.seen();
            this.emit('message', {id: message.id, role: message.role, content: message.content});
        }
    }

    /* Visible messages are read. The operator is told. */
    seen() {
        if (!this.panel.hidden && !document.hidden && this.unread > 0) {
            this.unread = 0;
            if (this.session.data !== null)
                unasked(this.session.call('POST', 'conversation/read', {hasty: true}));
            this.session.kept.set('seen', [...this.log.byId.keys()].sort().pop() || '');
        }
        this.label();
        this.emit('unread', {count: this.unread});
    }

    happened(event, {operator_name: name} = {}) {
        const {texts, names} = this,
            joined = event === 'claimed' &&
                (!this.claimed || (name || texts.operator) !== names.operator);
        const change = {claimed: joined, released: this.claimed, closed: !this.closed,
            reopened: this.closed}[event];
        if (!change)
            return;
        this.claimed = event === 'claimed';
        this.closed = event === 'closed';
        names.operator = name || texts.operator;
        this.log.note(name ? fill(texts.joined, {name}) : texts[event]);
        this.emit(event, name ? {operator_name: name} : {});
    }

    typed(event) {
        /* 229: Safari while composing */
        const composing = event.isComposing || event.keyCode === 229;
        if (event.key === 'Enter' && !event.shiftKey && !composing) {
            event.preventDefault();
            this.composer.requestSubmit();
        }
    }

    changed() {
        this.input.style.height = 'auto';
        this.input.style.height = `${Math.min(this.input.scrollHeight + 2, 132)}px`;
        const on = this.input.value.trim() !== '',
            due = on ? Date.now() - this.pingAt >= TYPING_EVERY_MS : this.pingAt !== 0;
        if (due && this.session.data !== null) {
            this.pingAt = on ? Date.now() : 0;
            unasked(this.session.post('typing', {typing_status: on ? 'on' : 'off'}, {hasty: true}));
        }
    }

    submitted(event) {
        event.preventDefault();
        this.send(this.input.value);
        this.input.value = '';
        this.pingAt = 0; /* sending a message ends the typing status */
        this.input.style.height = 'auto';
        this.input.focus();
    }

    /* ---- leads, ratings, coupons, events ---- */

    /* Called by the page: closes the form. */
    async lead(values) {
        const data = await this.keepLead(values);
        if (this.shown?.name === 'lead') {
            if (this.root.activeElement)
                this.leave();
            else
                this.hideSheet();
        }
        return data;
    }

    async keepLead(values) {
        const {email, name, phone, ...rest} = values,
            fields = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== ''));
        const data = await this.session.post('leads', {
            email, name: name || undefined, phone: phone || undefined,
            fields: Object.keys(fields).length > 0 ? fields : undefined,
        }, {headers: {'Idempotency-Key': randomId()}});
        this.leadNeeded = false;
        this.emit('lead', data);
        return data;
    }

    async rate(rating, comment) {
        const data = await this.session.post('satisfaction',
            {rating: String(rating), comment: comment || undefined});
        this.emit('rating', data);
        return data;
    }

    async coupon(code, cart) {
        const data = await this.session.post('coupon/apply', {code: String(code), cart});
        this.emit('coupon', data);
        return data;
    }

    async erase() {
        this.live.end(); /* otherwise it would begin a new session */
        await this.session.erase().catch((e) => {
            this.live.start();
            throw e;
        });
        this.outbox.forget();
        this.conversation = null;
        this.events = [];
        this.unread = 0;
        this.spoke = false;
        this.log.clear();
        this.label();
    }

    /* Events wait for a session but never begin one: visitors who do not chat are not tracked. */
    track(kind, payload) {
        this.events = [...this.events,
            {kind: String(kind), payload, at: new Date().toISOString()}].slice(-50);
        clearTimeout(this.flushing);
        this.flushing = setTimeout(() => this.flushEvents(), 1000);
    }

    flushEvents(keepalive = false) {
        if (this.events.length === 0 || this.session.jwt === null)
            return;
        const events = this.events;
        this.events = [];
        unasked(this.session.post('events', {events}, {keepalive, hasty: keepalive}));
    }

    /* ---- the page ---- */

    listen() {
        const {signal} = this.page = new AbortController();
        addEventListener('pagehide', () => this.flushEvents(true), {signal});
        addEventListener('offline', () => this.panel.hidden || this.linked(false), {signal});
        document.addEventListener('visibilitychange', () => this.seen(), {signal});
    }

    on(name, work) {
        (this.listeners[name] = this.listeners[name] || new Set()).add(work);
        return () => this.listeners[name].delete(work);
    }

    emit(name, detail = {}) {
        for (const work of this.listeners[name] || [])
            work(detail);
    }

    destroy() {
        this.live.end();
        this.outbox.end();
        this.page.abort();
        this.host.remove();
    }
}
