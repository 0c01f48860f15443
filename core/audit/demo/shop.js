/* The shop's side of the chat: its question buttons and its basket use window.AssayWidget. */
'use strict';

const chat = new Promise((done) => {
    const ready = window.AssayWidget && window.AssayWidget.get();
    if (ready)
        done(ready);
    else
        document.addEventListener('assay:ready', (event) => done(event.detail), {once: true});
});

for (const button of document.querySelectorAll('.question'))
    button.addEventListener('click', async () => {
        const face = await chat;
        face.open();
        face.send(button.textContent);
    });

const pounds = (pence) => `£${(pence / 100).toFixed(2)}`;
const basket = document.querySelector('.basket');

function showTotals(price, discount) {
    const row = basket.querySelector('[data-discount]');
    row.hidden = discount === 0;
    row.lastElementChild.textContent = `−${pounds(discount)}`;
    basket.querySelector('[data-total]').textContent = pounds(price);
}

if (basket) {
    const cart = JSON.parse(basket.dataset.cart), note = basket.querySelector('.note');
    const pence = (item) => item.quantity * Math.round(item.price * 100);
    const worth = cart.items.reduce((sum, item) => sum + pence(item), 0);
    basket.querySelector('[data-subtotal]').textContent = pounds(worth);
    showTotals(worth, 0);
    basket.addEventListener('submit', async (event) => {
        event.preventDefault();
        try {
            const {message, totals} = await (await chat).coupon(basket.elements.code.value, cart);
            showTotals(Number(totals.total_price), Number(totals.total_discount));
            note.textContent = message;
        } catch (error) {
            showTotals(worth, 0);
            note.textContent = error.message || 'The server does not answer. Try again.';
        }
    });
}
