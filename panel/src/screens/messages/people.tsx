/** The members, the invitation link and the title of a group. */
import { useState } from 'preact/hooks';
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { useQuery } from '../../lib/query.ts';
import { Who } from '../../parts/agent.tsx';
import { AidField } from '../../parts/aid-field.tsx';
import { Answer, Copy, Field } from '../../parts/basics.tsx';
import { CloseButton } from '../../parts/close-button.tsx';
import { Form } from '../../parts/form.tsx';
import { act, confirm, Dialog } from '../../parts/overlay.tsx';
import { append, groupTool } from './group-tools.ts';
import { notifyWritten } from './use-talk.ts';

type Head = Output<'groupHead'>;
const LEADERS: readonly string[] = ['creator', 'admin'];

/** Runs an action and shows its result in the group. */
function change(run: () => Promise<unknown>, done: string): void {
  act(async () => {
    await run();
    notifyWritten();
  }, done);
}

function Member({
  aid,
  head,
  member,
}: {
  readonly aid: string;
  readonly head: Head;
  readonly member: Head['members'][number];
}) {
  const { group_id, role: own } = head;
  const isOther = member.aid !== aid && member.role !== 'creator';
  const isAdmin = member.role === 'admin';
  return (
    <li>
      <span class="grow">
        <Who aid={member.aid} plain>
          {t(`groups.${member.role}`)}
        </Who>
      </span>
      {isOther && own === 'creator' && (
        <button
          type="button"
          onClick={() =>
            change(() => append(aid, group_id, 'role', isAdmin ? 'member' : 'admin', { to: [member.aid] }), t('saved'))
          }
        >
          {t(isAdmin ? 'groups.demote' : 'groups.promote')}
        </button>
      )}
      {isOther && (own === 'creator' || (own === 'admin' && !isAdmin)) && (
        <button
          type="button"
          class="danger"
          onClick={() =>
            confirm({
              title: t('groups.remove'),
              text: t('groups.remove.what'),
              verb: t('groups.remove'),
              run: () => append(aid, group_id, 'remove', '', { to: [member.aid] }).then(notifyWritten),
            })
          }
        >
          {t('remove')}
        </button>
      )}
    </li>
  );
}

function Invite({ aid, id }: { readonly aid: string; readonly id: string }) {
  const [target, setTarget] = useState('');
  return (
    <Form
      fields={['target_aid']}
      verb={t('groups.invite')}
      isReady={target !== ''}
      run={async () => {
        await groupTool('invite', { aid, group_id: id, target_aid: target });
        setTarget('');
        notifyWritten();
      }}
      done={t('groups.invite.sent')}
    >
      <AidField label={t('agent')} name="target_aid" value={target} onInput={setTarget} />
    </Form>
  );
}

function Title({ aid, head }: { readonly aid: string; readonly head: Head }) {
  const [title, setTitle] = useState(head.title);
  return (
    <Form
      fields={['text']}
      verb={t('change')}
      isReady={title.trim() !== head.title && title.trim() !== ''}
      run={() => append(aid, head.group_id, 'title', title.trim()).then(notifyWritten)}
      done={t('saved')}
    >
      <Field label={t('groups.title')} name="text" value={title} onInput={setTitle} />
    </Form>
  );
}

interface Props {
  readonly aid: string;
  readonly id: string;
  readonly close: () => void;
}

export function People({ aid, id, close }: Props) {
  const head = useQuery('groupHead', { aid, group_id: id });
  return (
    <Dialog title={t('messages.groups')} close={close}>
      <Answer of={head}>
        {(value) => (
          <>
            {LEADERS.includes(value.role) && <Title aid={aid} head={value} />}
            <ul class="rows">
              {value.members.map((member) => (
                <Member key={member.aid} aid={aid} head={value} member={member} />
              ))}
            </ul>
            <h3>{t('groups.invite')}</h3>
            <Invite aid={aid} id={id} />
            <h3>{t('groups.link')}</h3>
            <p>{t('groups.link.what')}</p>
            <pre tabIndex={0}>{value.link}</pre>
            <Copy text={value.link} />
          </>
        )}
      </Answer>
      <CloseButton close={close} />
    </Dialog>
  );
}
