/** Dialogs and short notifications above the page. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { asFailure, type Failure } from '../lib/failure.ts';
import { failureText } from '../lib/failure-text.ts';
import { holdPage } from '../lib/hold-page.ts';
import { t } from '../lib/i18n.ts';
import { here, pageOf } from '../lib/place.ts';
import { refresh } from '../lib/query.ts';
import { useRedraw } from '../lib/redraw.ts';

type Shown = (close: () => void) => ComponentChildren;
interface Opened {
  readonly id: number;
  readonly shown: Shown;
  /**
   * The page that opened it. The dialog closes when the user leaves the page. Empty: it stays until the user closes it.
   */
  readonly page: string;
}
interface Notice {
  readonly id: number;
  readonly text: string;
  readonly isBad: boolean;
  readonly undo?: () => void;
}

/** How long a notification stays, and how long a reversible action is delayed, milliseconds. */
const NOTICE_MS = 6_000;

let dialogs: readonly Opened[] = [];
let notices: readonly Notice[] = [];
let count = 0;
let changed = (): void => {};

function open(shown: Shown, page: string): void {
  dialogs = [...dialogs, { id: ++count, shown, page }];
  changed();
}

/** Opens a dialog of the current page. It closes with the page. */
export function openDialog(shown: Shown): void {
  open(shown, pageOf(here()));
}

/** Opens a dialog with something that cannot be shown again. It stays on every page until the user closes it. */
export function openOnce(shown: Shown): void {
  const release = holdPage();
  open(
    (close) =>
      shown(() => {
        release();
        close();
      }),
    '',
  );
}

function closeDialogs(isMeant: (dialog: Opened) => boolean): void {
  const left = dialogs.filter((dialog) => !isMeant(dialog));
  if (left.length === dialogs.length) return;
  dialogs = left;
  changed();
}

function closeLeft(): void {
  const page = pageOf(here());
  closeDialogs((dialog) => dialog.page !== '' && dialog.page !== page);
}

function notify(text: string, isBad: boolean, undo?: () => void): number {
  const notice = { id: ++count, text, isBad, ...(undo === undefined ? {} : { undo }) };
  notices = [...notices, notice];
  setTimeout(dismiss, NOTICE_MS, notice.id);
  changed();
  return notice.id;
}

function dismiss(id: number): void {
  notices = notices.filter((notice) => notice.id !== id);
  changed();
}

/**
 * Runs an action, reports its success and repeats the queries.
 *
 * @returns its failure, which the caller shows
 */
export async function attempt<A>(
  run: () => Promise<A>,
  done: string | ((answer: A) => string) = '',
): Promise<Failure | undefined> {
  try {
    const answer = await run();
    const text = typeof done === 'string' ? done : done(answer);
    if (text !== '') notify(text, false);
    return undefined;
  } catch (error) {
    return asFailure(error);
  } finally {
    refresh();
  }
}

/** Runs an action, reports the result and repeats the queries. */
export function act<A>(run: () => Promise<A>, done: string | ((answer: A) => string) = ''): void {
  attempt(run, done).then(
    (failure) => {
      if (failure !== undefined) notify(failureText(failure), true);
    },
    () => {},
  );
}

/** Runs an action after a few seconds, unless the user undoes it. */
export function actLater(run: () => Promise<unknown>, what: string): void {
  const release = holdPage();
  const timer = setTimeout(() => {
    release();
    act(run);
  }, NOTICE_MS);
  const id = notify(what, false, () => {
    clearTimeout(timer);
    release();
    dismiss(id);
    refresh();
  });
}

interface DialogProps {
  readonly title: string;
  readonly close: () => void;
  readonly children: ComponentChildren;
}

/** A modal dialog. Escape closes it. */
export function Dialog({ title, close, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={element} aria-label={title} onClose={close}>
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}

interface Confirmation {
  readonly title: string;
  readonly text: string;
  /** The text of the button: a verb and an object. */
  readonly verb: string;
  /** The text that the user must type first. */
  readonly tail?: string;
  readonly run: () => Promise<unknown>;
}

function Confirm({ title, text, verb, tail, run, close }: Confirmation & { readonly close: () => void }) {
  const [typed, setTyped] = useState('');
  const isSure = tail === undefined || typed.trim() === tail;
  return (
    <Dialog title={title} close={close}>
      <p>{text}</p>
      {tail !== undefined && (
        <label class="field">
          <span>{t('confirm.type', { tail })}</span>
          <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} autocomplete="off" />
        </label>
      )}
      <div class="acts">
        <button type="button" autofocus onClick={close}>
          {t('cancel')}
        </button>
        <button
          type="button"
          class="danger"
          disabled={!isSure}
          onClick={() => {
            close();
            act(run);
          }}
        >
          {verb}
        </button>
      </div>
    </Dialog>
  );
}

/** Asks before an action that cannot be undone. */
export function confirm(confirmation: Confirmation): void {
  openDialog((close) => <Confirm {...confirmation} close={close} />);
}

/** Shows dialogs and notifications. It exists once in the page. */
export function Overlay() {
  const render = useRedraw();
  useEffect(() => {
    changed = render;
    render();
    addEventListener('hashchange', closeLeft);
    return () => {
      removeEventListener('hashchange', closeLeft);
      // The login screen has no pages, so their dialogs close.
      closeDialogs(({ page }) => page !== '');
    };
  }, []);
  return (
    <>
      {dialogs.map(({ id, shown }) => (
        <div key={id}>{shown(() => closeDialogs((dialog) => dialog.id === id))}</div>
      ))}
      <div class="toasts" role="status">
        {notices.map(({ id, text, isBad, undo }) => (
          <div key={id} class={isBad ? 'toast bad' : 'toast'}>
            <span>{text}</span>
            {undo !== undefined && (
              <button type="button" onClick={undo}>
                {t('undo')}
              </button>
            )}
          </div>
        ))}
      </div>
    </>
  );
}
