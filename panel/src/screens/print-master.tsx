/** A page to print with a master key, as a QR code and as groups of digits. It is never sent. */
import { t } from '../lib/i18n.ts';
import { groupsOf, toHex } from '../lib/master.ts';
import { Qr } from '../parts/qr.tsx';

interface Props {
  readonly aid: string;
  readonly seed: Uint8Array;
}

export function PrintMaster({ aid, seed }: Props) {
  return (
    <div class="sheet">
      <b>{t('master.key')}</b>
      <p>
        <code>{aid}</code>
      </p>
      <Qr text={toHex(seed)} label={t('qr.master')} />
      <div class="groups">
        {groupsOf(seed).map((group, i) => (
          <span key={i}>{group}</span>
        ))}
      </div>
      <p>{t('master.save.why')}</p>
      <div class="acts noprint">
        <button type="button" onClick={() => print()}>
          {t('master.print')}
        </button>
      </div>
    </div>
  );
}
