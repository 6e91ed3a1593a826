/** The state of the node: addresses, reachability, clock, storage. */
import * as format from '../../lib/format.ts';
import { language, t } from '../../lib/i18n.ts';
import { natText } from '../../lib/nat.ts';
import { useQuery } from '../../lib/query.ts';
import { WholeAid } from '../../parts/agent.tsx';
import { Answer, Bytes, Copy, Section, State, T, When } from '../../parts/basics.tsx';
import { Restart } from './restart.tsx';
import { WayOut } from './way-out.tsx';

const STATE_MS = 20_000;

function Self() {
  const status = useQuery('status', {}, STATE_MS);
  return (
    <Section title={t('node.self')}>
      <Answer of={status}>
        {(node) => (
          <dl class="pairs">
            <dt>{t('aid')}</dt>
            <dd>
              <WholeAid aid={node.node_aid} /> <Copy text={node.node_aid} />
            </dd>
            <dt>{t('node.version')}</dt>
            <dd>
              {node.version} · {t('up', { span: format.span(node.uptime_s, language) })}
            </dd>
            <dt>{t('node.record')}</dt>
            <dd>
              <State tone={node.node_published ? 'good' : 'warn'}>
                {t(node.node_published ? 'agent.published' : 'agent.unpublished')}
              </State>
              {node.node_published && node.node_next_republish_estimate !== null && (
                <small>
                  {' '}
                  <T k="agent.renews" when={<When at={node.node_next_republish_estimate} ago />} />
                </small>
              )}
            </dd>
            <dt>{t('node.listens')}</dt>
            <dd>
              {[...node.listen_addrs, ...node.lent_ports.listen_addrs.map((address) => `${address}/tcp`)].map(
                (address) => (
                  <code key={address}>{address} </code>
                ),
              )}
            </dd>
            <dt>{t('tunnel.bytes')}</dt>
            <dd>
              ↑ <Bytes count={node.bytes_up} /> ↓ <Bytes count={node.bytes_down} />
            </dd>
            <dt>{t('node.data')}</dt>
            <dd>
              <code>{node.data_dir}</code>
            </dd>
          </dl>
        )}
      </Answer>
      <div class="acts close">
        <Restart />
      </div>
    </Section>
  );
}

function Reach() {
  const check = useQuery('netcheck', {}, STATE_MS);
  return (
    <Section title={t('node.reach')}>
      <Answer of={check}>
        {(of) => (
          <dl class="pairs">
            <dt>{t('node.exit')}</dt>
            <dd>
              <WayOut exit={of.exit} />
            </dd>
            <dt>{t('node.reached')}</dt>
            <dd>
              <State tone={of.is_reached === null ? 'off' : of.is_reached ? 'good' : 'warn'}>
                {t(of.is_reached === null ? 'unknown' : of.is_reached ? 'yes' : 'no')}
              </State>
            </dd>
            <dt>{t('fact.nat')}</dt>
            <dd>
              {natText(of.nat_type)} <small class="below">{t(`natmap.${of.nat_mapping}`)}</small>
            </dd>
            <dt>{t('node.addresses')}</dt>
            <dd>
              {of.addresses.length === 0 && '–'}
              {of.addresses.map(({ address, source, published }) => (
                <div key={address}>
                  <code>{address}</code> <small>{t(`source.${source}`)}</small>{' '}
                  {published && <small>· {t('agent.published')}</small>}
                </div>
              ))}
            </dd>
            <dt>{t('fact.mapping')}</dt>
            <dd>
              {t(`mapping.${of.port_mapping}`)}
              {of.mapped_ports.map(({ protocol, external, expires_at }) => (
                <div key={external}>
                  <code>{external}</code> <small>{protocol} · </small>
                  <When at={expires_at} ago />
                </div>
              ))}
            </dd>
            <dt>{t('node.helpers')}</dt>
            <dd>
              {of.helpers.length === 0 && '–'}
              {of.helpers.map(({ address, rtt_ms }) => (
                <div key={address}>
                  <code>{address}</code> {rtt_ms !== null && format.ms(rtt_ms, language)}
                </div>
              ))}
            </dd>
            <dt>{t('node.relays')}</dt>
            <dd>{t(of.relays_allowed ? 'yes' : 'no')}</dd>
            <dt>{t('node.clock')}</dt>
            <dd>{of.clock.offset_s === null ? t('unknown') : `${of.clock.offset_s.toFixed(1)} s`}</dd>
          </dl>
        )}
      </Answer>
    </Section>
  );
}

export function StateOfNode() {
  return (
    <div class="columns">
      <Self />
      <Reach />
    </div>
  );
}
