/** What chats and rooms look like. */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { t } from '../../lib/i18n.ts';
import { go } from '../../lib/place.ts';
import { Called } from '../../parts/agent.tsx';
import { ForeignLines, When } from '../../parts/basics.tsx';
import { act, confirm } from '../../parts/overlay.tsx';
import { wrote } from './use-end.ts';

interface EndingProps {
  /** The agent here whose messages are shown. */
  readonly aid: string;
  readonly verb: string;
  /** What becomes of the conversation. */
  readonly what: string;
  readonly run: () => Promise<unknown>;
}

/** A button that ends a conversation, once that is confirmed, and leads back to the others. */
export function Ending({ aid, verb, what, run }: EndingProps) {
  const end = async (): Promise<void> => {
    await run();
    go(['messages', aid]);
  };
  return (
    <button type="button" class="danger" onClick={() => confirm({ title: verb, text: what, verb, run: end })}>
      {verb}
    </button>
  );
}

interface LineProps {
  readonly at: string;
  readonly author: string;
  readonly text: string;
  readonly note?: string;
  readonly children?: ComponentChildren;
}

export function Line({ at, author, text, note = '', children }: LineProps) {
  return (
    <li>
      <small>
        <When at={at} />
      </small>
      <span>
        <Called aid={author} />
      </span>
      <p>
        <ForeignLines text={text} /> {children}
      </p>
      <small>{note}</small>
    </li>
  );
}

/** The lines, at their end. */
export function Lines({ count, children }: { readonly count: number; readonly children: ComponentChildren }) {
  const list = useRef<HTMLOListElement>(null);
  useLayoutEffect(() => {
    if (list.current !== null) list.current.scrollTop = list.current.scrollHeight;
  }, [count]);
  return (
    <ol ref={list} tabIndex={0} aria-label={t('area.messages')}>
      {count === 0 ? <li class="day">{t('talk.none')}</li> : children}
    </ol>
  );
}

export function Write({ as, send }: { readonly as: string; readonly send: (text: string) => Promise<unknown> }) {
  const [text, setText] = useState('');
  const go = (): void =>
    act(async () => {
      await send(text);
      setText('');
      wrote();
    });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() !== '') go();
      }}
    >
      <textarea
        rows={1}
        aria-label={t('talk.write', { name: as.slice(-5) })}
        placeholder={t('talk.write', { name: as.slice(-5) })}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing || text.trim() === '') return;
          event.preventDefault();
          go();
        }}
      />
      <button type="submit" class="main">
        {t('send')}
      </button>
    </form>
  );
}
