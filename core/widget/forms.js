/* Forms. Errors are shown beside their field, in the browser's words if the browser found them. */

/* One field: {name, label, type, required, autocomplete}. Result: .control, .say(text). */
function field(texts, {name, label, type = 'text', required = false, autocomplete = null,
    maxlength = 2000}, at) {
    const mistake = element('span', {class: 'mistake', id: `mistake-${at}`});
    const control = element(type === 'textarea' ? 'textarea' : 'input', {
        type: type === 'textarea' ? null : type, name, required, autocomplete, maxlength,
        rows: type === 'textarea' ? 3 : null,
        'aria-describedby': `mistake-${at}`,
    });
    const title = element('span', {}, required ? label : `${label} (${texts.optional})`);
    const box = element('label', {}, title, control, mistake);
    return {
        name, box, control,
        get value() {
            return control.value.trim();
        },
        say(text) {
            mistake.textContent = text;
            control.setAttribute('aria-invalid', String(text !== ''));
        },
        check() {
            return control.validationMessage;
        },
    };
}

/* 1 to 5 as radio buttons. */
function scale(texts, label) {
    const mistake = element('span', {class: 'mistake', id: 'mistake-scale'});
    const inputs = [1, 2, 3, 4, 5].map((n) =>
        element('input', {type: 'radio', name: 'rating', value: n,
            'aria-label': fill(texts.rating, {n})}));
    const faces = inputs.map((input) => element('label', {}, input,
        element('span', {'aria-hidden': 'true'}, input.value)));
    const box = element('fieldset', {'aria-describedby': 'mistake-scale'},
        element('legend', {}, label),
        element('div', {class: 'scale'}, ...faces), mistake);
    return {
        name: 'rating', box, control: inputs[0],
        get value() {
            return (inputs.find((input) => input.checked) || {value: ''}).value;
        },
        say(text) {
            mistake.textContent = text;
        },
        check() {
            return this.value === '' ? texts.ratingNeeded : '';
        },
    };
}

/*
 * A form of ${fields}. ${send}(values) submits it; its result is a sentence that replaces the form.
 * ${done}() is called when the visitor goes back.
 */
function sheet(texts, {title, intro, fields, submit, send, done, back = true}) {
    const heading = element('h3', {id: 'sheet-title', tabindex: '-1'}, title);
    const trouble = element('p', {class: 'mistake', role: 'alert'});
    const go = element('button', {class: 'main', type: 'submit'}, submit);
    const leaving = () => element('button', {type: 'button', onclick: done}, texts.back);
    const form = element('form', {novalidate: true, onsubmit: onSubmit},
        ...fields.map((f) => f.box), trouble,
        element('div', {class: 'row'}, go, back ? leaving() : null));
    const box = element('div', {class: 'sheet', role: 'group', 'aria-labelledby': 'sheet-title'},
        heading,
        intro ? element('p', {}, intro) : null, form);

    function tell(name, text) {
        const about = fields.find((f) => f.name === name);
        if (about === undefined)
            trouble.textContent = text;
        else {
            about.say(text);
            about.control.focus();
        }
    }

    async function onSubmit(event) {
        event.preventDefault();
        trouble.textContent = '';
        fields.forEach((f) => f.say(''));
        const wrong = fields.find((f) => f.check() !== '');
        if (wrong !== undefined) {
            tell(wrong.name, wrong.check());
            return;
        }
        go.disabled = true;
        try {
            const text = await send(Object.fromEntries(fields.map((f) => [f.name, f.value])));
            form.replaceWith(element('p', {role: 'status'}, text),
                element('div', {class: 'row'}, leaving()));
            heading.focus();
        } catch (e) {
            if (!(e instanceof Refused))
                throw e;
            const told = Object.entries(e.fields);
            told.forEach(([name, messages]) => tell(name, messages.join(' ')));
            if (told.length === 0)
                trouble.textContent =
                    e.status === 0 ? texts.offline : e.message || texts.unavailable;
        } finally {
            go.disabled = false;
        }
    }

    return {box, first: fields.length > 0 ? fields[0].control : go};
}
