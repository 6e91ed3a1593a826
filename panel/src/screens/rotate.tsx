/** A new operational key for an agent, allowed by its master key in the page. */
import { useState } from 'preact/hooks';
import { t } from '../lib/i18n.ts';
import { aidOfKey, canSign, keyOf, newSeed, proofHex, toHex } from '../lib/master.ts';
import { perform } from '../lib/query.ts';
import { Field } from '../parts/basics.tsx';
import { act } from '../parts/overlay.tsx';
import { ReadMaster } from '../parts/read-master.tsx';

interface Props {
  readonly aid: string;
  /** Of the delegation that stands: the new one has to be later. */
  readonly issuedAt: string;
  readonly close: () => void;
}

/** Unix seconds of a day that was chosen; 0 where none was. */
function endOfDay(day: string): number {
  return day === '' ? 0 : Math.floor(Date.parse(`${day}T23:59:59`) / 1000);
}

export function Rotate({ aid, issuedAt, close }: Props) {
  const [until, setUntil] = useState('');
  const [trouble, setTrouble] = useState('');
  if (!canSign()) return <p>{t('master.insecure')}</p>;
  const sign = async (seed: Uint8Array): Promise<void> => {
    try {
      const master = await keyOf(seed);
      if (aidOfKey(master) !== aid) {
        setTrouble(t('master.other'));
        return;
      }
      const operational = newSeed();
      const { publicKey } = await keyOf(operational);
      const now = Math.max(Math.floor(Date.now() / 1000), Math.floor(Date.parse(issuedAt) / 1000) + 1);
      const proof = await proofHex(master, publicKey, now, endOfDay(until));
      const body = { operational_private_key_hex: toHex(operational), delegation_proof_hex: proof };
      operational.fill(0);
      close();
      act(() => perform('agentRegister', body), t('key.rotated'));
    } finally {
      seed.fill(0);
    }
  };
  const take = (seed: Uint8Array): void => {
    sign(seed).catch(() => setTrouble(t('master.browser')));
  };
  return (
    <>
      <p>{t('master.stays')}</p>
      <Field label={t('key.until')} type="date" value={until} onInput={setUntil} />
      <ReadMaster take={take} />
      {trouble !== '' && (
        <p class="bad" role="alert">
          {trouble}
        </p>
      )}
      <div class="acts">
        <button type="button" onClick={close}>
          {t('cancel')}
        </button>
      </div>
    </>
  );
}
