/** The chat of two agents. */
import { t } from '../../lib/i18n.ts';
import { saveObject } from '../../lib/objects.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Who } from '../../parts/agent.tsx';
import { Answer, Bytes, UntrustedText } from '../../parts/basics.tsx';
import { act } from '../../parts/overlay.tsx';
import { type ChatEntry, chatBefore } from './entries.ts';
import { Back, EndButton, Line, Lines } from './talk.tsx';
import { notifyWritten, useTalk } from './use-talk.ts';
import { Write } from './write.tsx';

function Said({ entry, aid, peer }: { readonly entry: ChatEntry; readonly aid: string; readonly peer: string }) {
  const { dir, at, text, name, size, object_id, status } = entry;
  const holder = dir === 'out' ? aid : peer;
  return (
    <Line at={at} author={holder} text={text ?? ''} note={dir === 'out' ? t(`chat.${status}`) : ''}>
      {object_id !== undefined && (
        <span>
          <span class="chip">
            <UntrustedText text={name ?? object_id.slice(0, 8)} />
          </span>{' '}
          <small>{size !== undefined && <Bytes count={size} />}</small>{' '}
          <button type="button" onClick={() => act(() => saveObject(holder, object_id, name ?? object_id))}>
            {t('save')}
          </button>
        </span>
      )}
    </Line>
  );
}

export function Chat({ aid, peer }: { readonly aid: string; readonly peer: string }) {
  const { value: contacts } = useQuery('chatContacts', { aid });
  const { known, older } = useTalk({
    aid,
    id: peer,
    read: (before) => chatBefore(aid, peer, before),
    concerns: ({ type, data }) => type.startsWith('chat.') && (data['peer'] ?? peer) === peer,
    waits: ({ status }) => status === 'queued',
  });
  const isFriend = contacts?.friends.some((friend) => friend.peer === peer) === true;
  const isAsked = contacts?.out_pending.some((asked) => asked.peer === peer) === true;
  return (
    <div class="talk">
      <header>
        <Back aid={aid} />
        <Who aid={peer} />
        <span class="grow" />
        {isFriend && (
          <button
            type="button"
            onClick={() => act(() => perform('chatMarkRead', { aid, peer }).then(notifyWritten), t('saved'))}
          >
            {t('chat.markread')}
          </button>
        )}
        <details class="more">
          <summary class="button">{t('talk.more')}</summary>
          <div class="acts">
            {(isFriend || isAsked) && (
              <EndButton
                aid={aid}
                verb={t('chat.remove')}
                what={t('chat.remove.what')}
                run={() => perform('chatRemove', { aid, peer })}
              />
            )}
            <EndButton
              aid={aid}
              verb={t('chat.block')}
              what={t('chat.block.what')}
              run={() => perform('chatBlock', { aid, peer })}
            />
          </div>
        </details>
      </header>
      <Answer of={known}>
        {({ entries, hasOlder, readTo }) => (
          <Lines
            entries={entries}
            readTo={readTo}
            isNew={({ dir }) => dir === 'in'}
            hasOlder={hasOlder}
            older={older}
            line={(entry) => <Said key={entry.seq} entry={entry} aid={aid} peer={peer} />}
          />
        )}
      </Answer>
      {isFriend && (
        <Write
          as={aid}
          send={(text) => perform('chatSend', { aid, peer, text })}
          sendFile={(object_id, _, base) => perform('chatSend', { aid, peer, object_id }, base)}
        />
      )}
      {isAsked && <p class="closing">{t('chat.waits')}</p>}
    </div>
  );
}
