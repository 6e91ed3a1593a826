/** Pending items of the owner of the node: requests first, with their buttons. */
import type { ComponentChildren } from 'preact';
import * as format from '../../lib/format.ts';
import { language, t } from '../../lib/i18n.ts';
import { href } from '../../lib/place.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { type AgentState, type Counters, type Waiting, waitingOf } from '../../lib/verdict.ts';
import { Called, Inline } from '../../parts/agent.tsx';
import { Empty, Section, T, UntrustedText } from '../../parts/basics.tsx';
import { act, confirm } from '../../parts/overlay.tsx';
import { AccessRequests } from './access-requests.tsx';
import { Offers } from './offers.tsx';

const SIGNS = { invites: '?', unread: '●', notes: '✉', ending: '!', expired: '✕' } as const;
const TONES = { invites: 'hue', unread: 'hue', notes: 'hue', ending: 'warn', expired: 'bad' } as const;
/** Most requests to show per agent. */
const SHOWN_REQUESTS = 3;
/** Most agents whose group invitations and file offers are requested. */
const ASKED_AGENTS = 8;

interface RowProps {
  readonly kind: Waiting['kind'];
  readonly children: ComponentChildren;
}

function Row({ kind, children }: RowProps) {
  return (
    <li>
      <b class={TONES[kind]} aria-hidden="true">
        {SIGNS[kind]}
      </b>
      {children}
    </li>
  );
}

function Counted({ kind, aid, n }: Waiting) {
  const isKey = kind === 'ending' || kind === 'expired';
  const path = isKey ? ['agents', aid, 'keys'] : ['messages', aid, ...(kind === 'notes' ? ['notes'] : [])];
  return (
    <Row kind={kind}>
      <span class="grow">
        <T
          k={`waiting.${kind}`}
          n={isKey ? 0 : n}
          agent={<Called aid={aid} />}
          span={format.span(n / 1000, language)}
        />
      </span>
      <a class="button" href={href(path)}>
        {t(isKey ? 'key.renew' : 'read')}
      </a>
    </Row>
  );
}

interface AnsweringProps {
  readonly accept: () => Promise<unknown>;
  readonly refuse: () => Promise<unknown>;
}

/** The buttons of a request. */
function RequestButtons({ accept, refuse }: AnsweringProps) {
  return (
    <span class="pair">
      <button type="button" class="main" onClick={() => act(accept, t('saved'))}>
        {t('chat.accept')}
      </button>{' '}
      <button
        type="button"
        onClick={() =>
          confirm({
            title: t('chat.refuse'),
            text: t('chat.refuse.what'),
            verb: t('chat.refuse'),
            run: refuse,
          })
        }
      >
        {t('chat.refuse')}
      </button>
    </span>
  );
}

/** Each chat request. Shows a count until they are loaded. */
function ChatRequests(waiting: Waiting) {
  const { aid, n } = waiting;
  const contacts = useQuery('chatContacts', { aid });
  const requests = contacts.value?.in_pending ?? [];
  if (requests.length === 0) return <Counted {...waiting} />;
  return (
    <>
      {requests.slice(0, SHOWN_REQUESTS).map(({ peer, note }) => (
        <Row key={peer} kind="invites">
          <span class="grow">
            <Inline aid={peer} /> <T k="waiting.chat" agent={<Called aid={aid} />} />
            {note !== '' && (
              <>
                {' '}
                <span class="soft">
                  “<UntrustedText text={note} />”
                </span>
              </>
            )}
          </span>
          <RequestButtons
            accept={() => perform('chatAccept', { aid, peer })}
            refuse={() => perform('chatRefuse', { aid, peer })}
          />
        </Row>
      ))}
      {n > SHOWN_REQUESTS && <Counted {...waiting} n={n - SHOWN_REQUESTS} />}
    </>
  );
}

/** Group invitations that an agent has not accepted. */
function Invitations({ aid }: { readonly aid: string }) {
  const { value } = useQuery('groupInvitations', { aid });
  return (
    <>
      {(value?.invitations ?? []).slice(0, SHOWN_REQUESTS).map(({ group_id, title, creator, inviter }) => (
        <Row key={group_id} kind="invites">
          <span class="grow">
            <Inline aid={inviter} />{' '}
            <T k="waiting.invited" agent={<Called aid={aid} />} group={<UntrustedText text={`“${title}”`} />} />
          </span>
          <RequestButtons
            accept={() =>
              perform('toolCall', {
                tool: 'group_join',
                args: { aid, group_id, creator_aid: creator, inviter_aid: inviter },
              })
            }
            refuse={() => perform('groupRefuse', { aid, group_id })}
          />
        </Row>
      ))}
    </>
  );
}

interface Props {
  readonly agents: readonly AgentState[];
  readonly pending: Readonly<Record<string, Counters>>;
}

export function PendingItems({ agents, pending }: Props) {
  const waiting = waitingOf(agents, pending, Date.now());
  const requests = Object.values(pending).reduce((sum, { access_requests = 0 }) => sum + access_requests, 0);
  const n = waiting.length + requests;
  return (
    <Section title={t('waiting.title')} note={n === 0 ? '' : t('waiting.things', { n })}>
      <ul class="rows">
        {requests > 0 && <AccessRequests />}
        {waiting.map((one) => (one.kind === 'invites' ? <ChatRequests key={`requests ${one.aid}`} {...one} /> : null))}
        {agents.slice(0, ASKED_AGENTS).map(({ aid }) => (
          <Invitations key={aid} aid={aid} />
        ))}
        {agents.slice(0, ASKED_AGENTS).map(({ aid }) => (
          <Offers key={`offers ${aid}`} aid={aid} />
        ))}
        {waiting.map((one) => (one.kind === 'invites' ? null : <Counted key={`${one.kind} ${one.aid}`} {...one} />))}
      </ul>
      {n === 0 && <Empty text={t('waiting.none')} />}
    </Section>
  );
}
