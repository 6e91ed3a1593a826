/**
 * Keyboard shortcuts: `g` and a letter open an area, `/` the filter, `n` a new agent, `?` the list of shortcuts. `j`
 * and `k` (or the arrow keys in a list) move between rows. Escape goes up one level.
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
  p: ['people'],
  d: ['discover'],
  m: ['messages'],
  f: ['files'],
  n: ['node'],
};
/** Time limit for the letter after `g`, milliseconds. */
const PAIR_MS = 1_500;
const ROWS = 'main tbody tr:not(.spacer), main .rows > li, main .split > nav a';
const STEPS: Readonly<Record<string, number>> = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 };

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.closest('input, select, textarea, dialog') !== null || target.isContentEditable)
  );
}

/** The element of a row that gets the focus. */
function handleOf(row: Element): HTMLElement | null {
  return row instanceof HTMLAnchorElement ? row : row.querySelector<HTMLElement>('a[href], button');
}

/** Moves the focus by rows. False at the first or last row. */
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

/** The parent of a path: the agent of its pages, the area of an agent. */
function parentPath(path: readonly string[]): readonly string[] {
  return path.length > 2 ? path.slice(0, 2) : path.slice(0, 1);
}

function pressEscape(go: KeyActions['go']): void {
  const { path } = here();
  if (document.querySelector('dialog[open]') === null && path.length > 1) go(parentPath(path));
}

/** Listens for shortcuts. The returned function stops it. */
export function listenForShortcuts({ go, find, help }: KeyActions): () => void {
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
