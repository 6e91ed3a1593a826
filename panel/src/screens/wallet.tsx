/**
 * An agent of an Ethereum wallet. The wallet signs a text, here or in another program, and the signature is the
 * delegation.
 */
import { useState } from 'preact/hooks';
import { t } from '../lib/i18n.ts';
import { issueTime, newSeed, toHex } from '../lib/master.ts';
import { here as place } from '../lib/place.ts';
import { perform } from '../lib/query.ts';
import { addressOf, browserWallet, signedBy } from '../lib/wallet.ts';
import { Copy, Field, InputError } from '../parts/basics.tsx';
import { Form } from '../parts/form.tsx';
import { act } from '../parts/overlay.tsx';

interface Props {
  /** The agent to renew. Absent: the wallet selects it. */
  readonly aid?: string;
  /** Of the current delegation. The new one must be later. */
  readonly issuedAt?: string;
  readonly done: (aid: string) => void;
}

interface Offer {
  /** The base path of the node of the agent. */
  readonly base: string;
  readonly agent: string;
  readonly issued_at: number;
  readonly seed: string;
  readonly message: string;
}

/** The text that the wallet must sign for a new operational key. */
async function offerFor(agent: string, issuedAt: string): Promise<Offer> {
  const { base } = place();
  const seed = toHex(newSeed());
  const issued_at = issueTime(issuedAt, Date.now());
  const key = { operational_private_key_seed_hex: seed };
  const { message } = await perform('ethereumMessage', { agent, issued_at, expires_at: 0, ...key }, base);
  return { base, agent, issued_at, seed, message };
}

async function register({ base, agent, issued_at, seed }: Offer, signature: string): Promise<string> {
  const signed = { eth_signature_hex: signature.trim(), operational_private_key_seed_hex: seed };
  const { aid } = await perform('ethereumRegister', { agent, issued_at, expires_at: 0, ...signed }, base);
  return aid;
}

export function Wallet({ aid = '', issuedAt = '', done }: Props) {
  const [address, setAddress] = useState(aid);
  const [offer, setOffer] = useState<Offer>();
  const [signature, setSignature] = useState('');
  const [trouble, setTrouble] = useState('');
  const wallet = browserWallet();
  const finish = async (made: Offer, by: string): Promise<void> => done(await register(made, by));
  const here = async (): Promise<void> => {
    if (wallet === null) return;
    const chosen = await addressOf(wallet);
    if (aid !== '' && chosen.toLowerCase() !== aid.toLowerCase()) {
      setTrouble(t('wallet.other'));
      return;
    }
    const made = await offerFor(chosen, issuedAt);
    await finish(made, await signedBy(wallet, chosen, made.message));
  };
  return (
    <>
      <p>{t('wallet.what')}</p>
      {wallet !== null && (
        <div class="acts">
          <button type="button" class="main" onClick={() => act(here)}>
            {t('wallet.connect')}
          </button>
        </div>
      )}
      <p class="empty">{t(wallet === null ? 'wallet.missing' : 'wallet.elsewhere')}</p>
      <Form
        fields={['agent']}
        verb={t('wallet.text')}
        isReady={address.trim() !== ''}
        run={async () => setOffer(await offerFor(address.trim(), issuedAt))}
      >
        {aid === '' && (
          <Field label={t('wallet.address')} name="agent" value={address} onInput={setAddress} placeholder="0x…" />
        )}
      </Form>
      {offer !== undefined && (
        <Form
          fields={['eth_signature_hex']}
          verb={t('wallet.register')}
          isReady={signature.trim() !== ''}
          run={() => finish(offer, signature)}
        >
          <pre>{offer.message}</pre>
          <Copy text={offer.message} />
          <Field
            label={t('wallet.signature')}
            name="eth_signature_hex"
            value={signature}
            onInput={setSignature}
            placeholder="0x…"
          />
        </Form>
      )}
      <InputError text={trouble} />
    </>
  );
}
