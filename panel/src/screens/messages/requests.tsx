/** Chat requests and group invitations. */
import type { ComponentChildren } from 'preact';
import { type Key, t } from '../../lib/i18n.ts';
import { returnFromHere } from '../../lib/place.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Who } from '../../parts/agent.tsx';
import { Answer, UntrustedText, When } from '../../parts/basics.tsx';
import { act } from '../../parts/overlay.tsx';
import { GroupTitle } from './group.tsx';
import { groupTool } from './group-tools.ts';
import { Back, EndButton } from './talk.tsx';

interface Props {
  readonly aid: string;
  /** The requesting agent, or the group. */
  readonly id: string;
}

interface AskProps {
  readonly aid: string;
  readonly from: string;
  readonly what: Key;
  readonly at: string;
  readonly children: ComponentChildren;
  readonly accept: () => Promise<unknown>;
  /** The page to open after accepting. */
  readonly to: readonly string[];
  readonly endings: ComponentChildren;
}

function RequestView({ aid, from, what, at, children, accept, to, endings }: AskProps) {
  const enter = async (): Promise<void> => {
    const leave = returnFromHere();
    await accept();
    leave(['messages', aid, ...to]);
  };
  return (
    <>
      <header>
        <Back aid={aid} />
        <Who aid={from} />
        <span class="soft">{t(what)}</span>
      </header>
      <div class="asking">
        {children}
        <p class="soft">
          <When at={at} ago />
        </p>
        <div class="acts">
          <button type="button" class="main" onClick={() => act(enter)}>
            {t('chat.accept')}
          </button>
          {endings}
        </div>
      </div>
    </>
  );
}

function Gone({ aid }: { readonly aid: string }) {
  return (
    <header>
      <Back aid={aid} />
      <span class="soft">{t('ask.gone')}</span>
    </header>
  );
}

export function ChatRequest({ aid, id: peer }: Props) {
  const contacts = useQuery('chatContacts', { aid });
  return (
    <div class="talk">
      <Answer of={contacts}>
        {({ in_pending }) => {
          const ask = in_pending.find((one) => one.peer === peer);
          if (ask === undefined) return <Gone aid={aid} />;
          return (
            <RequestView
              aid={aid}
              from={peer}
              what="ask.chat"
              at={ask.since}
              accept={() => perform('chatAccept', { aid, peer })}
              to={['chat', peer]}
              endings={
                <>
                  <EndButton
                    aid={aid}
                    verb={t('chat.refuse')}
                    what={t('chat.refuse.what')}
                    run={() => perform('chatRefuse', { aid, peer })}
                  />
                  <EndButton
                    aid={aid}
                    verb={t('chat.block')}
                    what={t('chat.block.what')}
                    run={() => perform('chatBlock', { aid, peer })}
                  />
                </>
              }
            >
              {ask.note !== '' && (
                <blockquote>
                  “<UntrustedText text={ask.note} />”
                </blockquote>
              )}
            </RequestView>
          );
        }}
      </Answer>
    </div>
  );
}

export function GroupInvitation({ aid, id }: Props) {
  const invitations = useQuery('groupInvitations', { aid });
  return (
    <div class="talk">
      <Answer of={invitations}>
        {({ invitations: all }) => {
          const ask = all.find((one) => one.group_id === id);
          if (ask === undefined) return <Gone aid={aid} />;
          const { group_id, creator, inviter, title, at } = ask;
          return (
            <RequestView
              aid={aid}
              from={inviter}
              what="ask.group"
              at={at}
              accept={() => groupTool('join', { aid, group_id, creator_aid: creator, inviter_aid: inviter })}
              to={['group', group_id]}
              endings={
                <EndButton
                  aid={aid}
                  verb={t('chat.refuse')}
                  what={t('chat.refuse.what')}
                  run={() => perform('groupRefuse', { aid, group_id })}
                />
              }
            >
              <blockquote>
                “<GroupTitle id={group_id} title={title} />”
              </blockquote>
            </RequestView>
          );
        }}
      </Answer>
    </div>
  );
}
