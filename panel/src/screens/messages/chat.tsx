/** A conversation of two agents. */
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { saveObject } from '../../lib/objects.ts';
import { href } from '../../lib/place.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Who } from '../../parts/agent.tsx';
import { Answer, Bytes, Foreign } from '../../parts/basics.tsx';
import { act } from '../../parts/overlay.tsx';
import { endOfChat } from './ends.ts';
import { Ending, Line, Lines, Write } from './talk.tsx';
import { useEnd } from './use-end.ts';

type ChatEntry = Output<'chatRead'>['entries'][number];

function Said({ entry, aid, peer }: { readonly entry: ChatEntry; readonly aid: string; readonly peer: string }) {
  const { dir, at, text, name, size, object_id, status } = entry;
  return (
    <Line at={at} author={dir === 'out' ? aid : peer} text={text ?? ''} note={dir === 'out' ? t(`chat.${status}`) : ''}>
      {object_id !== undefined && (
        <span>
          <span class="chip">
            <Foreign text={name ?? object_id.slice(0, 8)} />
          </span>{' '}
          <small>{size !== undefined && <Bytes count={size} />}</small>{' '}
          <button
            type="button"
            onClick={() => act(() => saveObject(dir === 'out' ? aid : peer, object_id, name ?? object_id))}
          >
            {t('save')}
          </button>
        </span>
      )}
    </Line>
  );
}

export function Chat({ aid, peer }: { readonly aid: string; readonly peer: string }) {
  const { value: contacts } = useQuery('chatContacts', { aid });
  const end = useEnd(`${aid} ${peer}`, () => endOfChat(aid, peer));
  const isFriend = contacts?.friends.some((friend) => friend.peer === peer) === true;
  return (
    <div class="talk">
      <header>
        <a class="button" href={href(['messages', aid])} aria-label={t('back')}>
          ←
        </a>
        <Who aid={peer} />
        <button type="button" onClick={() => act(() => perform('chatMarkRead', { aid, peer }), t('saved'))}>
          {t('chat.markread')}
        </button>
        <Ending
          aid={aid}
          verb={t('chat.remove')}
          what={t('chat.remove.what')}
          run={() => perform('chatRemove', { aid, peer })}
        />
        <Ending
          aid={aid}
          verb={t('chat.block')}
          what={t('chat.block.what')}
          run={() => perform('chatBlock', { aid, peer })}
        />
      </header>
      <Answer of={end}>
        {(entries) => (
          <Lines count={entries.length}>
            {entries.map((entry) => (
              <Said key={entry.seq} entry={entry} aid={aid} peer={peer} />
            ))}
          </Lines>
        )}
      </Answer>
      {isFriend && <Write as={aid} send={(text) => perform('chatSend', { aid, peer, text })} />}
    </div>
  );
}
