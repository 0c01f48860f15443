/* What pages do beyond HTML: the print button, and a page that waits for its grading. */
const POLL_MS = 2000;

function offerPrint() {
  for (const button of document.querySelectorAll('[data-print]')) {
    button.hidden = false;
    button.addEventListener('click', () => window.print());
  }
}

/* Load the page until it does not wait any more, and show it then. */
async function waitForGrading() {
  const wait = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
  for (;;) {
    await wait(document.hidden ? 5 * POLL_MS : POLL_MS);
    try {
      const response = await fetch(location.href, { cache: 'no-cache' });
      if (response.status === 429 || response.status >= 500)
        continue; /* not now: ask again */
      const page = new DOMParser().parseFromString(await response.text(), 'text/html');
      if (!response.ok || page.querySelector('[data-pending]') === null) {
        location.reload();
        return;
      }
    } catch {
      /* The server cannot be reached: ask again. */
    }
  }
}

offerPrint();
if (document.querySelector('[data-pending]') !== null)
  waitForGrading();
