/** Creates the keys of an agent in the page, or restores it from its master key, and registers it. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { type HeldKey, holdKey, useHeldKey, wipeKey, wipeRestoredKey } from '../lib/held-key.ts';
import { t } from '../lib/i18n.ts';
import { aidOfKey, keyOf, lastDigits, masterFileText, newSeed, proofHex, readSeed, toHex } from '../lib/master.ts';
import { here } from '../lib/place.ts';
import { perform } from '../lib/query.ts';
import { saveFile } from '../lib/save.ts';
import { Mark, WholeAid } from '../parts/agent.tsx';
import { Field, InputError } from '../parts/basics.tsx';
import { Later } from '../parts/later.tsx';
import { act, confirm } from '../parts/overlay.tsx';
import { ReadMaster } from '../parts/read-master.tsx';
import { ImportBundle } from './import-bundle.tsx';

/** Hex digits of the key that the user types to prove that it was written down. */
const PROVEN_DIGITS = 8;
const TAIL_CHARS = 5;

const loadPrint = async () => (await import('./print-master.tsx')).PrintMaster;
const loadWallet = async () => (await import('./wallet.tsx')).Wallet;

/** Registers an agent. The master key stays in the page. */
async function register(seed: Uint8Array): Promise<string> {
  const { base } = here();
  const master = await keyOf(seed);
  const operational = newSeed();
  const { publicKey } = await keyOf(operational);
  const proof = await proofHex(master, publicKey, Math.floor(Date.now() / 1000), 0);
  const body = { operational_private_key_hex: toHex(operational), delegation_proof_hex: proof };
  operational.fill(0);
  const { aid } = await perform('agentRegister', body, base);
  return aid;
}

function Prove({ made, proven }: { readonly made: HeldKey; readonly proven: () => void }) {
  const [typed, setTyped] = useState('');
  const [isShown, setShown] = useState(false);
  const [trouble, setTrouble] = useState('');
  const { aid, seed } = made;
  const check = (isSame: boolean): void => {
    if (isSame) proven();
    else setTrouble(t('master.notsame'));
  };
  const compare = async (file: File): Promise<void> => {
    const read = readSeed(await file.text());
    check(read !== null && toHex(read) === toHex(seed));
    read?.fill(0);
  };
  return (
    <>
      <p>{t('master.save.why')}</p>
      <div class="acts">
        <button
          type="button"
          class="main"
          onClick={() => saveFile(`svcd-master-${aid.slice(-TAIL_CHARS)}.txt`, masterFileText(aid, seed), 'text/plain')}
        >
          {t('master.save')}
        </button>
        <button type="button" onClick={() => setShown(!isShown)} aria-expanded={isShown}>
          {t('master.show')}
        </button>
      </div>
      {isShown && <Later load={loadPrint} props={{ aid, seed }} />}
      <p class="empty">{t('master.prove')}</p>
      <label class="field">
        <span>{t('master.prove.file')}</span>
        <input
          type="file"
          onChange={({ currentTarget }) => {
            const [file] = currentTarget.files ?? [];
            if (file !== undefined) compare(file).catch(() => check(false));
            currentTarget.value = '';
          }}
        />
      </label>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          check(typed.trim().toLowerCase() === lastDigits(seed, PROVEN_DIGITS));
        }}
      >
        <Field label={t('master.prove.type', { n: PROVEN_DIGITS })} value={typed} onInput={setTyped} />
        <div class="acts">
          <button type="submit">{t('master.prove.check')}</button>
          <button
            type="button"
            class="plain"
            onClick={() =>
              confirm({
                title: t('master.without'),
                text: t('master.without.what'),
                verb: t('master.without'),
                tail: aid.slice(-TAIL_CHARS),
                run: async () => proven(),
              })
            }
          >
            {t('master.without')}
          </button>
        </div>
      </form>
      <InputError text={trouble} />
    </>
  );
}

export function MakeKeys({ done }: { readonly done: (aid: string) => void }) {
  const made = useHeldKey();
  const [note, setNote] = useState('');
  const [wantsWallet, setWallet] = useState(false);
  const isOpen = useRef(true);
  useEffect(
    () => () => {
      isOpen.current = false;
      wipeRestoredKey();
    },
    [],
  );
  const arrive = (aid: string): void => {
    if (isOpen.current) done(aid);
  };
  const take = async (seed: Uint8Array<ArrayBuffer>, isRestored: boolean): Promise<void> => {
    const aid = aidOfKey(await keyOf(seed));
    if (!isOpen.current) {
      seed.fill(0);
      return;
    }
    // The message after the key is wiped, unless its agent is already registered.
    setNote(isRestored ? t('master.gone') : '');
    holdKey({ aid, seed, isRestored });
  };
  const begin = (seed: Uint8Array<ArrayBuffer>, isRestored: boolean): void => {
    take(seed, isRestored).catch(() => setNote(t('master.browser')));
  };
  const finish = ({ seed }: HeldKey): void =>
    act(async () => {
      const aid = await register(seed);
      setNote('');
      wipeKey();
      arrive(aid);
    }, t('new.registered'));
  if (made === undefined)
    return (
      <>
        <p>{t('new.keys.what')}</p>
        {note !== '' && (
          <p class="warn" role="alert">
            {note}
          </p>
        )}
        <div class="acts">
          <button type="button" class="main" onClick={() => begin(newSeed(), false)}>
            {t('new.make')}
          </button>
        </div>
        <details>
          <summary>{t('new.restore')}</summary>
          <p>{t('master.stays')}</p>
          <ReadMaster take={(seed) => begin(seed, true)} />
        </details>
        <details>
          <summary>{t('new.import')}</summary>
          <ImportBundle done={arrive} />
        </details>
        <details onToggle={({ currentTarget }) => setWallet(currentTarget.open)}>
          <summary>{t('new.wallet')}</summary>
          {wantsWallet && <Later load={loadWallet} props={{ done: arrive }} />}
        </details>
      </>
    );
  return (
    <>
      <p class="who">
        <Mark aid={made.aid} />
        <WholeAid aid={made.aid} />
      </p>
      {made.isRestored ? (
        <div class="acts">
          <button type="button" class="main" onClick={() => finish(made)}>
            {t('new.register')}
          </button>
        </div>
      ) : (
        <Prove made={made} proven={() => finish(made)} />
      )}
      <button
        type="button"
        class="plain"
        onClick={() => {
          setNote('');
          wipeKey();
        }}
      >
        {t('master.discard')}
      </button>
    </>
  );
}
