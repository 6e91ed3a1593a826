/** Starts a chat, creates a group, or joins one. */
import { useState } from 'preact/hooks';
import { t } from '../../lib/i18n.ts';
import { returnFromHere } from '../../lib/place.ts';
import { perform } from '../../lib/query.ts';
import { AidField } from '../../parts/aid-field.tsx';
import { Field } from '../../parts/basics.tsx';
import { FormDialog } from '../../parts/form.tsx';
import { groupTool } from './group-tools.ts';

interface Props {
  readonly aid: string;
  readonly close: () => void;
}

export function SendChatRequest({ aid, to, close }: Props & { readonly to: string }) {
  const [peer, setPeer] = useState(to);
  const [note, setNote] = useState('');
  return (
    <FormDialog
      title={t('chat.ask')}
      verb={t('chat.ask')}
      close={close}
      fields={['peer', 'note']}
      isReady={peer !== ''}
      run={() => perform('chatRequest', { aid, peer, ...(note === '' ? {} : { note }) })}
      done={t('chat.asked')}
    >
      <AidField label={t('agent')} name="peer" value={peer} onInput={setPeer} />
      <Field label={t('chat.note')} name="note" value={note} onInput={setNote} />
    </FormDialog>
  );
}

/** Opens the group in the result of a tool. */
async function enter(aid: string, answer: ReturnType<typeof groupTool>): Promise<void> {
  const leave = returnFromHere();
  const { group_id } = await answer;
  if (typeof group_id === 'string') leave(['messages', aid, 'group', group_id]);
}

export function CreateGroup({ aid, close }: Props) {
  const [title, setTitle] = useState('');
  return (
    <FormDialog
      title={t('groups.make')}
      verb={t('groups.make')}
      close={close}
      fields={['title']}
      isReady={title.trim() !== ''}
      run={() => enter(aid, groupTool('create', { aid, title: title.trim() }))}
    >
      <Field label={t('groups.title')} name="title" value={title} onInput={setTitle} />
    </FormDialog>
  );
}

export function JoinGroup({ aid, close }: Props) {
  const [link, setLink] = useState('');
  return (
    <FormDialog
      title={t('groups.join')}
      verb={t('groups.join')}
      close={close}
      fields={['link']}
      isReady={link.trim() !== ''}
      run={() => enter(aid, groupTool('join', { aid, link: link.trim() }))}
    >
      <Field label={t('groups.link')} name="link" value={link} onInput={setLink} placeholder="svc://…" />
    </FormDialog>
  );
}
