/** Sealed notes: they stay until the agent's program, or somebody here, fetches them. */
import { useState } from 'preact/hooks';
import { base64Of, textOf } from '../../lib/base64.ts';
import { t } from '../../lib/i18n.ts';
import { href } from '../../lib/place.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Answer, Field } from '../../parts/basics.tsx';
import { act, confirm, Dialog, openDialog } from '../../parts/overlay.tsx';
import { Line, Lines } from './talk.tsx';

/** What the body of a note is: text. */
const TEXT_NOTE = 1;
const TAIL_CHARS = 5;

function WriteNote({ aid, close }: { readonly aid: string; readonly close: () => void }) {
  const [recipient, setRecipient] = useState('');
  const [text, setText] = useState('');
  return (
    <Dialog title={t('notes.write')} close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          close();
          const note = { aid, recipient: recipient.trim(), msg_type: TEXT_NOTE, body_base64: base64Of(text) };
          act(() => perform('mailboxSend', note), t('notes.sent'));
        }}
      >
        <p>{t('notes.what')}</p>
        <Field label={t('notes.to')} value={recipient} onInput={setRecipient} placeholder="aid1…" />
        <label class="field">
          <span>{t('notes.text')}</span>
          <textarea rows={4} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <div class="acts">
          <button type="button" onClick={close}>
            {t('cancel')}
          </button>
          <button type="submit" class="main" disabled={recipient.trim() === '' || text === ''}>
            {t('send')}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

export function Notes({ aid }: { readonly aid: string }) {
  const notes = useQuery('mailboxList', { aid });
  return (
    <div class="talk">
      <header>
        <a class="button" href={href(['messages', aid])} aria-label={t('back')}>
          ←
        </a>
        <b>{t('notes.box')}</b>
        <button type="button" onClick={() => openDialog((close) => <WriteNote aid={aid} close={close} />)}>
          {t('notes.write')}
        </button>
        <button
          type="button"
          class="danger"
          onClick={() =>
            confirm({
              title: t('notes.fetch'),
              text: t('notes.fetch.what'),
              verb: t('notes.fetch'),
              tail: aid.slice(-TAIL_CHARS),
              run: () => perform('mailboxPoll', { aid }),
            })
          }
        >
          {t('notes.fetch')}
        </button>
      </header>
      <Answer of={notes}>
        {({ messages }) => (
          <Lines count={messages.length}>
            {messages.map(({ message_id, sender, sent_at, body_base64 }) => (
              <Line key={message_id} at={sent_at} author={sender} text={textOf(body_base64) ?? t('call.binary')} />
            ))}
          </Lines>
        )}
      </Answer>
    </div>
  );
}
