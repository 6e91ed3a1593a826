/** A group. */
import type { Output } from '../../lib/api.ts';
import { textOf } from '../../lib/base64.ts';
import { type Key, t } from '../../lib/i18n.ts';
import { saveObject } from '../../lib/objects.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Called } from '../../parts/agent.tsx';
import { Answer, T, UntrustedText } from '../../parts/basics.tsx';
import { act, openDialog } from '../../parts/overlay.tsx';
import { type GroupEntry, groupBefore } from './entries.ts';
import { append, groupTool } from './group-tools.ts';
import { People } from './people.tsx';
import { Back, EndButton, Line, Lines } from './talk.tsx';
import { notifyWritten, useTalk } from './use-talk.ts';
import { Write } from './write.tsx';

/** Kinds of entries that describe a change of the group. */
const CHANGES: Readonly<Record<string, Key>> = {
  create: 'groups.did.create',
  invite: 'groups.did.invite',
  join: 'groups.did.join',
  leave: 'groups.did.leave',
  rekey: 'groups.did.rekey',
  remove: 'groups.did.remove',
  role: 'groups.did.role',
  title: 'groups.did.title',
};
/**
 * Kinds of entries without text for people: a new key of an agent, and a retraction, which shows at the retracted
 * entry.
 */
const SILENT: readonly string[] = ['key', 'retract'];
const WRITERS: readonly string[] = ['creator', 'admin', 'member'];

export function GroupTitle({ id, title }: { readonly id: string; readonly title: string }) {
  return title === '' ? t('groups.untitled', { id: id.slice(0, 8) }) : <UntrustedText text={title} />;
}

function Change({ entry, k }: { readonly entry: GroupEntry; readonly k: Key }) {
  const [other] = entry.to ?? [];
  return (
    <li class="day">
      <T
        k={k}
        agent={<Called aid={entry.author} />}
        other={other === undefined ? '…' : <Called aid={other} />}
        title={<UntrustedText text={textOf(entry.body ?? '') ?? ''} />}
      />
    </li>
  );
}

function EntryLine({ entry }: { readonly entry: GroupEntry }) {
  const { at, author, kind, body, ref, retracted } = entry;
  if (retracted === true) return <Line at={at} author={author} text={t('groups.retracted')} />;
  const text = textOf(body ?? '') ?? t('call.binary');
  if (kind !== 'file' || ref === undefined)
    return <Line at={at} author={author} text={text} note={kind === 'msg' ? '' : kind} />;
  const name = text === '' ? ref.slice(0, 8) : text;
  return (
    <Line at={at} author={author} text="">
      <span class="chip">
        <UntrustedText text={name} />
      </span>{' '}
      <button type="button" onClick={() => act(() => saveObject(author, ref, name))}>
        {t('save')}
      </button>
    </Line>
  );
}

type Head = Output<'groupHead'>;

function Heading({ aid, head }: { readonly aid: string; readonly head: Head }) {
  const { group_id, title, max_seq, member_count, role } = head;
  return (
    <>
      <b>
        <GroupTitle id={group_id} title={title} />
      </b>
      <span class="grow" />
      <button type="button" onClick={() => openDialog((close) => <People aid={aid} id={group_id} close={close} />)}>
        {t('groups.members', { n: member_count })}
      </button>
      <button
        type="button"
        onClick={() =>
          act(() => groupTool('mark_read', { aid, group_id, seq: max_seq }).then(notifyWritten), t('saved'))
        }
      >
        {t('chat.markread')}
      </button>
      {role !== 'creator' && WRITERS.includes(role) && (
        <details class="more">
          <summary class="button">{t('talk.more')}</summary>
          <div class="acts">
            <EndButton
              aid={aid}
              verb={t('groups.leave')}
              what={t('groups.leave.what')}
              run={() => perform('groupLeave', { aid, group_id })}
            />
          </div>
        </details>
      )}
    </>
  );
}

export function GroupChat({ aid, id }: { readonly aid: string; readonly id: string }) {
  const { value: head } = useQuery('groupHead', { aid, group_id: id });
  const { known, older } = useTalk({
    aid,
    id,
    read: (before) => groupBefore(aid, id, before),
    concerns: ({ type, data }) => type.startsWith('group.') && data['group_id'] === id,
  });
  const isIn = head !== undefined && WRITERS.includes(head.role);
  return (
    <div class="talk">
      <header>
        <Back aid={aid} />
        {head !== undefined && <Heading aid={aid} head={head} />}
      </header>
      <Answer of={known}>
        {({ entries, hasOlder, readTo }) => (
          <Lines
            entries={entries.filter(({ kind }) => !SILENT.includes(kind))}
            readTo={readTo}
            isNew={({ author, kind }) => author !== aid && CHANGES[kind] === undefined}
            hasOlder={hasOlder}
            older={older}
            line={(entry) => {
              const deed = CHANGES[entry.kind];
              if (deed === undefined) return <EntryLine key={entry.seq} entry={entry} />;
              return <Change key={entry.seq} entry={entry} k={deed} />;
            }}
          />
        )}
      </Answer>
      {isIn && (
        <Write
          as={aid}
          send={(text) => append(aid, id, 'msg', text)}
          sendFile={(ref, name, base) => append(aid, id, 'file', name, { ref }, base)}
        />
      )}
      {head !== undefined && !isIn && <p class="closing">{t(`groups.${head.role}`)}</p>}
    </div>
  );
}
