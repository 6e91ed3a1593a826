/** A room. */
import { base64Of, textOf } from '../../lib/base64.ts';
import { t } from '../../lib/i18n.ts';
import { saveObject } from '../../lib/objects.ts';
import { href } from '../../lib/place.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Who } from '../../parts/agent.tsx';
import { Answer, Foreign } from '../../parts/basics.tsx';
import { act } from '../../parts/overlay.tsx';
import { endOfRoom } from './ends.ts';
import { Ending, Line, Lines, Write } from './talk.tsx';
import { useEnd } from './use-end.ts';

export function Room({ aid, id }: { readonly aid: string; readonly id: string }) {
  const head = useQuery('groupHead', { aid, group_id: id });
  const end = useEnd(`${aid} ${id}`, () => endOfRoom(aid, id));
  const tool = (name: string, args: Readonly<Record<string, string>>) =>
    perform('toolCall', { tool: name, args: { aid, group_id: id, ...args } });
  return (
    <div class="talk">
      <header>
        <a class="button" href={href(['messages', aid])} aria-label={t('back')}>
          ←
        </a>
        <b>
          <Foreign text={head.value?.title ?? ''} />
        </b>
        <details>
          <summary>{t('room.members', { n: head.value?.member_count ?? 0 })}</summary>
          <ul>
            {(head.value?.members ?? []).map((member) => (
              <li key={member.aid}>
                <Who aid={member.aid} /> <small>{t(`room.${member.role}`)}</small>
              </li>
            ))}
          </ul>
        </details>
        <button type="button" onClick={() => act(() => tool('group_mark_read', {}), t('saved'))}>
          {t('chat.markread')}
        </button>
        <Ending
          aid={aid}
          verb={t('room.leave')}
          what={t('room.leave.what')}
          run={() => perform('groupLeave', { aid, group_id: id })}
        />
      </header>
      <Answer of={end}>
        {(entries) => (
          <Lines count={entries.length}>
            {entries.map(({ entry_id, at, author, kind, body, ref, retracted }) => (
              <Line
                key={entry_id}
                at={at}
                author={author}
                text={retracted === true ? t('room.retracted') : (textOf(body ?? '') ?? t('call.binary'))}
                note={kind === 'msg' ? '' : kind}
              >
                {kind === 'file' && ref !== undefined && (
                  <button type="button" onClick={() => act(() => saveObject(author, ref, ref))}>
                    {t('save')}
                  </button>
                )}
              </Line>
            ))}
          </Lines>
        )}
      </Answer>
      {head.value !== undefined && ['creator', 'admin', 'member'].includes(head.value.role) && (
        <Write as={aid} send={(text) => tool('group_append', { body: base64Of(text) })} />
      )}
    </div>
  );
}
