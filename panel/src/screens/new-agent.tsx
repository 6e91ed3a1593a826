/** The steps for a new agent: create the keys, save the master key, prove that it is saved, register. */
import { useEffect, useState } from 'preact/hooks';
import { setLabel } from '../lib/book.ts';
import { t } from '../lib/i18n.ts';
import { canSign } from '../lib/master.ts';
import { href, keep } from '../lib/place.ts';
import { perform, useQuery } from '../lib/query.ts';
import { Mark, WholeAid } from '../parts/agent.tsx';
import { Copy, Field, State } from '../parts/basics.tsx';
import { Form } from '../parts/form.tsx';
import { Later } from '../parts/later.tsx';
import { act, openDialog } from '../parts/overlay.tsx';
import { ServiceAddress } from '../parts/service-address.tsx';
import { MakeKeys } from './make-keys.tsx';

const LOOK_MS = 2_000;

const loadQr = async () => (await import('./agent/qr-dialog.tsx')).QrDialog;

/** Shows how far publishing is. */
function Published({ aid }: { readonly aid: string }) {
  const agent = useQuery('agentGet', { aid }, LOOK_MS);
  const status = useQuery('status', {}, LOOK_MS);
  if (agent.value?.published === true) return <State tone="good">{t('new.published')}</State>;
  return <State tone="warn">{t(status.value?.network_ready === true ? 'new.publishing' : 'new.nonetwork')}</State>;
}

interface StepProps {
  readonly aid: string;
  readonly done: () => void;
}

/** The button that skips a step. */
function skip(done: () => void) {
  return (
    <button type="button" onClick={done}>
      {t('skip.step')}
    </button>
  );
}

function Label({ aid, done }: StepProps) {
  const [label, setText] = useState('');
  return (
    <Form
      fields={['aliases']}
      verb={t('save')}
      isReady={label.trim() !== ''}
      run={() => setLabel(aid, label.trim())}
      close={done}
      more={skip(done)}
    >
      <p>{t('new.label.what')}</p>
      <Field label={t('new.label.text')} name="aliases" value={label} onInput={setText} />
    </Form>
  );
}

function Bind({ aid, done }: StepProps) {
  const [address, setAddress] = useState('');
  return (
    <Form
      fields={['service_tcp']}
      verb={t('service.bind')}
      isReady={address.trim() !== ''}
      run={() => perform('agentPatch', { aid, service_tcp: address.trim() })}
      done={t('saved')}
      close={done}
      more={skip(done)}
    >
      <ServiceAddress value={address} onInput={setAddress} />
    </Form>
  );
}

function Offer({ aid, done }: StepProps) {
  const [name, setName] = useState('');
  return (
    <Form
      fields={['services']}
      verb={t('services.offer')}
      isReady={name.trim() !== ''}
      run={() => perform('serviceRegister', { aid, services: [name.trim()] })}
      done={t('saved')}
      close={done}
      more={skip(done)}
    >
      <Field label={t('services.names')} name="services" value={name} onInput={setName} placeholder="lang.translate" />
    </Form>
  );
}

function Ready({ aid }: { readonly aid: string }) {
  const mcp = `${location.origin}/mcp`;
  return (
    <>
      <p>{t('new.handover')}</p>
      <p class="handover">
        <Mark aid={aid} /> <WholeAid aid={aid} />
      </p>
      <div class="acts close">
        <CopyAid aid={aid} />
        <button type="button" onClick={() => openDialog((close) => <Later load={loadQr} props={{ aid, close }} />)}>
          {t('qr.show')}
        </button>
        <a class="button" href={href(['agents', aid])}>
          {t('new.open')}
        </a>
      </div>
      <p class="above">
        <Published aid={aid} />
      </p>
      <p class="soft">{t('use.mcp')}</p>
      <pre>{mcp}</pre>
      <div class="acts close">
        <Copy text={mcp} label={t('new.mcp.copy')} />
      </div>
    </>
  );
}

function CopyAid({ aid }: { readonly aid: string }) {
  return (
    <button type="button" class="main" onClick={() => act(() => navigator.clipboard.writeText(aid), t('copied'))}>
      {t('aid.copy')}
    </button>
  );
}

const STEPS = ['keys', 'label', 'service', 'offer', 'ready'] as const;

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
            {i === step && name === 'label' && <Label aid={aid} done={next} />}
            {i === step && name === 'service' && <Bind aid={aid} done={next} />}
            {i === step && name === 'offer' && <Offer aid={aid} done={next} />}
            {i === step && name === 'ready' && <Ready aid={aid} />}
          </li>
        ))}
      </ol>
    </>
  );
}
