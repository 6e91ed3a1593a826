/** Calls an agent by hand. The response is shown as text, never as a page. */
import { useState } from 'preact/hooks';
import type { Output } from '../lib/api.ts';
import { base64Of, bytesOf, textOf } from '../lib/base64.ts';
import type { Failure } from '../lib/failure.ts';
import { failureText } from '../lib/failure-text.ts';
import * as format from '../lib/format.ts';
import { type Call, callsOf, keepCall } from '../lib/history.ts';
import { language, t } from '../lib/i18n.ts';
import { perform } from '../lib/query.ts';
import { saveFile } from '../lib/save.ts';
import { Bytes, Field, InputError, Section, State, UntrustedLines } from '../parts/basics.tsx';
import { useCaller } from '../parts/caller.tsx';
import { attempt } from '../parts/overlay.tsx';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'] as const;
/** Most characters of a response to show. The saved file is complete. */
const SHOWN_CHARS = 20_000;
/** Lower status codes are not errors. */
const FIRST_ERROR_STATUS = 400;

function headersOf(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.includes(':'));
  return Object.fromEntries(
    lines.map((line): [string, string] => [
      line.slice(0, line.indexOf(':')).trim(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  );
}

/** JSON with line breaks. Null if the text is not JSON. */
function asJson(text: string): string | null {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

/** A file name for the response: the end of the requested path. */
function nameOf(path: string): string {
  const name =
    path
      .replace(/[?#].*$/, '')
      .split('/')
      .at(-1) ?? '';
  return /^[\w.-]{1,80}$/.test(name) && !name.startsWith('.') ? name : 'answer';
}

interface Answer {
  readonly of: Output<'fetch'>;
  readonly path: string;
  readonly ms: number;
}

function Answered({ of, path, ms }: Answer) {
  const [isRaw, setRaw] = useState(false);
  const text = textOf(of.body);
  const json = text === null ? null : asJson(text);
  const shown = (isRaw ? text : (json ?? text)) ?? t('call.binary');
  const bytes = bytesOf(of.body);
  return (
    <>
      <p role="status" class="acts">
        <State tone={of.status < FIRST_ERROR_STATUS ? 'good' : 'bad'}>
          <b>HTTP {of.status}</b>
        </State>{' '}
        <small>
          {format.ms(ms, language)} · <Bytes count={bytes.length} />
        </small>{' '}
        {of.truncated && t('call.cut')}
      </p>
      <details>
        <summary>{t('call.headers')}</summary>
        <pre>
          <UntrustedLines
            text={Object.entries(of.headers)
              .map(([name, values]) => `${name}: ${values.join(', ')}`)
              .join('\n')}
          />
        </pre>
      </details>
      <pre tabIndex={0}>{shown === '' ? t('call.nothing') : <UntrustedLines text={shown.slice(0, SHOWN_CHARS)} />}</pre>
      <div class="acts">
        {json !== null && (
          <button type="button" aria-pressed={isRaw} onClick={() => setRaw(!isRaw)}>
            {t('call.raw')}
          </button>
        )}
        <button type="button" onClick={() => saveFile(nameOf(path), bytes)}>
          {t('call.save')}
        </button>
      </div>
    </>
  );
}

function Before({ aid, choose }: { readonly aid: string; readonly choose: (call: Call) => void }) {
  const calls = callsOf(aid);
  if (calls.length === 0) return null;
  return (
    <details>
      <summary>{t('call.before')}</summary>
      <ul>
        {calls.map((call, i) => (
          <li key={i}>
            <button type="button" class="plain" onClick={() => choose(call)}>
              <code>
                {call.method} {call.path}
              </code>
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}

export function RequestConsole({ aid }: { readonly aid: string }) {
  const [call, setCall] = useState<Call>({ method: 'GET', path: '/', headers: '', body: '' });
  const [answer, setAnswer] = useState<Answer>();
  const [failure, setFailure] = useState<Failure>();
  const { local, choice } = useCaller();
  const { method, path, headers, body } = call;
  const change = (part: Partial<Call>): void => setCall({ ...call, ...part });
  const send = async (): Promise<void> => {
    setAnswer(undefined);
    setFailure(undefined);
    keepCall(aid, call);
    const sent = headersOf(headers);
    const began = performance.now();
    const of = await perform('fetch', {
      aid,
      path,
      method,
      ...local,
      ...(Object.keys(sent).length === 0 ? {} : { headers: sent }),
      ...(body === '' ? {} : { body_base64: base64Of(body) }),
    });
    setAnswer({ of, path, ms: performance.now() - began });
  };
  return (
    <Section title={t('call.title')}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          attempt(send).then(setFailure, () => {});
        }}
      >
        <div class="acts">
          <select
            aria-label={t('call.method')}
            value={method}
            onChange={(event) => change({ method: event.currentTarget.value })}
          >
            {METHODS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
          <input
            class="grow"
            aria-label={t('call.path')}
            value={path}
            onInput={(event) => change({ path: event.currentTarget.value })}
          />
          {choice}
          <button type="submit" class="main">
            {t('call.send')}
          </button>
        </div>
        <details>
          <summary>{t('call.more')}</summary>
          <label class="field">
            <span>{t('call.headers')}</span>
            <textarea rows={2} value={headers} onInput={(event) => change({ headers: event.currentTarget.value })} />
          </label>
          <Field label={t('call.body')} value={body} onInput={(text) => change({ body: text })} />
        </details>
      </form>
      <InputError text={failure === undefined ? '' : failureText(failure)} />
      <Before aid={aid} choose={setCall} />
      {answer !== undefined && <Answered {...answer} />}
    </Section>
  );
}
