/** The access list of an agent or of the remote administration. */
import { useState } from 'preact/hooks';
import { t } from '../lib/i18n.ts';
import { Who } from './agent.tsx';
import { AidField } from './aid-field.tsx';
import { Copy, Empty, Field, Section, UntrustedText, When } from './basics.tsx';
import { FormDialog } from './form.tsx';
import { confirm, Dialog, openDialog, openOnce } from './overlay.tsx';

export interface AllowInput {
  readonly aid?: string;
  readonly generate_secret?: true;
  readonly label?: string;
  readonly expires_at?: string;
}

interface AllowRow {
  readonly id: string;
  readonly aid?: string;
  readonly label?: string;
  readonly created_at: string;
  readonly expires_at?: string;
}

interface ListsProps {
  /** The agent of the lists, or the node. */
  readonly of: string;
  readonly allow: readonly AllowRow[];
  readonly deny: readonly { readonly id: string; readonly aid: string; readonly created_at: string }[];
  readonly note: string;
  readonly add: (entry: AllowInput) => Promise<{ readonly secret?: string }>;
  readonly refuse: (aid: string) => Promise<unknown>;
  readonly removeAllow: (id: string) => Promise<unknown>;
  readonly removeDeny: (id: string) => Promise<unknown>;
}

interface SecretProps {
  readonly secret: string;
  readonly of: string;
  readonly close: () => void;
}

function Secret({ secret, of, close }: SecretProps) {
  return (
    <Dialog title={t('acl.secret')} close={close}>
      {of !== '' && <Who aid={of} plain />}
      <p>{t('acl.secret.once')}</p>
      <pre>{secret}</pre>
      <div class="acts">
        <Copy text={secret} />
        <button type="button" class="main" onClick={close}>
          {t('close')}
        </button>
      </div>
    </Dialog>
  );
}

interface AllowProps {
  readonly of: string;
  readonly bySecret: boolean;
  readonly add: ListsProps['add'];
  readonly close: () => void;
}

function Allow({ of, bySecret, add, close }: AllowProps) {
  const [aid, setAid] = useState('');
  const [label, setLabel] = useState('');
  const [until, setUntil] = useState('');
  const title = t(bySecret ? 'acl.make' : 'acl.allow');
  const run = async (): Promise<void> => {
    const { secret } = await add({
      ...(bySecret ? { generate_secret: true } : { aid }),
      ...(label === '' ? {} : { label }),
      ...(until === '' ? {} : { expires_at: new Date(until).toISOString() }),
    });
    if (secret !== undefined) openOnce((done) => <Secret secret={secret} of={of} close={done} />);
  };
  return (
    <FormDialog
      title={title}
      verb={title}
      close={close}
      fields={['body_aid', 'label', 'expires_at']}
      isReady={bySecret || aid !== ''}
      run={run}
      done={t('saved')}
    >
      {!bySecret && <AidField label={t('agent')} name="body_aid" value={aid} onInput={setAid} />}
      <Field label={t('acl.label')} name="label" value={label} onInput={setLabel} />
      <Field label={t('acl.until')} name="expires_at" value={until} onInput={setUntil} type="datetime-local" />
    </FormDialog>
  );
}

function Deny({ refuse, close }: { readonly refuse: ListsProps['refuse']; readonly close: () => void }) {
  const [aid, setAid] = useState('');
  return (
    <FormDialog
      title={t('acl.deny')}
      verb={t('acl.deny')}
      close={close}
      fields={['body_aid']}
      isReady={aid !== ''}
      run={() => refuse(aid)}
      done={t('saved')}
    >
      <p>{t('acl.deny.what')}</p>
      <AidField label={t('agent')} name="body_aid" value={aid} onInput={setAid} />
    </FormDialog>
  );
}

export function AccessLists({ of, allow, deny, note, add, refuse, removeAllow, removeDeny }: ListsProps) {
  const remove = (run: () => Promise<unknown>): void =>
    confirm({ title: t('acl.remove'), text: t('acl.remove.what'), verb: t('acl.remove'), run });
  return (
    <>
      <Section title={t('acl.allowed')} note={note}>
        {allow.length === 0 ? (
          <Empty text={t('acl.allowed.none')} />
        ) : (
          <ul class="rows">
            {allow.map(({ id, aid, label = '', created_at, expires_at }) => (
              <li key={id}>
                <span class="grow">
                  {aid === undefined ? (
                    <b>
                      {t('acl.secret')} <UntrustedText text={label} />
                    </b>
                  ) : (
                    <Who aid={aid} />
                  )}{' '}
                  {aid !== undefined && label !== '' && <UntrustedText text={label} />}
                </span>
                <small>
                  <When at={created_at} />
                  {' – '}
                  {expires_at === undefined ? t('key.noend') : <When at={expires_at} />}
                </small>
                <button type="button" class="danger" onClick={() => remove(() => removeAllow(id))}>
                  {t('remove')}
                </button>
              </li>
            ))}
          </ul>
        )}
        <div class="acts">
          <button
            type="button"
            onClick={() => openDialog((close) => <Allow of={of} bySecret={false} add={add} close={close} />)}
          >
            {t('acl.allow')}
          </button>
          <button
            type="button"
            onClick={() => openDialog((close) => <Allow of={of} bySecret add={add} close={close} />)}
          >
            {t('acl.make')}
          </button>
        </div>
      </Section>
      <Section title={t('acl.denied')}>
        {deny.length === 0 ? (
          <Empty text={t('acl.denied.none')} />
        ) : (
          <ul class="rows">
            {deny.map(({ id, aid, created_at }) => (
              <li key={id}>
                <span class="grow">
                  <Who aid={aid} />
                </span>
                <small>
                  <When at={created_at} />
                </small>
                <button type="button" class="danger" onClick={() => remove(() => removeDeny(id))}>
                  {t('remove')}
                </button>
              </li>
            ))}
          </ul>
        )}
        <div class="acts">
          <button type="button" onClick={() => openDialog((close) => <Deny refuse={refuse} close={close} />)}>
            {t('acl.deny')}
          </button>
        </div>
      </Section>
    </>
  );
}
