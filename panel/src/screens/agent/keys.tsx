/** The keys of an agent: its delegation, a new one, moving it elsewhere. */
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { perform } from '../../lib/query.ts';
import { saveFile } from '../../lib/save.ts';
import { Section, T, When } from '../../parts/basics.tsx';
import { Later } from '../../parts/later.tsx';
import { confirm, Dialog, openDialog } from '../../parts/overlay.tsx';
import { TAIL_CHARS } from './overview.tsx';

type Agent = Output<'agentGet'>;

const loadRotate = async () => (await import('../rotate.tsx')).Rotate;

function openRotate({ aid, delegation }: Agent): void {
  openDialog((close) => (
    <Dialog title={t('key.rotate')} close={close}>
      <Later load={loadRotate} props={{ aid, issuedAt: delegation.issued_at, close }} />
    </Dialog>
  ));
}

function exportKeys(aid: string): void {
  confirm({
    title: t('key.export'),
    text: t('key.export.what'),
    verb: t('key.export'),
    tail: aid.slice(-TAIL_CHARS),
    run: async () => {
      const keys = await perform('agentExport', { aid });
      saveFile(`svcd-agent-${aid.slice(-TAIL_CHARS)}.json`, `${JSON.stringify(keys, null, 2)}\n`, 'application/json');
    },
  });
}

export function Keys({ agent }: { readonly agent: Agent }) {
  const { aid, scheme, delegation } = agent;
  return (
    <>
      <Section title={t('key.delegation')}>
        <dl class="pairs">
          <dt>{t('key.issued')}</dt>
          <dd>
            <When at={delegation.issued_at} />
          </dd>
          <dt>{t('key.end')}</dt>
          <dd>{delegation.expires_at === null ? t('key.noend') : <When at={delegation.expires_at} />}</dd>
        </dl>
        {scheme === 'native' ? (
          <>
            <p class="empty">{t('key.rotate.what')}</p>
            <button type="button" class="main" onClick={() => openRotate(agent)}>
              {t('key.rotate')}
            </button>
          </>
        ) : (
          <p class="empty">
            <T k="key.wallet" command={<code>svc wallet</code>} />
          </p>
        )}
      </Section>
      <Section title={t('key.move')}>
        <p class="empty">
          <T k="key.move.what" command={<code>svc agent move {aid.slice(0, 12)}…</code>} />
        </p>
        <button type="button" class="danger" onClick={() => exportKeys(aid)}>
          {t('key.export')}
        </button>
      </Section>
    </>
  );
}
