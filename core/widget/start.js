/*
 * From <script src=…/widget.js data-agent=…> to a chat on the page, and window.AssayWidget for
 * pages that want more. packaging/OPERATING.md, "The chat widget", lists every attribute, method
 * and event.
 */
const FEATURES = 'human lead rating end erase';
const FROM_SERVER = /\/widget(\/[0-9a-f]{16}\/widget)?\.js(\?.*)?$/;
const widgets = new Map(); /* by agent and server: a second script creates no second chat */

function configOf(options, source) {
    if (!options.api && !FROM_SERVER.test(source))
        throw new TypeError('AssayWidget: set data-api; the script does not come from a server.');
    const url = new URL(options.api || source.replace(FROM_SERVER, ''), location.href);
    const texts = {...TEXTS};
    for (const name of Object.keys(TEXTS))
        if (typeof (options.texts || {})[name] === 'string')
            texts[name] = options.texts[name];
    const locale = options.locale || document.documentElement.lang || navigator.language || 'en';
    try {
        texts.locale = Intl.getCanonicalLocales(locale)[0];
    } catch (e) { /* invalid: use the browser's */ }
    return {
        agent: String(options.agent || ''), api: (url.origin + url.pathname).replace(/\/$/, ''),
        texts, locale,
        language: options.language || (options.texts ? null : 'en'), position: options.position,
        color: options.color,
        title: options.title, greeting: options.greeting, launcher: options.launcher,
        nonce: options.nonce,
        features: String(options.features || FEATURES).split(/[\s,]+/),
    };
}

function faceOf(widget) {
    const face = {agent: widget.config.agent, element: widget.host};
    for (const name of ['open', 'close', 'toggle', 'send', 'track', 'lead', 'rate', 'coupon',
        'human', 'erase', 'on'])
        face[name] = widget[name].bind(widget);
    face.destroy = () => {
        widget.destroy();
        widgets.delete(`${widget.config.api} ${widget.config.agent}`);
    };
    return Object.freeze(face);
}

function create(options, source = '') {
    const config = configOf(options, source), key = `${config.api} ${config.agent}`;
    if (config.agent === '')
        throw new TypeError('AssayWidget: set data-agent to an id from `assay agent list`.');
    if (widgets.has(key))
        return widgets.get(key);
    const widget = new Widget(config), face = faceOf(widget);
    widgets.set(key, face);
    document.body.append(widget.host);
    if (options.load === 'eager') {
        widget.track('page.viewed', {url: pageUrl()});
        widget.begin();
    } else if (widget.session.known)
        widget.begin();
    if (options.open === 'true' || options.open === true)
        widget.open();
    document.dispatchEvent(new CustomEvent('assay:ready', {detail: face}));
    return face;
}

/* data-text-send="…" is dataset.textSend. */
function optionsOf(script) {
    const options = {...script.dataset, nonce: script.nonce}, texts = {};
    for (const [name, value] of Object.entries(script.dataset))
        if (/^text[A-Z]/.test(name))
            texts[name[4].toLowerCase() + name.slice(5)] = value;
    return Object.keys(texts).length > 0 ? {...options, texts} : options;
}

function start() {
    const script = document.currentScript ||
        document.querySelector('script[data-agent][src*="widget"]');
    const source = script ? script.src : '';
    const first = !window.AssayWidget;
    if (first)
        window.AssayWidget = Object.freeze({
            create: (options) => create(options, source),
            get: (agent) => Array.from(widgets.values()).find((face) =>
                agent === undefined || face.agent === agent),
        });
    if (!script || !script.dataset.agent)
        return;
    /* if the script is included twice, the first one creates the chat */
    const begin = () => window.AssayWidget.create({...optionsOf(script),
        api: script.dataset.api || configOf({}, source).api});
    if (document.body)
        begin();
    else
        document.addEventListener('DOMContentLoaded', begin, {once: true});
}

start();
