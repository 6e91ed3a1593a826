/** Sends a file of an agent to a chat or a group. */
import type { ComponentChildren } from 'preact';
import { t } from '../../lib/i18n.ts';
import { returnFromHere } from '../../lib/place.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Mark, Who } from '../../parts/agent.tsx';
import { Answer, UntrustedText } from '../../parts/basics.tsx';
import { act, Dialog } from '../../parts/overlay.tsx';
import { GroupTitle } from '../messages/group.tsx';
import { append } from '../messages/group-tools.ts';

interface Props {
  readonly aid: string;
  readonly id: string;
  readonly name: string;
  readonly close: () => void;
}

/** Roles that may write in a group. */
const WRITERS: readonly string[] = ['creator', 'admin', 'member'];

export function SendFile({ aid, id, name, close }: Props) {
  const contacts = useQuery('chatContacts', { aid });
  const groups = useQuery('groupList', { aid });
  const send = (to: readonly string[], run: () => Promise<unknown>): void => {
    close();
    const leave = returnFromHere();
    act(async () => {
      await run();
      leave(['messages', aid, ...to]);
    });
  };
  const row = (key: string, shown: ComponentChildren, run: () => void) => (
    <li key={key}>
      <span class="grow">{shown}</span>
      <button type="button" onClick={run}>
        {t('send')}
      </button>
    </li>
  );
  return (
    <Dialog title={t('files.send')} close={close}>
      <p>
        <span class="chip">
          <UntrustedText text={name} />
        </span>
      </p>
      <Answer of={contacts}>
        {({ friends }) => {
          const open = (groups.value?.groups ?? []).filter(({ role }) => WRITERS.includes(role));
          if (friends.length + open.length === 0) return <p class="empty">{t('files.send.none')}</p>;
          return (
            <ul class="rows">
              {friends.map(({ peer }) =>
                row(peer, <Who aid={peer} plain />, () =>
                  send(['chat', peer], () => perform('chatSend', { aid, peer, object_id: id })),
                ),
              )}
              {open.map(({ group_id, title }) =>
                row(
                  group_id,
                  <span class="who">
                    <Mark aid={group_id} />
                    <b>
                      <GroupTitle id={group_id} title={title} />
                    </b>
                  </span>,
                  () => send(['group', group_id], () => append(aid, group_id, 'file', name, { ref: id })),
                ),
              )}
            </ul>
          );
        }}
      </Answer>
      <div class="acts">
        <button type="button" onClick={close}>
          {t('cancel')}
        </button>
      </div>
    </Dialog>
  );
}
