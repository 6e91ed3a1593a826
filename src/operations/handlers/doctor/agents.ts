/** Checks of the agents: findable, renewed, service running. */

import { pluralize, relativeTime } from '../../../foundation/display-text.ts';
import { DELEGATION_WARN_MS } from '../../../foundation/domain/agents.ts';
import { type Finding, findingsOf } from '../../../foundation/domain/findings.ts';
import type { Aid } from '../../../foundation/identity/aid.ts';
import { mergeNames, shortAid } from '../../../foundation/labels.ts';
import type { Examination, OwnAnswer } from './examination.ts';

/** Agents that are checked one by one. */
const MAX_AGENTS = 20;
/** Nodes that should store a record. */
const FEW_REPLICAS = 3;

type Agent = OwnAnswer<'agentGet'>;
type Status = OwnAnswer<'status'>;
type Probe = OwnAnswer<'agentProbe'>;
type Hook = OwnAnswer<'hookList'>['hooks'][number];

const publication = findingsOf('publication');

function examineDelegation(name: string, { delegation }: Agent, now: number): Finding[] {
  const { expires_at } = delegation;
  if (expires_at === null || Date.parse(expires_at) > now + DELEGATION_WARN_MS) return [];
  const hint = 'Issue a new delegation with the master key, and register the agent with it.';
  const values = { name, expires_at };
  const when = relativeTime(expires_at, now);
  return Date.parse(expires_at) < now
    ? [publication.fail(`the delegation of ${name} expired ${when}`, hint, { code: 'delegation_expired', values })]
    : [publication.warn(`the delegation of ${name} expires ${when}`, hint, { code: 'delegation_expires', values })];
}

/** Is the record published, and is it current? */
function examinePublication(name: string, agent: Agent, probe: Probe, status: Status, now: number): Finding {
  const { aid, last_publish_at, published, replicas } = agent;
  const publish = `svc agents publish ${aid}`;
  const again = `Publish it: ${publish}`;
  if (last_publish_at === null && status.auto_publish && !status.network_ready)
    return publication.warn(
      `${name} is not published: this node cannot reach any other node`,
      'svcd publishes it as soon as another node is reachable.',
      { code: 'cannot_publish_yet', values: { name } },
    );
  if (last_publish_at === null)
    return publication.warn(
      `${name} was never published`,
      status.auto_publish ? again : `auto_publish is off. ${again}`,
      { code: 'never_published', values: { name, publish } },
    );
  const age = `published ${relativeTime(last_publish_at, now)}`;
  const values = { name, publish, published_at: last_publish_at, n: Math.max(1, replicas) };
  if (!published)
    return publication.fail(`${name} cannot be found: it was ${age}, and the record has expired`, again, {
      code: 'record_expired',
      values,
    });
  if (probe.published_seq !== null && probe.published_seq > agent.seq)
    return publication.fail(
      `${name} also runs on another node: the network has seq ${probe.published_seq}, this node published ${agent.seq}`,
      `Delete the agent on the other node, or take it over here: ${publish}`,
      { code: 'runs_elsewhere', values: { ...values, network: probe.published_seq, own: agent.seq } },
    );
  if (!probe.dht_ok)
    return publication.fail(`${name} was ${age}, but the network does not find it at this node`, again, {
      code: 'not_found',
      values,
    });
  const keepers = replicas > 0 ? pluralize(replicas, 'node') : 'this node';
  return replicas < FEW_REPLICAS && status.dht_peers >= FEW_REPLICAS
    ? publication.warn(`${name} was ${age}, but only ${keepers} stored it`, again, { code: 'few_replicas', values })
    : publication.pass(`${name} was ${age} and is stored by ${keepers}`, { code: 'published', values });
}

function examineService(name: string, agent: Agent, probe: Probe, hooks: readonly Hook[]): Finding[] {
  const { aid, service_tcp } = agent;
  // Without a service, a program can answer calls.
  if (service_tcp === '' && hooks.some(({ kind, paused }) => kind === 'call' && !paused)) return [];
  return [examineBinding(name, aid, service_tcp, probe)];
}

function examineBinding(name: string, aid: Aid, service_tcp: string, probe: Probe): Finding {
  const service = findingsOf('service');
  if (service_tcp === '')
    return service.info(`${name} has no service bound: it can call, but other agents cannot call it`, undefined, {
      code: 'no_service',
      values: { name },
    });
  const values = { name, address: service_tcp };
  if (probe.service_tcp_ok === true)
    return service.pass(`the service of ${name} answers at ${service_tcp}`, { code: 'service_answers', values });
  const why = probe.tcp_error === undefined ? '' : `: ${probe.tcp_error}`;
  const bind = `svc inbound bind --addr host:port --as ${aid}`;
  return service.fail(
    `the service of ${name} does not answer at ${service_tcp}${why}`,
    `Start the service, or bind another one: ${bind}`,
    { code: 'service_silent', values: { ...values, reason: why, bind } },
  );
}

async function examineAgent(
  { ask, context, now }: Examination,
  { aid, name }: { readonly aid: Aid; readonly name: string },
  status: Status,
): Promise<Finding[]> {
  const probe = await ask.agentProbe({ aid }, context);
  // Read after the probe: a record that this node publishes meanwhile must not look like one of another node.
  const agent = await ask.agentGet({ aid }, context);
  const { hooks: all } = await ask.hookList({}, context);
  const hooks = all.filter((one) => one.aid === aid);
  return [
    ...examineDelegation(name, agent, now),
    examinePublication(name, agent, probe, status, now),
    ...examineService(name, agent, probe, hooks),
  ];
}

export async function examineAgents(examination: Examination, status: Status): Promise<readonly Finding[]> {
  const { agents, next_cursor } = await examination.ask.agentsList({ limit: MAX_AGENTS }, examination.context);
  if (agents.length === 0)
    return [publication.info('no agent is registered', 'Create one with "svc register".', { code: 'no_agents' })];
  const names = mergeNames(await examination.ask.addressBookGet({}, examination.context), agents);
  const findings = await Promise.all(
    agents.map(({ aid }) => examineAgent(examination, { aid, name: names.get(aid) ?? shortAid(aid) }, status)),
  );
  const more =
    next_cursor === undefined
      ? []
      : [
          publication.info(`only the first ${MAX_AGENTS} agents were checked`, undefined, {
            code: 'agents_not_checked',
            values: { n: MAX_AGENTS },
          }),
        ];
  return [...findings.flat(), ...more];
}
