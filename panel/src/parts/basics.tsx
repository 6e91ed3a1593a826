/** Small components for all screens. */
import { type ComponentChildren, createContext, type TargetedInputEvent, type VNode } from 'preact';
import { useContext, useId } from 'preact/hooks';
import type { Known } from '../lib/cache.ts';
import { failureText } from '../lib/failure-text.ts';
import * as format from '../lib/format.ts';
import { type Key, language, raw, t } from '../lib/i18n.ts';
import { shownText } from '../lib/shown-text.ts';
import { fill, formOf, partsOf } from '../lib/text.ts';
import { act } from './overlay.tsx';

interface SectionProps {
  readonly title: string;
  readonly note?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Section({ title, note, children }: SectionProps) {
  return (
    <section>
      <header>
        <h2>{title}</h2>
        {note !== undefined && <span>{note}</span>}
      </header>
      {children}
    </section>
  );
}

type Tone = 'good' | 'warn' | 'bad' | 'off';

/** A state, shown by shape and color. */
export function State({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return <span class={`state ${tone}`}>{children}</span>;
}

/** Text from others. It is never markup, its direction is isolated, and invisible characters are escaped. */
export function UntrustedText({ text }: { readonly text: string }) {
  return <bdi>{shownText(text)}</bdi>;
}

/** Several lines of text from others. */
export function UntrustedLines({ text }: { readonly text: string }) {
  return <bdi>{text.split(/\r?\n/).map(shownText).join('\n')}</bdi>;
}

/** A text with elements in its places. `n` selects its plural form. */
export function T({ k, n = 0, ...at }: { readonly k: Key; readonly n?: number } & Readonly<Record<string, unknown>>) {
  const parts = partsOf(formOf(raw(k), language, n));
  return (
    <>
      {parts.map((part, i) => {
        if (i % 2 === 0) return part;
        const value = part === 'n' ? fill('{n}', language, { n }) : at[part];
        return isChild(value) ? value : `{${part}}`;
      })}
    </>
  );
}

function isChild(value: unknown): value is string | number | VNode {
  return typeof value === 'string' || typeof value === 'number' || (typeof value === 'object' && value !== null);
}

/** A time, with the exact time as its title. */
export function When({ at, ago = false }: { readonly at: string; readonly ago?: boolean }) {
  const ms = Date.parse(at);
  const text = ago ? format.relative(ms, Date.now(), language) : format.time(ms, Date.now(), language);
  return (
    <time dateTime={at} title={format.time(ms, 0, language)}>
      {text}
    </time>
  );
}

export function Bytes({ count }: { readonly count: number }) {
  return <>{format.bytes(count, language)}</>;
}

/** A button that copies a text. */
export function Copy({ text, label }: { readonly text: string; readonly label?: string }) {
  return (
    <button type="button" onClick={() => act(() => navigator.clipboard.writeText(text), t('copied'))}>
      {label ?? t('copy')}
    </button>
  );
}

interface AnswerProps<T> {
  readonly of: Known<T>;
  readonly children: (value: T) => ComponentChildren;
}

/** The result of a query: the last known value, or the error. */
export function Answer<T>({ of: { value, failure }, children }: AnswerProps<T>) {
  if (value === undefined && failure === undefined) return <p class="empty">{t('loading')}</p>;
  if (value === undefined)
    return (
      <div class="bar bad" role="alert">
        <div>
          {failure !== undefined && failureText(failure)}
          {failure !== undefined && failure.message !== '' && (
            <details>
              <summary>{t('details')}</summary>
              <small lang="en">
                {failure.code}: {failure.message}
              </small>
            </details>
          )}
        </div>
      </div>
    );
  return <div class={failure === undefined ? '' : 'dim'}>{children(value)}</div>;
}

/** The failed field of a form, and the reason. */
export interface FieldTrouble {
  readonly field: string;
  readonly text: ComponentChildren;
}

export const Trouble = createContext<FieldTrouble | undefined>(undefined);

/** The error of a field: attributes of the input, and an element below it. */
export function useTrouble(name: string): readonly [Readonly<Record<string, string>>, ComponentChildren] {
  const trouble = useContext(Trouble);
  const id = useId();
  if (name === '' || trouble?.field !== name) return [{}, null];
  return [
    { 'aria-invalid': 'true', 'aria-describedby': id },
    <p key="trouble" id={id} class="bad trouble" role="alert">
      {trouble.text}
    </p>,
  ];
}

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  /** The member of the request, so that its errors appear here. */
  readonly name?: string;
  readonly type?: 'text' | 'password' | 'date' | 'datetime-local' | 'lines' | 'secret';
  readonly placeholder?: string;
}

/** An input with its label. `secret` is hidden like a password, but no password manager offers to store it. */
export function Field({ label, value, onInput, name = '', type = 'text', placeholder = '' }: FieldProps) {
  const [bad, trouble] = useTrouble(name);
  const shared = {
    ...bad,
    value,
    autocomplete: 'off',
    onInput: (event: TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>) => onInput(event.currentTarget.value),
  } as const;
  return (
    <>
      <label class="field">
        <span>{label}</span>
        {type === 'password' && <input type="password" {...shared} autocomplete="current-password" />}
        {type === 'date' && <input type="date" {...shared} />}
        {type === 'datetime-local' && <input type="datetime-local" {...shared} />}
        {type === 'lines' && <textarea rows={4} placeholder={placeholder} {...shared} />}
        {type === 'secret' && <input class="secret" spellcheck={false} {...shared} />}
        {type === 'text' && <input placeholder={placeholder} {...shared} />}
      </label>
      {trouble}
    </>
  );
}

/** The error of an input. Renders nothing for an empty text. */
export function InputError({ text }: { readonly text: string }) {
  if (text === '') return null;
  return (
    <p class="bad" role="alert">
      {text}
    </p>
  );
}

export function Empty({ text, children }: { readonly text: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p>{text}</p>
      {children !== undefined && <div class="acts">{children}</div>}
    </div>
  );
}
