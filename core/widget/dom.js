/*
 * Builds elements with DOM methods. No markup is parsed, so texts from visitors, operators or the
 * server cannot become markup, and pages can forbid inline styles and require Trusted Types.
 */
const SVG = 'http://www.w3.org/2000/svg';

/* element('p', {class: 'note', onclick: fn}, 'text', node …): null and undefined are skipped. */
function element(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
        if (name.startsWith('on'))
            node.addEventListener(name.slice(2), value);
        else if (value !== null && value !== undefined && value !== false)
            node.setAttribute(name, value === true ? '' : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
}

function icon(path) {
    const svg = document.createElementNS(SVG, 'svg'), shape = document.createElementNS(SVG, 'path');
    svg.setAttribute('viewBox', '0 0 24 24');
    svg.setAttribute('aria-hidden', 'true');
    shape.setAttribute('d', path);
    svg.append(shape);
    return svg;
}

const ICONS = {
    chat: 'M4 3h16a2 2 0 0 1 2 2v11a2 2 0 0 1-2 2h-8l-5 4v-4H4a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2z',
    close: 'M5.6 4.2 12 10.6l6.4-6.4 1.4 1.4L13.4 12l6.4 6.4-1.4 1.4L12 13.4l-6.4 6.4-1.4-1.4L10.6 12 4.2 5.6z',
    more: 'M12 4a2 2 0 1 1 0 4 2 2 0 0 1 0-4zm0 6a2 2 0 1 1 0 4 2 2 0 0 1 0-4zm0 6a2 2 0 1 1 0 4 2 2 0 0 1 0-4z',
    send: 'M3 3l19 9-19 9 3-8 8-1-8-1z',
};

/* A URL with http or https; null for others, such as javascript: and data:. */
function webAddress(url) {
    try {
        const target = new URL(url);
        return /^https?:$/.test(target.protocol) ? target : null;
    } catch (e) {
        return null;
    }
}

function linkTo(url, label, hint, before) {
    const target = webAddress(url);
    return target && element('a',
        {href: target.href, target: '_blank', rel: 'noopener noreferrer nofollow ugc'},
        before, label,
        element('span', {class: 'unseen'}, ` (${hint})`));
}

/* A decorative image. It is removed if it cannot be loaded or the page's policy forbids it. */
function picture(url) {
    const target = webAddress(url);
    if (!target || (target.protocol !== 'https:' && location.protocol !== 'http:'))
        return null;
    return element('img', {
        src: target.href, alt: '', width: 48, height: 48, onerror: (e) => e.target.remove(),
    });
}

/* Text with its web addresses as links, without a full stop or bracket after them. */
function linked(text, hint) {
    const parts = [];
    let from = 0;
    for (const match of text.matchAll(/https?:\/\/[^\s<>"]+[^\s<>".,;:!?)\]}'»]/g)) {
        const link = linkTo(match[0], match[0], hint);
        if (link === null)
            continue;
        parts.push(text.slice(from, match.index), link);
        from = match.index + match[0].length;
    }
    parts.push(text.slice(from));
    return parts;
}

/* At most ${most} characters that the server accepts: no NUL, no lone surrogate. */
function clean(text, most) {
    return Array.from(String(text).replace(/\0/g, '')).slice(0, most)
        .map((c) => (/^[\ud800-\udfff]$/.test(c) ? '\ufffd' : c)).join('');
}

/*
 * Black or white, whichever is more readable on ${color} ("#rgb" or "#rrggbb"): a contrast of at
 * least 4.58 to 1 (WCAG 2, relative luminance).
 */
function readableOn(color) {
    const digits = color.length === 4 ? color.replace(/[^#]/g, '$&$&') : color;
    const [r, g, b] = [1, 3, 5].map((at) => {
        const c = parseInt(digits.slice(at, at + 2), 16) / 255;
        return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.1791 ? '#000' : '#fff';
}

function isColor(text) {
    return typeof text === 'string' && /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.test(text);
}

/* A random id. randomUUID exists only on secure pages. */
function randomId() {
    return Array.from(crypto.getRandomValues(new Uint8Array(16)),
        (byte) => byte.toString(16).padStart(2, '0')).join('');
}
