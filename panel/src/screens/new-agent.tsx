/** The steps for a new agent: create the keys, save the master key, prove that it is saved, register. */
import { useEffect, useState } from 'preact/hooks';
import { t } from '../lib/i18n.ts';
import { canSign } from '../lib/master.ts';
import { href, keep } from '../lib/place.ts';
import { perform, useQuery } from '../lib/query.ts';
import { Copy, Field, State } from '../parts/basics.tsx';
import { act } from '../parts/overlay.tsx';
import { MakeKeys } from './make-keys.tsx';

const LOOK_MS = 2_000;

/** Shows how far publishing is. */
function Published({ aid }: { readonly aid: string }) {
  const agent = useQuery('agentGet', { aid }, LOOK_MS);
  const status = useQuery('status', {}, LOOK_MS);
  if (agent.value?.published === true) return <State tone="good">{t('new.published')}</State>;
  return <State tone="warn">{t(status.value?.network_ready === true ? 'new.publishing' : 'new.nonetwork')}</State>;
}

function Bind({ aid, done }: { readonly aid: string; readonly done: () => void }) {
  const [address, setAddress] = useState('');
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        act(async () => {
          await perform('agentPatch', { aid, service_tcp: address.trim() });
          done();
        }, t('saved'));
      }}
    >
      <p>{t('service.bind.how')}</p>
      <Field label={t('service.address')} value={address} onInput={setAddress} placeholder="127.0.0.1:8080" />
      <div class="acts">
        <button type="submit" class="main" disabled={address.trim() === ''}>
          {t('service.bind')}
        </button>
        <button type="button" onClick={done}>
          {t('skip.step')}
        </button>
      </div>
    </form>
  );
}

function Offer({ aid, done }: { readonly aid: string; readonly done: () => void }) {
  const [name, setName] = useState('');
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        act(async () => {
          await perform('serviceRegister', { aid, services: [name.trim()] });
          done();
        }, t('saved'));
      }}
    >
      <Field label={t('services.names')} value={name} onInput={setName} placeholder="lang.translate" />
      <div class="acts">
        <button type="submit" class="main" disabled={name.trim() === ''}>
          {t('services.offer')}
        </button>
        <button type="button" onClick={done}>
          {t('skip.step')}
        </button>
      </div>
    </form>
  );
}

function Ready({ aid }: { readonly aid: string }) {
  const mcp = `${location.origin}/mcp`;
  return (
    <>
      <p>
        <Published aid={aid} />
      </p>
      <p class="soft">{t('use.mcp')}</p>
      <pre>{mcp}</pre>
      <div class="acts">
        <Copy text={mcp} />
        <a class="button" href={href(['agents', aid])}>
          {t('new.open')}
        </a>
      </div>
    </>
  );
}

const STEPS = ['keys', 'service', 'offer', 'ready'] as const;

interface Props {
  readonly query: Readonly<Record<string, string>>;
}

/** The address contains the current step, so that a reload continues there. */
export function NewAgent({ query: { aid = '', step: named = '' } }: Props) {
  const step =
    aid === ''
      ? 0
      : Math.max(
          1,
          STEPS.findIndex((name) => name === named),
        );
  useEffect(() => document.querySelector<HTMLElement>('.steps > li[aria-current] h2')?.focus(), [step]);
  if (!canSign())
    return (
      <>
        <h1>{t('agent.new')}</h1>
        <p class="lead">{t('master.insecure')}</p>
        <pre>svc register --master-key</pre>
      </>
    );
  const next = (): void => keep({ step: STEPS[step + 1] ?? 'ready' });
  return (
    <>
      <h1>{t('agent.new')}</h1>
      <p class="lead">{t('new.lead')}</p>
      <ol class="steps">
        {STEPS.map((name, i) => (
          <li key={name} class={i < step ? 'done' : ''} {...(i === step ? { 'aria-current': 'step' } : {})}>
            <h2 tabIndex={-1}>{t(`new.${name}`)}</h2>
            {i === step && name === 'keys' && <MakeKeys done={(made) => keep({ aid: made, step: STEPS[1] })} />}
            {i === step && name === 'service' && <Bind aid={aid} done={next} />}
            {i === step && name === 'offer' && <Offer aid={aid} done={next} />}
            {i === step && name === 'ready' && <Ready aid={aid} />}
          </li>
        ))}
      </ol>
    </>
  );
}
