/** The keyboard: `g` and a letter for an area, `/` for the filter, `n` for a new agent, `?` for the list of keys. */

interface KeyActions {
  readonly go: (path: readonly string[]) => void;
  readonly find: () => void;
  readonly help: () => void;
}

const AREAS: Readonly<Record<string, readonly string[]>> = {
  h: [],
  a: ['agents'],
  d: ['discover'],
  m: ['messages'],
  f: ['files'],
  n: ['node'],
};
/** How long after `g` the letter of an area may come, milliseconds. */
const PAIR_MS = 1_500;

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.closest('input, select, textarea, dialog') !== null || target.isContentEditable)
  );
}

/** Heeds the keys; what it gives ends that. */
export function heedKeys({ go, find, help }: KeyActions): () => void {
  let pairUntil = 0;
  const press = (event: KeyboardEvent): void => {
    const { key } = event;
    if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === 'k') {
      event.preventDefault();
      if (document.querySelector('dialog[open]') === null) find();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const area = AREAS[key];
    if (event.timeStamp < pairUntil && area !== undefined) go(area);
    else if (key === '?') help();
    else if (key === 'n') go(['new']);
    else if (key === '/') {
      event.preventDefault();
      document.querySelector<HTMLInputElement>('input[type=search]')?.focus();
    }
    pairUntil = key === 'g' ? event.timeStamp + PAIR_MS : 0;
  };
  addEventListener('keydown', press);
  return () => removeEventListener('keydown', press);
}
