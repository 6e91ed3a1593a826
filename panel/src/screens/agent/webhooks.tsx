/** Webhooks that remote agents notify through an agent of this node, and webhooks of its callers. */
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Who } from '../../parts/agent.tsx';
import { Answer, Empty, Section, State, UntrustedText, When } from '../../parts/basics.tsx';
import { confirm } from '../../parts/overlay.tsx';
import { type Column, Table } from '../../parts/table.tsx';

interface Row {
  readonly id: string;
  /** The webhook URL of a local program. Null if only the other side knows it. */
  readonly url: string | null;
  /** The remote agent. */
  readonly other: string;
  readonly waiting: number;
  readonly triedAt: string | undefined;
  readonly error: string | undefined;
  readonly expiresAt: string;
}

const PUSH_MS = 10_000;

function rowsOf({ webhooks, mailboxes }: Output<'pushList'>, aid: string): Row[] {
  const own = webhooks.filter(({ local_aid }) => local_aid === aid);
  const boxes = mailboxes.filter(({ called_aid }) => called_aid === aid);
  return [
    ...own.map(({ id, url, remote_aid: other, waiting, last_tried_at: triedAt, last_error: error, expires_at }) => {
      return { id, url, other, waiting, triedAt, error, expiresAt: expires_at };
    }),
    ...boxes.map(({ id, caller_aid: other, waiting, expires_at }) => {
      return { id, url: null, other, waiting, triedAt: undefined, error: undefined, expiresAt: expires_at };
    }),
  ];
}

function end({ id, url }: Row): void {
  confirm({
    title: t('push.end'),
    text: `${url ?? t('push.box')}: ${t('push.end.what')}`,
    verb: t('push.end'),
    run: () => perform('pushRemove', { id }),
  });
}

function columns(): readonly Column<Row>[] {
  return [
    {
      title: t('push.for'),
      cell: ({ url, error }) => (
        <>
          {url === null ? t('push.box') : <code>{url}</code>}
          {error !== undefined && (
            <small>
              <State tone="bad">
                <UntrustedText text={error} />
              </State>
            </small>
          )}
        </>
      ),
    },
    { title: t('push.of'), cell: ({ other }) => <Who aid={other} /> },
    { title: t('push.waits'), isNumber: true, cell: ({ waiting }) => waiting },
    { title: t('push.tried'), cell: ({ triedAt }) => (triedAt === undefined ? '–' : <When at={triedAt} ago />) },
    { title: t('push.ends'), cell: ({ expiresAt }) => <When at={expiresAt} /> },
    {
      title: '',
      cell: (row) => (
        <button type="button" class="danger" onClick={() => end(row)}>
          {t('push.end')}
        </button>
      ),
    },
  ];
}

export function Webhooks({ aid }: { readonly aid: string }) {
  const known = useQuery('pushList', {}, PUSH_MS);
  return (
    <Section title={t('push.title')}>
      <Answer of={known}>
        {(all) => {
          const rows = rowsOf(all, aid);
          if (rows.length === 0) return <Empty text={t('push.none')} />;
          return <Table label={t('push.title')} rows={rows} columns={columns()} keyOf={({ id }) => id} />;
        }}
      </Answer>
    </Section>
  );
}
