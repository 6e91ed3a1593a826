/** The state of an agent: its record and its service. */
import { useState } from 'preact/hooks';
import type { Output } from '../../lib/api.ts';
import * as format from '../../lib/format.ts';
import { language, t } from '../../lib/i18n.ts';
import { href, returnFromHere } from '../../lib/place.ts';
import { perform } from '../../lib/query.ts';
import { ServiceState } from '../../parts/agents-table.tsx';
import { Section, State, T, When } from '../../parts/basics.tsx';
import { FormDialog } from '../../parts/form.tsx';
import { act, confirm, openDialog } from '../../parts/overlay.tsx';
import { ServiceAddress } from '../../parts/service-address.tsx';
import { Callers } from './callers.tsx';

type Agent = Output<'agentGet'>;

/** Characters of the AID that the user types before an action that cannot be undone. */
export const TAIL_CHARS = 5;
/** Callers to show next to the state of the agent. */
const FEW_CALLERS = 4;

function Bind({ agent: { aid, service_tcp }, close }: { readonly agent: Agent; readonly close: () => void }) {
  const [address, setAddress] = useState(service_tcp);
  return (
    <FormDialog
      title={t('service.bind')}
      verb={t('service.bind')}
      close={close}
      fields={['service_tcp']}
      run={() => perform('agentPatch', { aid, service_tcp: address.trim() })}
      done={t('saved')}
    >
      <ServiceAddress value={address} onInput={setAddress} />
    </FormDialog>
  );
}

/** Opens the dialog that binds another service. */
export function openBind(agent: Agent): void {
  openDialog((close) => <Bind agent={agent} close={close} />);
}

function ProbeResult({ of }: { readonly of: Output<'agentProbe'> }) {
  return (
    <dl class="pairs">
      <dt>{t('service')}</dt>
      <dd>
        <State tone={of.service_tcp_ok === null ? 'off' : of.service_tcp_ok ? 'good' : 'bad'}>
          {of.service_tcp_ok === null
            ? t('service.none')
            : of.service_tcp_ok
              ? t('service.answers')
              : (of.tcp_error ?? t('service.silent'))}
        </State>
        {of.tcp_ms !== undefined && <small> {format.ms(of.tcp_ms, language)}</small>}
      </dd>
      <dt>{t('agent.network')}</dt>
      <dd>
        <State tone={of.dht_ok ? 'good' : 'bad'}>{t(of.dht_ok ? 'probe.found' : 'probe.lost')}</State>
        {of.published_endpoints.map((endpoint) => (
          <code key={endpoint}> {endpoint}</code>
        ))}
      </dd>
    </dl>
  );
}

export function Overview({ agent }: { readonly agent: Agent }) {
  const { aid } = agent;
  const [probe, setProbe] = useState<Output<'agentProbe'>>();
  const look = (): void =>
    act(async () => {
      setProbe(await perform('agentProbe', { aid }));
    });
  const isDown = agent.service_tcp !== '' && !agent.service_tcp_ok;
  return (
    <>
      {isDown && (
        <div class="bar" role="status">
          <span>
            <b>{t('service.down')}</b> <T k="service.down.how" address={<code>{agent.service_tcp}</code>} />
            {agent.service_error !== undefined && <> {agent.service_error}</>}
          </span>
          <span>
            <button type="button" onClick={look}>
              {t('probe.again')}
            </button>{' '}
            <button type="button" onClick={() => openBind(agent)}>
              {t('service.change')}
            </button>
          </span>
        </div>
      )}
      <div class="columns">
        <Section title={t('agent.network')} note={t('agent.record', { n: agent.seq })}>
          <dl class="pairs">
            <dt>{t('state')}</dt>
            <dd>
              <State tone={agent.published ? 'good' : 'warn'}>
                {t(agent.published ? 'agent.published' : 'agent.unpublished')}
              </State>
              {agent.published && agent.replicas > 0 && (
                <span class="soft"> · {t('agent.replicas', { n: agent.replicas })}</span>
              )}
            </dd>
            <dt>{t('agent.last')}</dt>
            <dd>{agent.last_publish_at === null ? t('never') : <When at={agent.last_publish_at} ago />}</dd>
            <dt>{t('agent.until')}</dt>
            <dd>{agent.record_expires_at === null ? '–' : <When at={agent.record_expires_at} />}</dd>
            <dt>{t('key.delegation')}</dt>
            <dd>
              <T k="key.since" when={<When at={agent.delegation.issued_at} />} />
              {' · '}
              {agent.delegation.expires_at === null ? (
                t('key.noend')
              ) : (
                <T k="key.ends" when={<When at={agent.delegation.expires_at} />} />
              )}
            </dd>
            <dt>{t('agent.heartbeat')}</dt>
            <dd>{format.relative(Date.now() - agent.heartbeat_seconds_ago * 1000, Date.now(), language)}</dd>
          </dl>
          <div class="acts">
            <button
              type="button"
              class="main"
              onClick={() => act(() => perform('agentPublish', { aid }), t('published'))}
            >
              {t('publish')}
            </button>
            <button type="button" onClick={look}>
              {t('probe')}
            </button>
            <button type="button" onClick={() => act(() => perform('agentHeartbeat', { aid }), t('saved'))}>
              {t('heartbeat')}
            </button>
          </div>
          {probe !== undefined && <ProbeResult of={probe} />}
        </Section>
        <Callers agent={agent} few={FEW_CALLERS} />
      </div>
      <div class="columns">
        <Section title={t('service')}>
          <dl class="pairs">
            <dt>{t('service.bound')}</dt>
            <dd>
              <ServiceState agent={agent} />
            </dd>
            <dt>{t('agent.offers')}</dt>
            <dd>
              {agent.services.length === 0
                ? t('agent.nothing')
                : agent.services.map((name) => (
                    <span key={name} class="chip">
                      {name}
                    </span>
                  ))}{' '}
              <a href={href(['agents', aid, 'services'])}>{t('change')}</a>
            </dd>
          </dl>
          <div class="acts">
            <button type="button" onClick={() => openBind(agent)}>
              {t(agent.service_tcp === '' ? 'service.bind' : 'service.change')}
            </button>
          </div>
        </Section>
        <Section title={t('danger')}>
          <div class="acts">
            <button
              type="button"
              class="danger"
              onClick={() =>
                confirm({
                  title: t('agent.delete'),
                  text: t('agent.delete.what'),
                  verb: t('agent.delete'),
                  tail: aid.slice(-TAIL_CHARS),
                  run: async () => {
                    const leave = returnFromHere();
                    await perform('agentDelete', { aid });
                    leave(['agents']);
                  },
                })
              }
            >
              {t('agent.delete')}
            </button>
          </div>
        </Section>
      </div>
    </>
  );
}
