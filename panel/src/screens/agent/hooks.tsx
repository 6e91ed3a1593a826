/** The hooks of an agent: programs that start when something arrives, and what they handled. */
import { useState } from 'preact/hooks';
import { DELIVERY_STATES, HOOK_KINDS } from '../../../../src/foundation/domain/hooks.ts';
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { here, keep } from '../../lib/place.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Who } from '../../parts/agent.tsx';
import { AidField } from '../../parts/aid-field.tsx';
import { Answer, Copy, Empty, Section, State, UntrustedLines, UntrustedText, When } from '../../parts/basics.tsx';
import { CloseButton } from '../../parts/close-button.tsx';
import { act, confirm, Dialog, openDialog } from '../../parts/overlay.tsx';
import { type Column, Table } from '../../parts/table.tsx';

type Hook = Output<'hookList'>['hooks'][number];
type Delivery = Output<'hookDeliveries'>['deliveries'][number];

const HOOKS_MS = 10_000;
/** Deliveries that are shown. */
const SHOWN = 100;

/** Senders of a hook. */
function From({ hook: { from, only_known } }: { readonly hook: Hook }) {
  if (from.length === 0) return <>{t(only_known ? 'hook.known' : 'hook.all')}</>;
  return (
    <>
      {from.map((aid) => (
        <Who key={aid} aid={aid} />
      ))}
    </>
  );
}

function HookState({ hook: { paused, dead, skipped } }: { readonly hook: Hook }) {
  if (paused) return <State tone="off">{t('hook.paused')}</State>;
  if (dead + skipped === 0) return <State tone="good">{t('hook.active')}</State>;
  return <State tone="bad">{t(dead > 0 ? 'hook.failed' : 'hook.skipped', { n: dead > 0 ? dead : skipped })}</State>;
}

function remove({ id }: Hook): void {
  confirm({
    title: t('hook.remove'),
    text: t('hook.remove.what'),
    verb: t('hook.remove'),
    run: () => perform('hookRemove', { id }),
  });
}

const hookColumns = (chosen: string): readonly Column<Hook>[] => [
  {
    title: t('hook.on'),
    cell: (hook) => (
      <>
        <b>{t(`hook.${hook.kind}`)}</b>
        <small class="below">
          <code>
            <UntrustedText text={hook.command.join(' ')} />
          </code>
        </small>
      </>
    ),
  },
  { title: t('hook.from'), cell: (hook) => <From hook={hook} /> },
  { title: t('hook.waiting'), isNumber: true, cell: ({ waiting, running }) => waiting + running },
  { title: t('state'), cell: (hook) => <HookState hook={hook} /> },
  {
    title: '',
    cell: (hook) => (
      <span class="acts">
        <button
          type="button"
          aria-pressed={hook.id === chosen}
          onClick={() => keep({ hook: hook.id === chosen ? '' : hook.id })}
        >
          {t('hook.deliveries')}
        </button>
        <button
          type="button"
          onClick={() => act(() => perform('hookPatch', { id: hook.id, paused: !hook.paused }), t('saved'))}
        >
          {t(hook.paused ? 'hook.resume' : 'hook.pause')}
        </button>
        <button type="button" class="danger" onClick={() => remove(hook)}>
          {t('remove')}
        </button>
      </span>
    ),
  },
];

/** The output of the last run, which a program wrote about a text of others. */
function OutputDialog({
  id,
  delivery,
  close,
}: {
  readonly id: string;
  readonly delivery: number;
  readonly close: () => void;
}) {
  const known = useQuery('hookDelivery', { id, delivery });
  return (
    <Dialog title={t('hook.output')} close={close}>
      <Answer of={known}>
        {({ output }) =>
          output === '' ? (
            <Empty text={t('hook.output.none')} />
          ) : (
            <pre>
              <UntrustedLines text={output} />
            </pre>
          )
        }
      </Answer>
      <div class="acts">
        <CloseButton close={close} />
      </div>
    </Dialog>
  );
}

const TONES = { waiting: 'warn', running: 'warn', done: 'good', gone: 'off', dead: 'bad' } as const;

