/*
 * Receives messages: from the conversation's event stream, read with fetch because it needs the
 * token, or by polling if streams are blocked. Continues after the last message, so that none is
 * missed or shown twice.
 */
const NOTHING_YET = '0'.repeat(26);
const FIRST_BYTES_MS = 10000; /* a stream without first bytes is held back by a proxy */
const SILENCE_MS = 40000;     /* the server sends a comment every 15 s */
const HIDDEN_MS = 20000;      /* browsers limit connections per server: hidden tabs close theirs */
const POLL_MS = {shown: 3000, hidden: 60000};
const STREAM_AGAIN_MS = 300000;

class Live {
    /*
     * on.message(m), on.typing(yes), on.event(name, data), on.link(good), on.gone(error): stopped
     * for good.
     */
    constructor(session, on) {
        Object.assign(this, {session, on, page: null, last: NOTHING_YET, tag: null, pollUntil: 0,
            stop: null, wake() {}});
    }

    start() {
        if (this.page !== null)
            return;
        const {signal} = this.page = new AbortController();
        document.addEventListener('visibilitychange', () => this.seenOrNot(), {signal});
        addEventListener('online', () => this.again(), {signal});
        this.run(signal);
    }

    end() {
        if (this.page === null)
            return;
        this.page.abort();
        this.page = null;
        clearTimeout(this.hiding);
        this.again();
    }

    seenOrNot() {
        clearTimeout(this.hiding);
        if (document.hidden)
            this.hiding = setTimeout(() => this.again(), HIDDEN_MS);
        else if (this.stop === null)
            this.again();
    }

    /* Ends the current request or wait and begins the next round. */
    again() {
        if (this.stop !== null)
            this.stop.abort();
        this.wake();
    }

    /* Runs until ${ended} is aborted. */
    async run(ended) {
        for (let failures = 0; !ended.aborted;) {
            const polling = document.hidden || Date.now() < this.pollUntil;
            let wait;
            try {
                if (polling)
                    await this.poll();
                else
                    await this.stream();
                failures = 0;
                wait = !polling ? Math.random() * 200 :
                    document.hidden ? POLL_MS.hidden : POLL_MS.shown;
            } catch (e) {
                if (ended.aborted)
                    return;
                if (!(e instanceof Refused))
                    reportError(e); /* a bug: the page can log it, and the chat continues */
                if (e.status === 403 || e.status === 404) {
                    this.end();
                    this.on.gone(e);
                    return;
                }
                if (!polling && e.status >= 400 && e.status < 500 &&
                    ![401, 429].includes(e.status))
                    this.pollUntil = Date.now() + STREAM_AGAIN_MS; /* a proxy forbids streams */
                failures++;
                this.on.link(e.status === 429 || failures < 2);
                wait = e.status === 429 ? e.retryAfter * 1000 :
                    Math.min(1000 * 2 ** (failures - 1), 30000) * (0.75 + Math.random() / 2);
            }
            if (!ended.aborted)
                await sleep(wait, this);
        }
    }

    took(message) {
        if (message.id > this.last)
            this.last = message.id;
        this.on.message(message);
    }

    /* Returns when the stream ends normally; run then opens it again. */
    async stream() {
        const stop = this.stop = new AbortController();
        let timer, heard = false, silent = false;
        const watch = (ms) => {
            clearTimeout(timer);
            timer = setTimeout(() => {
                silent = !heard;
                stop.abort();
            }, ms);
        };
        try {
            watch(FIRST_BYTES_MS);
            const response = await this.session.call('GET', 'conversation/stream', {
                headers: {Accept: 'text/event-stream', 'Last-Event-ID': this.last}, hasty: true,
                signal: stop.signal,
            });
            if (!response.body || !response.body.getReader) {
                this.pollUntil = Infinity;
                return;
            }
            const reader = response.body.getReader(),
                parser = new EventParser((event) => this.told(event));
            for (;;) {
                const {value, done} = await reader.read()
                    .catch(() => Promise.reject(new Refused(0, '')));
                if (done)
                    return;
                watch(SILENCE_MS);
                if (!heard)
                    this.on.link(true);
                heard = true;
                parser.take(value);
            }
        } catch (e) {
            if (silent && !document.hidden && navigator.onLine)
                this.pollUntil = Date.now() + STREAM_AGAIN_MS;
            if (!stop.signal.aborted || !(e instanceof Refused))
                throw e;
        } finally {
            clearTimeout(timer);
            stop.abort();
            if (this.stop === stop)
                this.stop = null;
        }
    }

    told({event, data}) {
        if (event === 'message')
            this.took(JSON.parse(data));
        else if (event === 'typing')
            this.on.typing(JSON.parse(data).typing === true);
        else if (event !== 'reconnect')
            this.on.event(event, JSON.parse(data));
    }

    async poll() {
        for (let more = true; more;) {
            const response = await this.session.call('GET',
                `conversation/messages?limit=100&after=${this.last}`, {
                headers: this.tag === null ? {} : {'If-None-Match': this.tag}, hasty: true,
            });
            this.on.link(true);
            if (response.status === 304)
                return;
            const data = await dataOf(response);
            data.messages.forEach((message) => this.took(message));
            this.on.typing(data.operator_typing);
            this.on.event(data.is_closed ? 'closed' : 'reopened');
            this.on.event(data.is_claimed ? 'claimed' : 'released', data);
            more = data.has_more;
            this.tag = more ? null : response.headers.get('ETag');
        }
    }
}

/* Parses server-sent events (HTML Standard, 9.2.6) from chunks of bytes. */
class EventParser {
    constructor(done) {
        Object.assign(this, {done, text: '', decoder: new TextDecoder()});
    }
    take(bytes) {
        this.text += this.decoder.decode(bytes, {stream: true});
        const parts = this.text.split('\n\n');
        this.text = parts.pop();
        for (const part of parts) {
            const event = {event: 'message', data: ''};
            for (const line of part.split('\n')) {
                const [, name, value] = /^(\w+): ?(.*)$/.exec(line) || [];
                if (name === 'event' || name === 'data')
                    event[name] = value;
            }
            if (event.data !== '')
                this.done(event);
        }
    }
}
