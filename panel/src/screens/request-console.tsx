/** Calls an agent by hand. What comes back is shown as text and never as a page. */
import { useState } from 'preact/hooks';
import type { Output } from '../lib/api.ts';
import { base64Of, bytesOf, textOf } from '../lib/base64.ts';
import { t } from '../lib/i18n.ts';
import { perform } from '../lib/query.ts';
import { saveFile } from '../lib/save.ts';
import { Field, ForeignLines, Section } from '../parts/basics.tsx';
import { act } from '../parts/overlay.tsx';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'] as const;
/** Characters of an answer that are shown; it can be saved whole. */
const SHOWN_CHARS = 20_000;

function headersOf(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.includes(':'));
  return Object.fromEntries(
    lines.map((line): [string, string] => [
      line.slice(0, line.indexOf(':')).trim(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  );
}

/** JSON with line breaks, anything else as it came. */
function shown(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2).slice(0, SHOWN_CHARS);
  } catch {
    return text.slice(0, SHOWN_CHARS);
  }
}

function Answered({ of }: { readonly of: Output<'fetch'> }) {
  const text = textOf(of.body);
  return (
    <>
      <p role="status">
        <b>HTTP {of.status}</b> {of.truncated && t('call.cut')}
      </p>
      <details>
        <summary>{t('call.headers')}</summary>
        <pre>
          <ForeignLines
            text={Object.entries(of.headers)
              .map(([name, values]) => `${name}: ${values.join(', ')}`)
              .join('\n')}
          />
        </pre>
      </details>
      <pre tabIndex={0}>{text === null ? t('call.binary') : <ForeignLines text={shown(text)} />}</pre>
      <button type="button" onClick={() => saveFile('answer', bytesOf(of.body))}>
        {t('call.save')}
      </button>
    </>
  );
}

export function RequestConsole({ aid }: { readonly aid: string }) {
  const [method, setMethod] = useState('GET');
  const [path, setPath] = useState('/');
  const [headers, setHeaders] = useState('');
  const [body, setBody] = useState('');
  const [answer, setAnswer] = useState<Output<'fetch'>>();
  const send = async (): Promise<void> => {
    setAnswer(undefined);
    const sent = headersOf(headers);
    const answered = await perform('fetch', {
      aid,
      path,
      method,
      ...(Object.keys(sent).length === 0 ? {} : { headers: sent }),
      ...(body === '' ? {} : { body_base64: base64Of(body) }),
    });
    setAnswer(answered);
  };
  return (
    <Section title={t('call.title')}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          act(send);
        }}
      >
        <div class="acts">
          <select
            aria-label={t('call.method')}
            value={method}
            onChange={(event) => setMethod(event.currentTarget.value)}
          >
            {METHODS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
          <input aria-label={t('call.path')} value={path} onInput={(event) => setPath(event.currentTarget.value)} />
          <button type="submit" class="main">
            {t('call.send')}
          </button>
        </div>
        <details>
          <summary>{t('call.more')}</summary>
          <label class="field">
            <span>{t('call.headers')}</span>
            <textarea rows={2} value={headers} onInput={(event) => setHeaders(event.currentTarget.value)} />
          </label>
          <Field label={t('call.body')} value={body} onInput={setBody} />
        </details>
      </form>
      {answer !== undefined && <Answered of={answer} />}
    </Section>
  );
}