const deliveryColumns = ({ id, kind }: Hook): readonly Column<Delivery>[] => [
  { title: t('hook.from'), cell: ({ from }) => <Who aid={from} /> },
  {
    title: t('state'),
    cell: ({ state, problem, exit_code }) => (
      <>
        <State tone={TONES[state]}>{t(`delivery.${state}`)}</State>
        {problem !== undefined && (
          <small class="below" lang="en">
            <UntrustedText text={problem} />
          </small>
        )}
        {problem === undefined && exit_code !== null && (
          <small class="below">{t('hook.exit', { code: exit_code })}</small>
        )}
      </>
    ),
  },
  { title: t('hook.starts'), isNumber: true, cell: ({ attempts }) => attempts },
  { title: t('hook.arrived'), cell: ({ at }) => <When at={at} ago /> },
  {
    title: '',
    cell: ({ id: delivery, state }) => (
      <span class="acts">
        {state !== 'waiting' && (
          <button
            type="button"
            onClick={() => openDialog((close) => <OutputDialog id={id} delivery={delivery} close={close} />)}
          >
            {t('hook.output')}
          </button>
        )}
        {state === 'dead' && kind !== 'call' && (
          <button
            type="button"
            class="main"
            onClick={() => act(() => perform('hookRetry', { id, delivery }), t('saved'))}
          >
            {t('again')}
          </button>
        )}
        {state !== 'running' && (
          <button
            type="button"
            class="danger"
            onClick={() =>
              confirm({
                title: t('hook.drop'),
                text: t('hook.drop.what'),
                verb: t('hook.drop'),
                run: () => perform('hookDrop', { id, delivery }),
              })
            }
          >
            {t('remove')}
          </button>
        )}
      </span>
    ),
  },
];

function Deliveries({ hook }: { readonly hook: Hook }) {
  const { show } = here().query;
  const state = DELIVERY_STATES.find((one) => one === show);
  const known = useQuery(
    'hookDeliveries',
    { id: hook.id, limit: SHOWN, ...(state === undefined ? {} : { state }) },
    HOOKS_MS,
  );
  const filter = (
    <select aria-label={t('show')} value={state ?? ''} onChange={(event) => keep({ show: event.currentTarget.value })}>
      <option value="">{t('show.all')}</option>
      {DELIVERY_STATES.map((one) => (
        <option key={one} value={one}>
          {t(`delivery.${one}`)}
        </option>
      ))}
    </select>
  );
  return (
    <Section title={t('hook.deliveries')} note={filter}>
      <Answer of={known}>
        {({ deliveries, has_more }) =>
          deliveries.length === 0 ? (
            <Empty text={t('hook.deliveries.none')} />
          ) : (
            <>
              <Table
                label={t('hook.deliveries')}
                rows={deliveries}
                columns={deliveryColumns(hook)}
                keyOf={({ id }) => String(id)}
              />
              {has_more && <p class="soft">{t('hook.more', { n: SHOWN })}</p>}
            </>
          )
        }
      </Answer>
    </Section>
  );
}

/** The command that adds a hook. Only the user of the daemon may run it, so no page can. */
function Add({ aid }: { readonly aid: string }) {
  const [kind, setKind] = useState<string>('note');
  const [from, setFrom] = useState('');
  const [isKnown, setKnown] = useState(true);
  const sender = /^\w+$/.test(from) ? ` --from ${from}` : isKnown ? ' --known' : '';
  const command = `svc on ${kind} --as ${aid}${sender} -- ./program`;
  return (
    <Section title={t('hook.add')} note={<Copy text={command} />}>
      <p class="soft">{t('hook.add.what')}</p>
      <div class="one">
        <label class="field">
          <span>{t('hook.on')}</span>
          <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
            {HOOK_KINDS.map((one) => (
              <option key={one} value={one}>
                {t(`hook.${one}`)}
              </option>
            ))}
          </select>
        </label>
        <AidField label={t('hook.only')} value={from} onInput={setFrom} />
        <label>
          <input
            type="checkbox"
            checked={isKnown}
            disabled={from !== ''}
            onChange={(event) => setKnown(event.currentTarget.checked)}
          />{' '}
          {t('hook.known')}
        </label>
      </div>
      <pre>{command}</pre>
    </Section>
  );
}

export function HooksPage({ aid }: { readonly aid: string }) {
  const known = useQuery('hookList', {}, HOOKS_MS);
  const { hook: chosen = '' } = here().query;
  return (
    <>
      <Section title={t('tab.hooks')}>
        <p class="soft">{t('hook.what')}</p>
        <Answer of={known}>
          {({ hooks }) => {
            const own = hooks.filter((one) => one.aid === aid);
            const shown = own.find(({ id }) => id === chosen);
            if (own.length === 0) return <Empty text={t('hook.none')} />;
            return (
              <>
                <Table label={t('tab.hooks')} rows={own} columns={hookColumns(chosen)} keyOf={({ id }) => id} />
                {shown !== undefined && <Deliveries key={shown.id} hook={shown} />}
              </>
            );
          }}
        </Answer>
      </Section>
      <Add aid={aid} />
    </>
  );
}
