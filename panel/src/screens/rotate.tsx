/**
 * A new delegation for an agent, signed by its master key in the page: for the current operational key or for a new
 * one.
 */
import { useState } from 'preact/hooks';
import { Failure } from '../lib/failure.ts';
import { failureText } from '../lib/failure-text.ts';
import { t } from '../lib/i18n.ts';
import { aidOfKey, type Bytes, canSign, issueTime, keyOf, newSeed, proofHex, readSeed, toHex } from '../lib/master.ts';
import { here } from '../lib/place.ts';
import { perform } from '../lib/query.ts';
import { Field, InputError } from '../parts/basics.tsx';
import { act } from '../parts/overlay.tsx';
import { ReadMaster } from '../parts/read-master.tsx';

interface Props {
  readonly aid: string;
  /** Of the current delegation. The new one must be later. */
  readonly issuedAt: string;
  /** The operational key does not change. */
  readonly keeps: boolean;
  readonly close: () => void;
}

/** The current operational key. The node returns it only to this machine. */
async function present(aid: string, base: string): Promise<Bytes> {
  const { operational_private_key_hex: hex } = await perform('agentExport', { aid }, base);
  const seed = readSeed(hex);
  if (seed === null) throw new TypeError('the node returned no key');
  return seed;
}

/** Unix seconds at the end of a day. 0 for an empty field. */
function endOfDay(day: string): number {
  return day === '' ? 0 : Math.floor(Date.parse(`${day}T23:59:59`) / 1000);
}

export function Rotate({ aid, issuedAt, keeps, close }: Props) {
  const [until, setUntil] = useState('');
  const [trouble, setTrouble] = useState('');
  if (!canSign()) return <p>{t('master.insecure')}</p>;
  const sign = async (seed: Uint8Array): Promise<void> => {
    const { base } = here();
    try {
      const master = await keyOf(seed);
      if (aidOfKey(master) !== aid) {
        setTrouble(t('master.other'));
        return;
      }
      const operational = keeps ? await present(aid, base) : newSeed();
      const { publicKey } = await keyOf(operational);
      const now = issueTime(issuedAt, Date.now());
      const proof = await proofHex(master, publicKey, now, endOfDay(until));
      const body = { operational_private_key_hex: toHex(operational), delegation_proof_hex: proof };
      operational.fill(0);
      close();
      act(() => perform('agentRegister', body, base), t(keeps ? 'key.renewed' : 'key.rotated'));
    } finally {
      seed.fill(0);
    }
  };
  const take = (seed: Uint8Array): void => {
    sign(seed).catch((error: unknown) =>
      setTrouble(error instanceof Failure ? failureText(error) : t('master.browser')),
    );
  };
  return (
    <>
      <p>{t('master.stays')}</p>
      <Field label={t('key.until')} type="date" value={until} onInput={setUntil} />
      <ReadMaster take={take} />
      <InputError text={trouble} />
      <div class="acts">
        <button type="button" onClick={close}>
          {t('cancel')}
        </button>
      </div>
    </>
  );
}
