/** Starts a chat, creates a group, or joins one. */
import { useState } from 'preact/hooks';
import type { Key } from '../../lib/i18n.ts';
import { t } from '../../lib/i18n.ts';
import { returnFromHere } from '../../lib/place.ts';
import { perform } from '../../lib/query.ts';
import { Field } from '../../parts/basics.tsx';
import { act, Dialog } from '../../parts/overlay.tsx';
import { groupTool } from './group-tools.ts';

interface Props {
  readonly aid: string;
  readonly close: () => void;
}

interface QuestionProps {
  readonly title: Key;
  readonly close: () => void;
  readonly isReady: boolean;
  readonly run: () => Promise<unknown>;
  readonly done?: string;
  readonly children: preact.ComponentChildren;
}

function Question({ title, close, isReady, run, done = '', children }: QuestionProps) {
  return (
    <Dialog title={t(title)} close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          close();
          act(run, done);
        }}
      >
        {children}
        <div class="acts">
          <button type="button" onClick={close}>
            {t('cancel')}
          </button>
          <button type="submit" class="main" disabled={!isReady}>
            {t(title)}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

export function SendChatRequest({ aid, to, close }: Props & { readonly to: string }) {
  const [peer, setPeer] = useState(to);
  const [note, setNote] = useState('');
  const ask = () => perform('chatRequest', { aid, peer: peer.trim(), ...(note === '' ? {} : { note }) });
  return (
    <Question title="chat.ask" close={close} isReady={peer.trim() !== ''} run={ask} done={t('chat.asked')}>
      <Field label={t('aid')} value={peer} onInput={setPeer} placeholder="aid1…" />
      <Field label={t('chat.note')} value={note} onInput={setNote} />
    </Question>
  );
}

/** Opens the group in the result of a tool. */
async function enter(aid: string, answer: ReturnType<typeof groupTool>): Promise<void> {
  const leave = returnFromHere();
  const { group_id } = await answer;
  if (typeof group_id === 'string') leave(['messages', aid, 'room', group_id]);
}

export function CreateGroup({ aid, close }: Props) {
  const [title, setTitle] = useState('');
  const make = (): Promise<void> => enter(aid, groupTool('create', { aid, title: title.trim() }));
  return (
    <Question title="room.make" close={close} isReady={title.trim() !== ''} run={make}>
      <Field label={t('room.title')} value={title} onInput={setTitle} />
    </Question>
  );
}

export function JoinGroup({ aid, close }: Props) {
  const [link, setLink] = useState('');
  const join = (): Promise<void> => enter(aid, groupTool('join', { aid, link: link.trim() }));
  return (
    <Question title="room.join" close={close} isReady={link.trim() !== ''} run={join}>
      <Field label={t('room.link')} value={link} onInput={setLink} placeholder="svc://…" />
    </Question>
  );
}
