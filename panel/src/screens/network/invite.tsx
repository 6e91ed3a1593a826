/** An invitation to the network of this node: a line, and the same as a QR code. */
import { HTTPS_PORT } from '../../../../src/foundation/address.ts';
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { useQuery } from '../../lib/query.ts';
import { Answer, Copy, State } from '../../parts/basics.tsx';
import { CloseButton } from '../../parts/close-button.tsx';
import { Dialog } from '../../parts/overlay.tsx';
import { Qr } from '../../parts/qr.tsx';

type Invitation = Output<'invite'>;

const TONES = {
  anywhere: 'good',
  helped: 'good',
  unproven: 'warn',
  lan: 'warn',
  machine: 'bad',
} as const satisfies Record<Invitation['reach'], string>;

export function Invite({ close }: { readonly close: () => void }) {
  const invitation = useQuery('invite', {});
  return (
    <Dialog title={t('invite')} close={close}>
      <Answer of={invitation}>
        {({ invitation: line, reach, network, tls_ports }) => (
          <>
            <p>{t('invite.what')}</p>
            <pre class="line" tabIndex={0}>
              {line}
            </pre>
            <div class="acts close">
              <Copy text={line} label={t('invite.copy')} />
              <Copy text={`svc join '${line}'`} label={t('invite.command')} />
            </div>
            <p class="above">
              <State tone={TONES[reach]}>{t(`reach.${reach}`)}</State>
            </p>
            {(reach === 'anywhere' || reach === 'unproven') && !tls_ports.includes(HTTPS_PORT) && (
              <p>
                <State tone="warn">{t('invite.no_https')}</State>
              </p>
            )}
            {network !== '' && <p>{t('invite.network', { network })}</p>}
            <Qr text={line} label={t('invite.qr')} />
          </>
        )}
      </Answer>
      <CloseButton close={close} />
    </Dialog>
  );
}
