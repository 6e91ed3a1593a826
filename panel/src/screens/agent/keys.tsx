/** The keys of an agent: its delegation, a new key, the move to another node. */
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { here } from '../../lib/place.ts';
import { perform } from '../../lib/query.ts';
import { saveFile } from '../../lib/save.ts';
import { Section, T, When } from '../../parts/basics.tsx';
import { Later } from '../../parts/later.tsx';
import { confirm, Dialog, openDialog } from '../../parts/overlay.tsx';
import { TAIL_CHARS } from './overview.tsx';

type Agent = Output<'agentGet'>;

const loadRotate = async () => (await import('../rotate.tsx')).Rotate;
const loadWallet = async () => (await import('../wallet.tsx')).Wallet;

function openRotate({ aid, delegation }: Agent, keeps: boolean): void {
  openDialog((close) => (
    <Dialog title={t(keeps ? 'key.renew.one' : 'key.rotate')} close={close}>
      <Later load={loadRotate} props={{ aid, issuedAt: delegation.issued_at, keeps, close }} />
    </Dialog>
  ));
}

function openWallet({ aid, delegation }: Agent): void {
  openDialog((close) => (
    <Dialog title={t('key.renew.one')} close={close}>
      <Later load={loadWallet} props={{ aid, issuedAt: delegation.issued_at, done: close }} />
      <div class="acts">
        <button type="button" onClick={close}>
          {t('close')}
        </button>
      </div>
    </Dialog>
  ));
}

function save(aid: string, kind: 'keys' | 'agent', content: unknown): void {
  saveFile(`svcd-${kind}-${aid.slice(-TAIL_CHARS)}.json`, `${JSON.stringify(content, null, 2)}\n`, 'application/json');
}

function exportKeys(aid: string): void {
  confirm({
    title: t('key.export'),
    text: t('key.export.what'),
    verb: t('key.export'),
    tail: aid.slice(-TAIL_CHARS),
    run: async () => save(aid, 'keys', await perform('agentExport', { aid })),
  });
}

function saveBundle(aid: string): void {
  confirm({
    title: t('key.bundle'),
    text: t('key.bundle.what'),
    verb: t('key.bundle'),
    tail: aid.slice(-TAIL_CHARS),
    run: async () => save(aid, 'agent', await perform('agentBundle', { aid })),
  });
}

/** Signs a new delegation with the master key in this page or with the wallet. */
function Renewal({ agent }: { readonly agent: Agent }) {
  switch (agent.scheme) {
    case 'native':
      return (
        <>
          <p class="empty">{t('key.renew.what')}</p>
          <div class="acts close">
            {here().node === null && (
              <button type="button" class="main" onClick={() => openRotate(agent, true)}>
                {t('key.renew.one')}
              </button>
            )}
            <button type="button" onClick={() => openRotate(agent, false)}>
              {t('key.rotate')}
            </button>
          </div>
        </>
      );
    case 'ethereum':
      return (
        <>
          <p class="empty">{t('wallet.what')}</p>
          <div class="acts close">
            <button type="button" class="main" onClick={() => openWallet(agent)}>
              {t('key.renew.one')}
            </button>
          </div>
        </>
      );
    default:
      return (
        <p class="empty">
          <T k="key.wallet" command={<code>svc wallet</code>} />
        </p>
      );
  }
}

function Delegation({ agent }: { readonly agent: Agent }) {
  return (
    <Section title={t('key.delegation')}>
      <dl class="pairs">
        <dt>{t('key.issued')}</dt>
        <dd>
          <When at={agent.delegation.issued_at} />
        </dd>
        <dt>{t('key.end')}</dt>
        <dd>{agent.delegation.expires_at === null ? t('key.noend') : <When at={agent.delegation.expires_at} />}</dd>
      </dl>
      <Renewal agent={agent} />
    </Section>
  );
}

export function Keys({ agent }: { readonly agent: Agent }) {
  const { aid } = agent;
  return (
    <>
      <Delegation agent={agent} />
      <Section title={t('key.move')}>
        <p class="empty">{t(here().node === null ? 'key.bundle.what' : 'error.local_only')}</p>
        {here().node === null && (
          <div class="acts close">
            <button type="button" onClick={() => saveBundle(aid)}>
              {t('key.bundle')}
            </button>
            <button type="button" class="danger" onClick={() => exportKeys(aid)}>
              {t('key.export')}
            </button>
          </div>
        )}
      </Section>
    </>
  );
}
