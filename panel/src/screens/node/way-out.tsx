/** How datagrams leave the network of the node, and why not over UDP. */
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { State, UntrustedText } from '../../parts/basics.tsx';

const TONES = { udp: 'good', tls: 'good', connecting: 'warn', failed: 'bad', off: 'bad' } as const;

export function WayOut({ exit }: { readonly exit: Output<'status'>['exit'] }) {
  const { state, helper, proxy, error, is_inspected: isInspected } = exit;
  const key = state === 'tls' && proxy !== null ? 'proxy' : state;
  return (
    <>
      <State tone={TONES[state]}>{t(`exit.${key}`, { helper: helper ?? '', proxy: proxy ?? '' })}</State>
      {isInspected && <small class="below">{t('exit.inspected')}</small>}
      {error !== null && (
        <small class="below" lang="en">
          <UntrustedText text={error.message} />
        </small>
      )}
    </>
  );
}
