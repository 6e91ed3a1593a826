/** The AID of an agent as a QR code. */
import { t } from '../../lib/i18n.ts';
import { CloseButton } from '../../parts/close-button.tsx';
import { Dialog } from '../../parts/overlay.tsx';
import { Qr } from '../../parts/qr.tsx';

export function QrDialog({ aid, close }: { readonly aid: string; readonly close: () => void }) {
  return (
    <Dialog title={t('qr.aid')} close={close}>
      <Qr text={aid} label={t('qr.aid')} />
      <p>
        <code>{aid}</code>
      </p>
      <CloseButton close={close} />
    </Dialog>
  );
}
