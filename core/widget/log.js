/* The conversation as a list of what was said, in the order of the messages' ids; what is on its way stands last. */
class Log {
    /* on.again(item): the visitor wants a message sent again. on.human(): and wants a person. */
    constructor(texts, names, on) {
        Object.assign(this, {texts, names, on, byId: new Map(), pending: new Map()});
        this.box = element('div', {class: 'log', role: 'log', 'aria-label': texts.log, tabindex: '0'});
        /* Who reads the newest message goes on to see it when the box is shown or changes its size. */
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

    /* Work that screen readers need not follow: what was said before. */
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
            element('div', {class: 'bubble'}, element('span', {class: 'unseen'}, `${who}: `), ...linked(content, this.texts.newWindow)),
            element('div', {class: 'under'}, ...under));
    }

    /* The next message's entry, or the first one that has no id yet. */
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

    /* Show a message as the server tells it; false: it was there. */
    add(message) {
        const waiting = this.pending.get(message.client_message_id);
        if (waiting !== undefined) {
            waiting.remove();
            this.pending.delete(message.client_message_id);
        }
        if (this.byId.has(message.id))
            return false;
        const node = this.entry(message.role, String(message.content), ...this.sources(message), this.time(message.created_at));
        const next = this.following(message.id);
        this.byId.set(message.id, node);
        this.insert(node, next);
        return true;
    }

    time(at) {
        const when = at ? new Date(at) : new Date();
        const text = when.toLocaleTimeString(this.texts.locale, {hour: '2-digit', minute: '2-digit'});
        return element('time', {datetime: when.toISOString()}, text);
    }

    sources({citations, low_confidence}) {
        const links = (citations || []).map(({url, title, image_url}) =>
            linkTo(url, String(title || url), this.texts.newWindow, picture(image_url)));
        if (low_confidence && this.on.human)
            links.push(element('button', {type: 'button', onclick: () => this.on.human()}, this.texts.human));
        return links;
    }

    /* A message that is on its way; again in place of the same one. */
    wait(item) {
        const old = this.pending.get(item.id), node = this.entry('visitor', item.text, this.texts.sending);
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
        node.lastChild.replaceChildren(element('span', {role: 'alert'}, `${this.texts.failed} ${why}`),
            element('button', {type: 'button', onclick: () => this.on.again(item)}, this.texts.again));
    }

    get first() {
        return [...this.byId.keys()].sort()[0];
    }

    note(text) {
        this.insert(element('p', {class: 'note'}, text), this.pending.values().next().value || null);
    }
}
