/** The mailbox. Notes stay until the agent's program or the user fetches them. */
import { useState } from 'preact/hooks';
import { NOTE_TYPE } from '../../../../src/foundation/domain/notes.ts';
import { base64Of, textOf } from '../../lib/base64.ts';
import { t } from '../../lib/i18n.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { AidField } from '../../parts/aid-field.tsx';
import { Answer, Field } from '../../parts/basics.tsx';
import { FormDialog } from '../../parts/form.tsx';
import { confirm, openDialog } from '../../parts/overlay.tsx';
import { Back, Line, Lines } from './talk.tsx';

const TAIL_CHARS = 5;

interface WriteProps {
  readonly aid: string;
  readonly to?: string;
  readonly close: () => void;
}

function WriteNote({ aid, to = '', close }: WriteProps) {
  const [recipient, setRecipient] = useState(to);
  const [text, setText] = useState('');
  return (
    <FormDialog
      title={t('notes.write')}
      verb={t('send')}
      close={close}
      fields={['recipient', 'body_base64']}
      isReady={recipient !== '' && text !== ''}
      run={() => perform('mailboxSend', { aid, recipient, msg_type: NOTE_TYPE.text, body_base64: base64Of(text) })}
      done={t('notes.sent')}
    >
      <p>{t('notes.what')}</p>
      <AidField label={t('notes.to')} name="recipient" value={recipient} onInput={setRecipient} />
      <Field label={t('notes.text')} name="body_base64" type="lines" value={text} onInput={setText} />
    </FormDialog>
  );
}

function write(aid: string, to = ''): void {
  openDialog((close) => <WriteNote aid={aid} to={to} close={close} />);
}

function kindOf(type: number): string {
  if (type === NOTE_TYPE.text) return '';
  return type === NOTE_TYPE.invitation ? t('ask.group') : t('notes.kind', { kind: `${type}` });
}

export function Notes({ aid }: { readonly aid: string }) {
  const notes = useQuery('mailboxList', { aid });
  return (
    <div class="talk">
      <header>
        <Back aid={aid} />
        <b>{t('notes.box')}</b>
        <span class="grow" />
        <button type="button" onClick={() => write(aid)}>
          {t('notes.write')}
        </button>
        <details class="more">
          <summary class="button">{t('talk.more')}</summary>
          <div class="acts">
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
          </div>
        </details>
      </header>
      <Answer of={notes}>
        {({ messages }) => (
          <Lines
            entries={messages.map((note, i) => ({ ...note, seq: i + 1, at: note.sent_at }))}
            line={({ message_id, sender, at, msg_type, body_base64 }) => (
              <Line
                key={message_id}
                at={at}
                author={sender}
                text={msg_type === NOTE_TYPE.invitation ? '' : (textOf(body_base64) ?? t('call.binary'))}
                note={kindOf(msg_type)}
              >
                <span class="acts">
                  {msg_type !== NOTE_TYPE.invitation && (
                    <button type="button" onClick={() => write(aid, sender)}>
                      {t('notes.answer')}
                    </button>
                  )}
                  <button
                    type="button"
                    onClick={() =>
                      confirm({
                        title: t('notes.delete'),
                        text: t('notes.delete.what'),
                        verb: t('notes.delete'),
                        run: () => perform('mailboxDelete', { aid, message_id }),
                      })
                    }
                  >
                    {t('delete')}
                  </button>
                </span>
              </Line>
            )}
          />
        )}
      </Answer>
    </div>
  );
}
