/* The conversation as a list of messages in the order of their ids; unsent messages come last. */
class Log {
    /* on.again(item): send a message again. on.human(): request a person. */
    constructor(texts, names, on) {
        Object.assign(this, {texts, names, on, byId: new Map(), pending: new Map()});
        this.box = element('div',
            {class: 'log', role: 'log', 'aria-label': texts.log, tabindex: '0'});
        /* If the newest message is visible, it stays visible when the box is shown or resized. */
        this.follows = true;
        this.box.addEventListener('scroll', () => {
            this.follows = this.atEnd;
        });
        new ResizeObserver(() => this.follows && this.toEnd()).observe(this.box);
    }

    clear() {
        this.box.replaceChildren();
        this.byId.clear();
        this.pending.clear();
    }

    /* Adds earlier messages without announcing them to screen readers. */
    quietly(work) {
        const fromEnd = this.box.scrollHeight - this.box.scrollTop;
        this.box.setAttribute('aria-live', 'off');
        work();
        this.box.scrollTop = this.box.scrollHeight - fromEnd;
        requestAnimationFrame(() => this.box.removeAttribute('aria-live'));
    }

    get atEnd() {
        return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 80;
    }

    toEnd() {
        this.box.scrollTop = this.box.scrollHeight;
    }

    insert(node, before = null) {
        this.follows = this.atEnd || node.classList.contains('visitor');
        this.box.insertBefore(node, before);
        if (this.follows)
            this.toEnd();
    }

    entry(role, content, ...under) {
        const who = role === 'visitor' ? this.texts.you : this.names[role] || this.texts.assistant;
        return element('div', {class: `message ${role === 'visitor' ? 'visitor' : 'other'}`},
            element('div', {class: 'bubble'}, element('span', {class: 'unseen'}, `${who}: `),
                ...linked(content, this.texts.newWindow)),
            element('div', {class: 'under'}, ...under));
    }

    /* The entry of the next message, or the first one without an id. */
    following(id) {
        let next = null;
        for (const [other, node] of this.byId)
            if (other > id && (next === null || other < next.id))
                next = {id: other, node};
        if (next !== null)
            return next.node;
        const [first] = this.pending.values();
        return first || null;
    }

    /* Shows a message from the server. False: it is already shown. */
    add(message) {
        const waiting = this.pending.get(message.client_message_id);
        if (waiting !== undefined) {
            waiting.remove();
            this.pending.delete(message.client_message_id);
        }
        if (this.byId.has(message.id))
            return false;
        const node = this.entry(message.role, String(message.content), ...this.sources(message),
            this.time(message.created_at));
        const next = this.following(message.id);
        this.byId.set(message.id, node);
        this.insert(node, next);
        return true;
    }

    time(at) {
        const when = at ? new Date(at) : new Date();
        const text = when.toLocaleTimeString(this.texts.locale,
            {hour: '2-digit', minute: '2-digit'});
        return element('time', {datetime: when.toISOString()}, text);
    }

    sources({citations, low_confidence}) {
        const links = (citations || []).map(({url, title, image_url}) =>
            linkTo(url, String(title || url), this.texts.newWindow, picture(image_url)));
        if (low_confidence && this.on.human)
            links.push(element('button', {type: 'button', onclick: () => this.on.human()},
                this.texts.human));
        return links;
    }

    /* Shows a message that is being sent, replacing an earlier attempt. */
    wait(item) {
        const old = this.pending.get(item.id),
            node = this.entry('visitor', item.text, this.texts.sending);
        this.pending.set(item.id, node);
        if (old !== undefined)
            old.replaceWith(node);
        else
            this.insert(node);
    }

    fail(item, why) {
        const node = this.pending.get(item.id);
        if (node === undefined)
            return;
        node.lastChild.replaceChildren(element('span', {role: 'alert'},
            `${this.texts.failed} ${why}`),
            element('button', {type: 'button', onclick: () => this.on.again(item)},
                this.texts.again));
    }

    get first() {
        return [...this.byId.keys()].sort()[0];
    }

    note(text) {
        this.insert(element('p', {class: 'note'}, text),
            this.pending.values().next().value || null);
    }
}
