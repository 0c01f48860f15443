/*
 * Messages that are being sent. Each has an id by which the server recognises a repeat, so lost
 * messages can be sent again. They are stored with the session, so that leaving the page while
 * offline does not lose them.
 */
class Outbox {
    /* on.sent(item, result), on.failed(item, error) */
    constructor(session, on) {
        Object.assign(this, {session, on, own: [], flushing: false, wake() {},
            page: new AbortController()});
        addEventListener('online', () => this.wake(), {signal: this.page.signal});
    }

    /*
     * The stored messages of all pages, and those of this page that another page has overwritten.
     */
    get items() {
        const out = this.session.kept.get('out');
        const kept = Array.isArray(out) ? out.filter((item) => item && item.id && item.text) : [];
        return [...kept, ...this.own.filter(({id}) => !kept.some((item) => item.id === id))];
    }

    add(item) {
        this.own.push(item);
        this.session.kept.set('out', this.items);
        this.flush();
    }

    remove(id) {
        this.own = this.own.filter((item) => item.id !== id);
        this.session.kept.set('out', this.items.filter((item) => item.id !== id));
    }

    forget() {
        this.own = [];
    }

    async flush() {
        if (this.flushing)
            return;
        this.flushing = true;
        try {
            for (let item, tries = 0;
                (item = this.items[0]) !== undefined && !this.page.signal.aborted;)
                tries = await this.sendOne(item) ? 0 : await this.later(tries + 1);
        } finally {
            this.flushing = false;
        }
    }

    /* False: the message stays for another attempt. */
    async sendOne(item) {
        try {
            const result = await this.session.post('messages',
                {message: item.text, client_message_id: item.id, page_url: pageUrl()});
            this.remove(item.id);
            this.on.sent(item, result);
        } catch (e) {
            if (!(e instanceof Refused))
                throw e;
            if (e.passing)
                return false;
            this.remove(item.id);
            this.on.failed(item, e);
        }
        return true;
    }

    later(tries) {
        return sleep(Math.min(500 * 2 ** tries, 30000), this).then(() => tries);
    }

    end() {
        this.page.abort();
    }
}
