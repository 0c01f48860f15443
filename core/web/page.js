/* What pages do beyond HTML: printing, and a page that waits for its grading. */
const POLL_MS = 2000;

function offerPrint() {
  for (const button of document.querySelectorAll('[data-print]')) {
    button.hidden = false;
    button.addEventListener('click', () => window.print());
  }
}

/* Browsers without ::details-content print what is open: open all, and fold them again. */
function unfoldForPrint() {
  const opened = [];
  window.addEventListener('beforeprint', () => {
    for (const details of document.querySelectorAll('details:not([open])')) {
      details.open = true;
      opened.push(details);
    }
  });
  window.addEventListener('afterprint', () => {
    while (opened.length > 0)
      opened.pop().open = false;
  });
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
unfoldForPrint();
if (document.querySelector('[data-pending]') !== null)
  waitForGrading();
