/*
 * The visitor's session: stored values, the token, and calls that renew the token and wait for
 * limits.
 */

class Refused extends Error {
    /* ${status} 0: no response; ${retryAfter}: seconds. */
    constructor(status, message, more = {}) {
        super(message);
        Object.assign(this, {status, code: '', fields: {}, retryAfter: 0}, more);
    }
    /* worth sending again later, unchanged */
    get passing() {
        return this.status === 0 || this.status >= 500;
    }
}

/*
 * Storage, or the page's memory if storage is missing, full or forbidden. Each value has its own
 * item, because other tabs write too and must not overwrite each other's changes.
 */
const KEPT = ['anon', 'out', 'seen']; /* visitor's secret, unsent messages, last message read */

class Kept {
    constructor(key) {
        Object.assign(this, {key, memory: {}});
    }
    get(name) {
        try {
            return name in this.memory ? this.memory[name] :
                JSON.parse(localStorage.getItem(`${this.key}:${name}`));
        } catch (e) {
            return null;
        }
    }
    set(name, value) {
        try {
            localStorage.setItem(`${this.key}:${name}`, JSON.stringify(value));
            delete this.memory[name];
        } catch (e) {
            this.memory[name] = value;
        }
    }
    forget() {
        this.memory = {};
        try {
            KEPT.forEach((name) => localStorage.removeItem(`${this.key}:${name}`));
        } catch (e) { /* no storage */ }
    }
}

async function refusalOf(response) {
    let error = {};
    try {
        error = (await response.json()).error || {};
    } catch (e) { /* a proxy's page */ }
    return new Refused(response.status, String(error.message || ''), {
        code: String(error.code || ''),
        fields: error.errors || {},
        retryAfter: Math.min(Math.max(Number(response.headers.get('Retry-After')) || 1, 1), 3600),
    });
}

/* The data of a response. Anything else, such as a proxy's page, counts as no response. */
async function dataOf(response) {
    try {
        const {data} = await response.json();
        if (data)
            return data;
    } catch (e) { /* no JSON */ }
    throw new Refused(0, '');
}

/* ${owner}.wake() ends the wait early. */
const sleep = (ms, owner = {}) => new Promise((done) => {
    owner.wake = done;
    setTimeout(done, ms);
});

class Session {
    /*
     * on.opened(data): a conversation begins or is resumed; on.wait(seconds): a limit is reached.
     */
    constructor(config, on) {
        Object.assign(this, {config, on, jwt: null, data: null, opening: null});
        this.kept = new Kept(`assay:${config.api}:${config.agent}`);
    }

    get known() {
        return typeof this.kept.get('anon') === 'string';
    }

    /* One init at a time in all tabs, so that tabs opened together are one visitor. */
    open() {
        if (this.opening === null) {
            this.opening = this.alone(() => this.init()).finally(() => {
                this.opening = null;
            });
        }
        return this.opening;
    }

    alone(work) {
        if (!navigator.locks)
            return work();
        return navigator.locks.request(this.kept.key, work).catch((e) => {
            if (e.name === 'SecurityError') /* a sandboxed frame */
                return work();
            throw e;
        });
    }

    async init() {
        const anon = this.kept.get('anon');
        const response = await this.call('POST', 'init', {
            body: {
                agent_id: this.config.agent,
                anon_id: typeof anon === 'string' ? anon : undefined,
                page_url: pageUrl(),
                page_title: clean(document.title, 512),
                referrer: clean(document.referrer, 512),
                locale: clean(this.config.locale, 64),
            },
        });
        this.data = await dataOf(response);
        this.jwt = this.data.jwt;
        this.kept.set('anon', this.data.anonymous_id);
        this.on.opened(this.data);
    }

    /*
     * Sends one request. Returns the response or throws Refused. An invalid token is renewed once.
     * At a limit it waits Retry-After once, because windows are fixed; ${hasty} calls do not wait.
     */
    async call(method, path, {body, headers = {}, hasty = false, keepalive = false, signal} = {}) {
        let waited = hasty, renewed = path === 'init';
        for (;;) {
            if (this.jwt === null && path !== 'init')
                await this.open();
            const jwt = this.jwt;
            const response = await this.ask(method, path, jwt, {body, headers, keepalive, signal});
            if (response.ok || response.status === 304)
                return response;
            const error = await refusalOf(response);
            if (error.status === 429 && !waited) {
                waited = true;
                this.on.wait(error.retryAfter);
                await sleep(error.retryAfter * 1000);
            } else if (error.status === 401 && !renewed) {
                renewed = true;
                if (this.jwt === jwt)
                    this.jwt = null;
            } else
                throw error;
        }
    }

    async ask(method, path, jwt, {body, headers, keepalive, signal}) {
        const all = {Accept: 'application/json', ...headers}, stop = new AbortController();
        const timer = signal ? 0 : setTimeout(() => stop.abort(), 30000);
        if (path !== 'init')
            all.Authorization = `Bearer ${jwt}`;
        if (body !== undefined)
            all['Content-Type'] = 'application/json';
        try {
            return await fetch(`${this.config.api}/api/v1/widget/${path}`, {
                method, headers: all, keepalive, signal: signal || stop.signal, credentials: 'omit',
                cache: 'no-store',
                body: body === undefined ? undefined : JSON.stringify(body),
            });
        } catch (e) {
            throw new Refused(0, '');
        } finally {
            clearTimeout(timer);
        }
    }

    async post(path, body, more) {
        return dataOf(await this.call('POST', path, {body, ...more}));
    }

    async erase() {
        await this.call('DELETE', 'me');
        this.kept.forget();
        this.jwt = this.data = null;
    }
}

/* The address without its fragment, which is private to the visitor. */
function pageUrl() {
    return location.href.split('#')[0].slice(0, 2048);
}
