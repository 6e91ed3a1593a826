/** Messages of one agent at a time: who asks, chats, rooms, notes. Reading changes nothing. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Output } from '../lib/api.ts';
import { t } from '../lib/i18n.ts';
import { href } from '../lib/place.ts';
import { perform, useQuery } from '../lib/query.ts';
import { Who } from '../parts/agent.tsx';
import { AsAgent } from '../parts/as-agent.tsx';
import { Answer, Field, Foreign } from '../parts/basics.tsx';
import { act, confirm, Dialog, openDialog } from '../parts/overlay.tsx';
import { Chat } from './messages/chat.tsx';
import { Notes } from './messages/notes.tsx';
import { Room } from './messages/room.tsx';

interface Props {
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

type Contacts = Output<'chatContacts'>;

function Ask({ aid, to, close }: { readonly aid: string; readonly to: string; readonly close: () => void }) {
  const [peer, setPeer] = useState(to);
  const [note, setNote] = useState('');
  return (
    <Dialog title={t('chat.ask')} close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          close();
          act(
            () => perform('chatRequest', { aid, peer: peer.trim(), ...(note === '' ? {} : { note }) }),
            t('chat.asked'),
          );
        }}
      >
        <Field label={t('aid')} value={peer} onInput={setPeer} placeholder="aid1…" />
        <Field label={t('chat.note')} value={note} onInput={setNote} />
        <div class="acts">
          <button type="button" onClick={close}>
            {t('cancel')}
          </button>
          <button type="submit" class="main" disabled={peer.trim() === ''}>
            {t('chat.ask')}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Asks({ aid, asks }: { readonly aid: string; readonly asks: Contacts['in_pending'] }) {
  return (
    <ul class="rows">
      {asks.map(({ peer, note }) => (
        <li key={peer}>
          <span class="grow">
            <Who aid={peer} />
            {note !== '' && (
              <p>
                “<Foreign text={note} />”
              </p>
            )}
          </span>
          <button
            type="button"
            class="main"
            onClick={() => act(() => perform('chatAccept', { aid, peer }), t('saved'))}
          >
            {t('chat.accept')}
          </button>
          <button
            type="button"
            onClick={() =>
              confirm({
                title: t('chat.refuse'),
                text: t('chat.refuse.what'),
                verb: t('chat.refuse'),
                run: () => perform('chatRefuse', { aid, peer }),
              })
            }
          >
            {t('chat.refuse')}
          </button>
        </li>
      ))}
    </ul>
  );
}

function Entry({
  to,
  chosen,
  count,
  children,
}: {
  readonly to: readonly string[];
  readonly chosen: boolean;
  readonly count: number;
  readonly children: ComponentChildren;
}) {
  return (
    <a href={href(['messages', ...to])} {...(chosen ? { 'aria-current': 'true' } : {})}>
      <span class="grow">{children}</span>
      {count > 0 && <span class="badge">{count}</span>}
    </a>
  );
}

function Open({ aid, kind, id }: { readonly aid: string; readonly kind: string; readonly id: string | undefined }) {
  if (kind === 'chat' && id !== undefined) return <Chat key={id} aid={aid} peer={id} />;
  if (kind === 'room' && id !== undefined) return <Room key={id} aid={aid} id={id} />;
  if (kind === 'notes') return <Notes aid={aid} />;
  return (
    <div class="talk">
      <header>
        <span class="soft">{t('messages.choose')}</span>
      </header>
    </div>
  );
}

interface BoxProps {
  readonly aid: string;
  readonly kind: string;
  readonly id: string | undefined;
  readonly agents: Output<'agentsList'>;
}

function Box({ aid, kind, id, agents }: BoxProps) {
  const contacts = useQuery('chatContacts', { aid });
  const rooms = useQuery('groupList', { aid });
  const waiting = agents.pending?.[aid]?.mailbox ?? 0;
  return (
    <>
      <Answer of={contacts}>{({ in_pending }) => in_pending.length > 0 && <Asks aid={aid} asks={in_pending} />}</Answer>
      <div class={kind === '' ? 'split' : 'split open'}>
        <nav aria-label={t('area.messages')}>
          <h2>{t('messages.chats')}</h2>
          {(contacts.value?.friends ?? []).map(({ peer, unread_count }) => (
            <Entry key={peer} to={[aid, 'chat', peer]} chosen={kind === 'chat' && id === peer} count={unread_count}>
              <Who aid={peer} plain />
            </Entry>
          ))}
          {(contacts.value?.out_pending ?? []).map(({ peer }) => (
            <Entry key={peer} to={[aid, 'chat', peer]} chosen={kind === 'chat' && id === peer} count={0}>
              <Who aid={peer} plain /> <small>{t('chat.waits')}</small>
            </Entry>
          ))}
          {contacts.value?.friends.length === 0 && <p class="empty">{t('chat.none')}</p>}
          <h2>{t('messages.rooms')}</h2>
          {(rooms.value?.groups ?? []).map(({ group_id, title, unread_count, member_count }) => (
            <Entry
              key={group_id}
              to={[aid, 'room', group_id]}
              chosen={kind === 'room' && id === group_id}
              count={unread_count}
            >
              <Foreign text={title === '' ? group_id.slice(0, 8) : title} />
              <br />
              <small>{t('room.members', { n: member_count })}</small>
            </Entry>
          ))}
          {rooms.value?.groups.length === 0 && <p class="empty">{t('room.none')}</p>}
          <h2>{t('messages.notes')}</h2>
          <Entry to={[aid, 'notes']} chosen={kind === 'notes'} count={waiting}>
            {t('notes.box')}
          </Entry>
        </nav>
        <Open aid={aid} kind={kind} id={id} />
      </div>
    </>
  );
}

export function Messages({ path: [aid, kind = '', id], query: { to = '' } }: Props) {
  return (
    <AsAgent
      area="messages"
      aid={aid}
      acts={(acting) => (
        <button type="button" onClick={() => openDialog((close) => <Ask aid={acting} to={to} close={close} />)}>
          {t('chat.ask')}
        </button>
      )}
    >
      {(acting, agents) => (
        <>
          <p class="soft">{t('messages.unread')}</p>
          <Box key={acting} aid={acting} kind={kind} id={id} agents={agents} />
        </>
      )}
    </AsAgent>
  );
}
