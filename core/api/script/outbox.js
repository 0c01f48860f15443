/*
 * Messages on their way. Each has an id of its own, by which the server knows a repeat, so whatever gets lost on the way is sent again
 * without fear; they are kept with the session, so that a page that is left while offline does not lose them.
 */
class Outbox {
    /* on.sent(item, result), on.failed(item, error) */
    constructor(session, on) {
        Object.assign(this, {session, on, flushing: false, wake: null});
        this.onOnline = () => this.wake && this.wake();
        addEventListener('online', this.onOnline);
    }

    get items() {
        const {out} = this.session.kept.read();
        return Array.isArray(out) ? out.filter((item) => item && typeof item.id === 'string' && typeof item.text === 'string') : [];
    }

    add(item) {
        this.session.kept.write({out: [...this.items, item].slice(-20)});
        this.flush();
    }

    remove(id) {
        this.session.kept.write({out: this.items.filter((item) => item.id !== id)});
    }

    async flush() {
        if (this.flushing)
            return;
        this.flushing = true;
        try {
            for (let item, tries = 0; (item = this.items[0]) !== undefined && this.onOnline !== null;)
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
        return this.pause(Math.min(500 * 2 ** tries, 30000)).then(() => tries);
    }

    pause(ms) {
        return new Promise((done) => {
            this.wake = done;
            setTimeout(done, ms);
        });
    }

    end() {
        removeEventListener('online', this.onOnline);
        this.onOnline = null;
    }
}
