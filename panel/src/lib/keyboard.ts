/**
 * The keyboard: `g` and a letter for an area, `/` for the filter, `n` for a new agent, `?` for the list of keys, `j` and
 * `k` (or arrows, within a list) from row to row, Escape to what is above.
 */
import { here } from './place.ts';
import { lettersAct } from './prefs.ts';

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
const ROWS = 'main tbody tr:not(.spacer), main .rows > li, main .split > nav a';
const STEPS: Readonly<Record<string, number>> = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 };

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.closest('input, select, textarea, dialog') !== null || target.isContentEditable)
  );
}

/** What of a row takes the focus. */
function handleOf(row: Element): HTMLElement | null {
  return row instanceof HTMLAnchorElement ? row : row.querySelector<HTMLElement>('a[href], button');
}

/** Moves the focus by rows; false where there is none there. */
function step(by: number, onlyWithin: boolean): boolean {
  const rows = [...document.querySelectorAll(ROWS)].filter((row) => handleOf(row) !== null);
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  if (at === -1 && onlyWithin) return false;
  const row = rows[at === -1 ? 0 : at + by];
  const handle = row === undefined ? null : handleOf(row);
  handle?.focus();
  handle?.scrollIntoView({ block: 'nearest' });
  return handle !== null;
}

/** The path above one: an agent above its pages, its area above the agent. */
function above(path: readonly string[]): readonly string[] {
  return path.length > 2 ? path.slice(0, 2) : path.slice(0, 1);
}

function pressEscape(go: KeyActions['go']): void {
  const { path } = here();
  if (document.querySelector('dialog[open]') === null && path.length > 1) go(above(path));
}

/** Heeds the keys; what it gives ends that. */
export function heedKeys({ go, find, help }: KeyActions): () => void {
  let pairUntil = 0;
  const pressLetter = (event: KeyboardEvent): void => {
    const { key } = event;
    const area = AREAS[key];
    if (event.timeStamp < pairUntil && area !== undefined) go(area);
    else if (key === '?') help();
    else if (key === 'n') go(['new']);
    else if (key === 'j' || key === 'k') step(STEPS[key] ?? 0, false);
    else if (key === '/') {
      event.preventDefault();
      document.querySelector<HTMLInputElement>('input[type=search]')?.focus();
    }
    pairUntil = key === 'g' ? event.timeStamp + PAIR_MS : 0;
  };
  const press = (event: KeyboardEvent): void => {
    const { key } = event;
    if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === 'k') {
      event.preventDefault();
      if (document.querySelector('dialog[open]') === null) find();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (key === 'Escape') pressEscape(go);
    else if (key.startsWith('Arrow')) {
      if (STEPS[key] !== undefined && step(STEPS[key], true)) event.preventDefault();
    } else if (lettersAct()) pressLetter(event);
  };
  addEventListener('keydown', press);
  return () => removeEventListener('keydown', press);
}
