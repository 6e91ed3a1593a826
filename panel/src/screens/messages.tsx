/** The messages of one agent at a time: requests, chats, groups, notes. Reading does not mark anything as read. */
import type { ComponentChildren } from 'preact';
import { type Output } from '../lib/api.ts';
import { t } from '../lib/i18n.ts';
import { href } from '../lib/place.ts';
import { useQuery } from '../lib/query.ts';
import { Mark, Who } from '../parts/agent.tsx';
import { AsAgent } from '../parts/as-agent.tsx';
import { Answer, UntrustedText } from '../parts/basics.tsx';
import { openDialog } from '../parts/overlay.tsx';
import { CreateGroup, JoinGroup, SendChatRequest } from './messages/begin.tsx';
import { Chat } from './messages/chat.tsx';
import { GroupChat, GroupTitle } from './messages/group.tsx';
import { Notes } from './messages/notes.tsx';
import { ChatRequest, GroupInvitation } from './messages/requests.tsx';

/** Kinds of group entries with text for people. */
const SAID: readonly string[] = ['msg', 'file'];

interface Props {
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

interface Opened {
  readonly aid: string;
  readonly kind: string;
  readonly id: string | undefined;
}

interface EntryProps {
  readonly to: readonly string[];
  readonly open: Opened;
  readonly badge?: string | number;
  readonly children: ComponentChildren;
}

function Entry({ to, open: { aid, kind, id }, badge = 0, children }: EntryProps) {
  const isOpen = kind === to[0] && id === to[1];
  return (
    <a href={href(['messages', aid, ...to])} {...(isOpen ? { 'aria-current': 'true' } : {})}>
      <span class="grow">{children}</span>
      {badge !== 0 && <span class="badge">{badge}</span>}
    </a>
  );
}

function Open({ aid, kind, id }: Opened) {
  if (kind === 'notes') return <Notes aid={aid} />;
  if (id !== undefined) {
    if (kind === 'chat') return <Chat key={id} aid={aid} peer={id} />;
    if (kind === 'group') return <GroupChat key={id} aid={aid} id={id} />;
    if (kind === 'ask') return <ChatRequest key={id} aid={aid} id={id} />;
    if (kind === 'invitation') return <GroupInvitation key={id} aid={aid} id={id} />;
  }
  return (
    <div class="talk">
      <p class="closing">{t('messages.choose')}</p>
    </div>
  );
}

function Requests({
  open,
  requests,
}: {
  readonly open: Opened;
  readonly requests: Output<'chatContacts'>['in_pending'];
}) {
  const { value: invited } = useQuery('groupInvitations', { aid: open.aid });
  const invitations = invited?.invitations ?? [];
  if (requests.length + invitations.length === 0) return null;
  return (
    <>
      <h2>{t('messages.requests')}</h2>
      {requests.map(({ peer }) => (
        <Entry key={peer} to={['ask', peer]} open={open} badge="?">
          <Who aid={peer} plain>
            {t('ask.chat')}
          </Who>
        </Entry>
      ))}
      {invitations.map(({ group_id, inviter }) => (
        <Entry key={group_id} to={['invitation', group_id]} open={open} badge="?">
          <Who aid={inviter} plain>
            {t('ask.group')}
          </Who>
        </Entry>
      ))}
    </>
  );
}

function Chats({ open, contacts }: { readonly open: Opened; readonly contacts: Output<'chatContacts'> }) {
  const { friends, out_pending } = contacts;
  return (
    <>
      <h2>{t('messages.chats')}</h2>
      {friends
        .toSorted((a, b) => (b.last_at ?? b.since).localeCompare(a.last_at ?? a.since))
        .map(({ peer, unread_count, last }) => (
          <Entry key={peer} to={['chat', peer]} open={open} badge={unread_count}>
            <Who aid={peer} plain>
              {last !== null && <UntrustedText text={last.text} />}
            </Who>
          </Entry>
        ))}
      {out_pending.map(({ peer }) => (
        <Entry key={peer} to={['chat', peer]} open={open}>
          <Who aid={peer} plain>
            {t('chat.waits')}
          </Who>
        </Entry>
      ))}
      {friends.length + out_pending.length === 0 && <p class="empty">{t('chat.none')}</p>}
    </>
  );
}

function Groups({ open, groups }: { readonly open: Opened; readonly groups: Output<'groupList'>['groups'] }) {
  return (
    <>
      <h2>{t('messages.groups')}</h2>
      {groups
        .toSorted((a, b) => b.last_activity_at.localeCompare(a.last_activity_at))
        .map(({ group_id, title, role, unread_count, mention_count, member_count, last }) => (
          <Entry
            key={group_id}
            to={['group', group_id]}
            open={open}
            badge={mention_count > 0 ? `@${unread_count}` : unread_count}
          >
            <span class="who">
              <Mark aid={group_id} />
              <span>
                <b>
                  <GroupTitle id={group_id} title={title} />
                </b>
                <small>
                  {last !== null && SAID.includes(last.kind) ? (
                    <UntrustedText text={last.text} />
                  ) : member_count === 0 ? (
                    t(`groups.${role}`)
                  ) : (
                    t('groups.members', { n: member_count })
                  )}
                </small>
              </span>
            </span>
          </Entry>
        ))}
      {groups.length === 0 && <p class="empty">{t('groups.none')}</p>}
    </>
  );
}

function Box({ open, waiting }: { readonly open: Opened; readonly waiting: number }) {
  const { aid, kind } = open;
  const contacts = useQuery('chatContacts', { aid });
  const groups = useQuery('groupList', { aid });
  return (
    <div class={kind === '' ? 'split' : 'split open'}>
      <nav aria-label={t('area.messages')}>
        <Answer of={contacts}>
          {(value) => (
            <>
              <Requests open={open} requests={value.in_pending} />
              <Chats open={open} contacts={value} />
            </>
          )}
        </Answer>
        <Groups open={open} groups={groups.value?.groups ?? []} />
        <h2>{t('messages.notes')}</h2>
        <Entry to={['notes']} open={open} badge={waiting}>
          {t('notes.box')}
        </Entry>
      </nav>
      <Open {...open} />
    </div>
  );
}

function Begin({ aid, to }: { readonly aid: string; readonly to: string }) {
  return (
    <>
      <button type="button" onClick={() => openDialog((close) => <SendChatRequest aid={aid} to={to} close={close} />)}>
        {t('chat.ask')}
      </button>
      <button type="button" onClick={() => openDialog((close) => <CreateGroup aid={aid} close={close} />)}>
        {t('groups.make')}
      </button>
      <button type="button" onClick={() => openDialog((close) => <JoinGroup aid={aid} close={close} />)}>
        {t('groups.join')}
      </button>
    </>
  );
}

export function Messages({ path: [aid, kind = '', id], query: { to = '' } }: Props) {
  return (
    <AsAgent area="messages" aid={aid} acts={(acting) => <Begin aid={acting} to={to} />}>
      {(acting, agents) => (
        <>
          <p class="soft">{t('messages.unread')}</p>
          <Box key={acting} open={{ aid: acting, kind, id }} waiting={agents.pending?.[acting]?.mailbox ?? 0} />
        </>
      )}
    </AsAgent>
  );
}
