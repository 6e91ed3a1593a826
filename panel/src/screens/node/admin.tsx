/** Remote administration: the access list and the audit log. */
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { AccessLists } from '../../parts/access-list.tsx';
import { Who } from '../../parts/agent.tsx';
import { Answer, Empty, Section, State, When } from '../../parts/basics.tsx';
import { act, confirm } from '../../parts/overlay.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { OtherNode } from './other-node.tsx';

const TAIL_CHARS = 5;

type Done = Output<'remoteAdminAudit'>['entries'][number];

const columns = (): readonly Column<Done>[] => [
  { title: t('admin.when'), cell: ({ at }) => <When at={at} /> },
  { title: t('agent'), cell: ({ aid }) => <Who aid={aid} plain /> },
  {
    title: t('admin.what'),
    cell: ({ method, path, tools }) => (
      <code>
        {method ?? ''} {path ?? ''} {tools.join(', ')}
      </code>
    ),
  },
  {
    title: t('admin.how'),
    cell: ({ status, refused }) => (
      <State tone={refused === null ? 'good' : 'bad'}>{refused ?? (status === null ? '…' : String(status))}</State>
    ),
  },
];

function Audit() {
  const audit = useQuery('remoteAdminAudit', {});
  return (
    <Section title={t('admin.audit')}>
      <Answer of={audit}>
        {({ entries }) =>
          entries.length === 0 ? (
            <Empty text={t('admin.audit.none')} />
          ) : (
            <Table label={t('admin.audit')} rows={entries} columns={columns()} keyOf={({ id }) => String(id)} />
          )
        }
      </Answer>
    </Section>
  );
}

export function Admin() {
  const admin = useQuery('remoteAdminGet', {});
  const status = useQuery('status', {});
  const tail = status.value?.node_aid.slice(-TAIL_CHARS) ?? '';
  return (
    <>
      <Answer of={admin}>
        {({ enabled, allow, deny }) => (
          <>
            <Section title={t('node.admin')}>
              <p class="empty">{t(enabled ? 'admin.on' : 'admin.off')}</p>
              {enabled ? (
                <button
                  type="button"
                  onClick={() => act(() => perform('remoteAdminPatch', { enabled: false }), t('saved'))}
                >
                  {t('admin.disable')}
                </button>
              ) : (
                <button
                  type="button"
                  class="danger"
                  onClick={() =>
                    confirm({
                      title: t('admin.enable'),
                      text: t('admin.enable.what'),
                      verb: t('admin.enable'),
                      tail,
                      run: () => perform('remoteAdminPatch', { enabled: true }),
                    })
                  }
                >
                  {t('admin.enable')}
                </button>
              )}
            </Section>
            <AccessLists
              of={status.value?.node_aid ?? ''}
              allow={allow}
              deny={deny}
              note={t('acl.named', { n: allow.length })}
              add={(entry) => perform('remoteAdminAllow', entry)}
              refuse={(aid) => perform('remoteAdminDeny', { aid })}
              removeAllow={(id) => perform('remoteAdminAllowDelete', { id })}
              removeDeny={(id) => perform('remoteAdminDenyDelete', { id })}
            />
          </>
        )}
      </Answer>
      <Audit />
      <OtherNode />
    </>
  );
}
