/** Shared components of chats and groups. */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import * as format from '../../lib/format.ts';
import { language, t } from '../../lib/i18n.ts';
import { href, returnFromHere } from '../../lib/place.ts';
import { Called } from '../../parts/agent.tsx';
import { UntrustedLines } from '../../parts/basics.tsx';
import { confirm } from '../../parts/overlay.tsx';

interface EndingProps {
  /** The agent of this node whose messages are shown. */
  readonly aid: string;
  readonly verb: string;
  /** The effect of the action. */
  readonly what: string;
  readonly run: () => Promise<unknown>;
}

/** A button that ends a chat or leaves a group after a confirmation, and then opens the list. */
export function EndButton({ aid, verb, what, run }: EndingProps) {
  const end = async (): Promise<void> => {
    const leave = returnFromHere();
    await run();
    leave(['messages', aid]);
  };
  return (
    <button type="button" class="danger" onClick={() => confirm({ title: verb, text: what, verb, run: end })}>
      {verb}
    </button>
  );
}

/** A link to the list, for narrow windows that show only one of the two. */
export function Back({ aid }: { readonly aid: string }) {
  return (
    <a class="button narrow" href={href(['messages', aid])} aria-label={t('back')}>
      ←
    </a>
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
  const ms = Date.parse(at);
  return (
    <li>
      <small>
        <time dateTime={at} title={format.time(ms, 0, language)}>
          {format.clock(ms, language)}
        </time>
      </small>
      <span class="author">
        <Called aid={author} />
      </span>
      <p>
        <UntrustedLines text={text} /> {children}
      </p>
      {note !== '' && <small>{note}</small>}
    </li>
  );
}

export interface Placed {
  readonly seq: number;
  readonly at: string;
}

interface LinesProps<E> {
  readonly entries: readonly E[];
  readonly line: (entry: E) => ComponentChildren;
  /** Later entries are new. Absent: no entry is marked as new. */
  readonly readTo?: number;
  readonly isNew?: (entry: E) => boolean;
  readonly hasOlder?: boolean;
  readonly older?: () => void;
}

/**
 * Distance from the top at which older entries load, and from the end within which the list follows new ones, pixels.
 */
const NEAR_PX = 60;

/** Entries by day. The list starts at the end, and keeps its position when entries arrive before or after it. */
export function Lines<E extends Placed>({
  entries,
  line,
  readTo = Infinity,
  isNew = () => false,
  hasOlder = false,
  older = () => {},
}: LinesProps<E>) {
  const list = useRef<HTMLOListElement>(null);
  const seen = useRef({ first: 0, height: 0, isAtEnd: true });
  const first = entries[0]?.seq ?? 0;
  useLayoutEffect(() => {
    const { current } = list;
    if (current === null) return;
    const before = seen.current;
    if (before.isAtEnd) current.scrollTop = current.scrollHeight;
    else if (before.first > first) current.scrollTop += current.scrollHeight - before.height;
    seen.current = { ...before, first, height: current.scrollHeight };
  }, [first, entries.length]);
  const scrolled = (): void => {
    const { current } = list;
    if (current === null) return;
    const left = current.scrollHeight - current.scrollTop - current.clientHeight;
    seen.current = { ...seen.current, isAtEnd: left < NEAR_PX };
    if (current.scrollTop < NEAR_PX && hasOlder) older();
  };
  const fresh = entries.filter((entry) => entry.seq > readTo && isNew(entry));
  const now = Date.now();
  let day = '';
  return (
    <ol ref={list} tabIndex={0} aria-label={t('area.messages')} onScroll={scrolled}>
      {hasOlder && (
        <li class="day">
          <button
            type="button"
            onClick={() => {
              seen.current = { ...seen.current, isAtEnd: false };
              older();
            }}
          >
            {t('talk.earlier')}
          </button>
        </li>
      )}
      {entries.length === 0 && <li class="day">{t('talk.none')}</li>}
      {entries.map((entry) => {
        const on = format.day(Date.parse(entry.at), now, language);
        const isNext = on !== day;
        day = on;
        const isFirstNew = entry === fresh[0];
        return [
          (isNext || isFirstNew) && (
            <li class={isFirstNew ? 'day new' : 'day'} key={`before ${entry.seq}`}>
              {isNext && on}
              {isNext && isFirstNew && ' · '}
              {isFirstNew && t('talk.new', { n: fresh.length })}
            </li>
          ),
          line(entry),
        ];
      })}
    </ol>
  );
}
