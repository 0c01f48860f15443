/*
 * The style sheet of the shadow tree. It does not affect the page, nor the page's styles the
 * widget.
 */
const STYLE = `
:host { all: initial; --accent: #1d4ed8; --on-accent: #fff; --back: #fff; --ink: #1a1a1a;
  --soft: #595959; --pale: #f1f3f5; --line: #8a8f98;
  position: fixed; inset-block-end: 20px; inset-inline-end: 20px; z-index: 2147483000;
  font: 15px/1.45 system-ui, sans-serif;
  color: var(--ink); }
:host([position=left]) { inset-inline-end: auto; inset-inline-start: 20px; }
:host([hidden]) { display: none; }
* { box-sizing: border-box; font: inherit; }
[hidden] { display: none !important; }
fieldset, legend { border: 0; margin: 0; padding: 0; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap;
  user-select: none; }
svg { width: 22px; height: 22px; fill: currentColor; display: block; }
button { border: 0; border-radius: 8px; padding: 8px 14px; min-height: 44px; min-width: 44px;
  background: var(--pale); color: var(--ink);
  cursor: pointer; }
button:hover { filter: brightness(.95); }
button:disabled { opacity: .6; cursor: default; }
:focus-visible { outline: 3px solid var(--ink); outline-offset: 2px;
  box-shadow: 0 0 0 2px var(--back); }
[tabindex="-1"] { outline: 0 !important; box-shadow: none; }
.launcher, .main { background: var(--accent); color: var(--on-accent); }
.launcher { position: relative; width: 60px; height: 60px; border-radius: 50%; display: grid;
  place-items: center; padding: 0;
  box-shadow: 0 2px 12px #0006; }
.launcher svg { width: 28px; height: 28px; }
.badge { position: absolute; inset-block-start: -4px; inset-inline-end: -4px; min-width: 22px;
  border-radius: 11px; padding: 0 6px;
  background: #b00020; color: #fff; font-size: 13px; font-weight: 700; }
.panel { position: absolute; inset-block-end: 76px; inset-inline-end: 0; width: 370px;
  height: min(600px, calc(100vh - 120px));
  display: flex; flex-direction: column; overflow: hidden; border: 1px solid var(--line);
  border-radius: 14px; background: var(--back);
  box-shadow: 0 8px 40px #0005; animation: rise .15s ease-out; }
:host([position=left]) .panel { inset-inline-end: auto; inset-inline-start: 0; }
@keyframes rise { from { opacity: 0; transform: translateY(12px); } }
header { display: flex; align-items: center; gap: 4px; padding: 8px 8px 8px 16px;
  background: var(--accent); color: var(--on-accent); }
h2 { flex: 1; margin: 0; font-size: 17px; font-weight: 600; overflow-wrap: anywhere; }
header button { background: none; color: inherit; padding: 10px; }
header :focus-visible { outline-color: currentColor; outline-offset: -3px; box-shadow: none; }
.menu { margin: 0; padding: 8px; display: grid; gap: 4px; list-style: none;
  border-block-end: 1px solid var(--line); }
.menu button { width: 100%; text-align: start; }
.log { flex: 1; overflow-y: auto; overscroll-behavior: contain; padding: 14px; display: flex;
  flex-direction: column; gap: 10px; }
.log:focus-visible { outline-offset: -3px; box-shadow: none; }
.message { max-width: 85%; align-self: flex-start; }
.bubble { padding: 8px 12px; border-radius: 12px; background: var(--pale); white-space: pre-wrap;
  overflow-wrap: anywhere; }
.visitor { align-self: flex-end; }
.visitor .bubble { background: var(--accent); color: var(--on-accent); }
.bubble a { color: inherit; }
.under { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; margin-block-start: 4px;
  font-size: 13px; color: var(--soft); }
.visitor .under { justify-content: flex-end; }
.under a { flex: 1 0 100%; color: inherit; display: flex; gap: 8px; align-items: center; }
.under img { border-radius: 8px; object-fit: cover; background: var(--pale); }
.earlier { align-self: center; }
.note { align-self: center; text-align: center; font-size: 13px; color: var(--soft); margin: 0; }
.status { margin: 0; padding: 0 14px; font-size: 13px; color: var(--soft); }
.status:not(:empty) { padding-block: 6px; }
.prompts { display: flex; flex-wrap: wrap; gap: 6px; padding: 0 14px 10px; }
.prompts button { border: 1px solid var(--line); background: var(--back); }
form { margin: 0; }
.composer { display: flex; gap: 8px; align-items: flex-end; padding: 10px;
  border-block-start: 1px solid var(--line); }
.composer textarea { flex: 1; resize: none; height: 44px; max-height: 132px; }
input, textarea { width: 100%; min-height: 44px; padding: 10px; border: 1px solid var(--line);
  border-radius: 8px;
  background: var(--back); color: var(--ink); }
input:focus-visible, textarea:focus-visible { outline-width: 2px; outline-offset: -2px;
  box-shadow: none; }
::placeholder { color: var(--soft); opacity: 1; }
[aria-invalid=true] { border-color: #b00020; border-width: 2px; outline-color: #b00020; }
.sheet { flex: 1; overflow-y: auto; padding: 16px; display: grid; gap: 12px; align-content: start; }
.sheet h3 { margin: 0; font-size: 17px; font-weight: 600; }
.sheet p { margin: 0; }
.sheet form { display: grid; gap: 12px; }
label span { display: block; }
.mistake { color: #b00020; }
.scale { display: flex; gap: 6px; margin-block-start: 6px; }
.scale label { flex: 1; position: relative; }
.scale input { position: absolute; inset: 0; opacity: 0; height: 100%; min-height: 0; margin: 0;
  cursor: pointer; }
.scale span { min-height: 44px; display: grid; place-items: center; border: 1px solid var(--line);
  border-radius: 8px; }
.scale input:checked + span { background: var(--accent); color: var(--on-accent);
  font-weight: 700; }
.scale input:focus-visible + span { outline: 3px solid var(--ink); outline-offset: 2px; }
.row { display: flex; gap: 8px; }
@media (max-width: 480px) {
  .panel { position: fixed; inset: 0 !important; width: auto; height: auto; border: 0;
    border-radius: 0;
    padding: env(safe-area-inset-top) env(safe-area-inset-right)
      env(safe-area-inset-bottom) env(safe-area-inset-left); }
  input, textarea { font-size: 16px; }
  .launcher[aria-expanded=true] { display: none; }
}
@media print { :host { display: none; } }
@media (prefers-color-scheme: dark) {
  :host { color-scheme: dark; --back: #1b1d21; --ink: #f2f2f2; --soft: #b9bec6; --pale: #2d3138; }
  .mistake { color: #ff9a9a; }
  [aria-invalid=true] { border-color: #ff9a9a; outline-color: #ff9a9a; }
}
@media (prefers-reduced-motion: reduce) { .panel { animation: none; } }
@media (forced-colors: active) { button, .bubble, .panel { border: 1px solid; }
  .scale input:checked + span { border-width: 4px; } }
`;

/*
 * A constructed style sheet needs no permission from a Content-Security-Policy. Older browsers need
 * a <style> element and a policy that allows it.
 */
function dress(root, nonce) {
    try {
        const sheet = new CSSStyleSheet();
        sheet.replaceSync(STYLE);
        root.adoptedStyleSheets = [sheet];
    } catch (e) {
        root.append(element('style', {nonce: nonce || null}, STYLE));
    }
}
