/*
 * Messages on their way. Each has an id of its own, by which the server knows a repeat, so whatever gets lost on the way is sent again
 * without fear; they are kept with the session, so that a page that is left while offline does not lose them.
 */
class Outbox {
    /* on.sent(item, result), on.failed(item, error) */
    constructor(session, on) {
        Object.assign(this, {session, on, own: [], flushing: false, wake() {}, page: new AbortController()});
        addEventListener('online', () => this.wake(), {signal: this.page.signal});
    }

    /* What is kept, by this page or others, and of this one what another that wrote at the same moment pushed out. */
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
            for (let item, tries = 0; (item = this.items[0]) !== undefined && !this.page.signal.aborted;)
                tries = await this.sendOne(item) ? 0 : await this.later(tries + 1);
        } finally {
            this.flushing = false;
        }
    }

    /* False: it stays, for another try. */
    async sendOne(item) {
        try {
            const result = await this.session.post('messages', {message: item.text, client_message_id: item.id, page_url: pageUrl()});
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
