/** `svc agents`: the agents of this daemon. */
import { pluralize, relativeTime } from '../../../foundation/display-text.ts';
import type { AnswerOf, SvcClient } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import type { Names } from '../names.ts';
import { required } from '../options.ts';
import { storedText } from '../publication.ts';
import { formatFields, formatTable } from '../text.ts';
import { WALLET_KINDS } from '../wallet-options.ts';
import type { WrappedText } from '../wrapped-text.ts';
import { aclCommands } from './acl.ts';
import { ownCardCommands } from './cards.ts';
import { WITHDRAWN_OUTPUT } from './directory.ts';
import { addRegister } from './identity.ts';
import { moveCommands } from './move.ts';
import { PUBLISHED_OUTPUT, profileCommands } from './profile.ts';

type Agent = AnswerOf<'agentGet'>;
type Probe = AnswerOf<'agentProbe'>;

function describe(agent: Agent): WrappedText {
  const now = Date.now();
  const { service_tcp, last_publish_at: publishedAt, next_republish_estimate: renewal } = agent;
  const { expires_at } = agent.delegation;
  const published = publishedAt && `${relativeTime(publishedAt, now)}, seq ${agent.seq}`;
  return formatFields({
    aid: agent.aid,
    name: agent.name,
    status: agent.status,
    service: service_tcp === '' ? 'none bound' : `${service_tcp} (${agent.service_tcp_ok ? 'answers' : 'responds'})`,
    published: published === null ? 'does not respond' : `${published}, ${storedText(agent.replicas)}`,
    // An overdue renewal is shown as due.
    'next renewal': renewal !== null && Date.parse(renewal) <= now ? 'due now' : renewal && relativeTime(renewal, now),
    heartbeat: relativeTime(new Date(now - agent.heartbeat_seconds_ago * 1000).toISOString(), now),
    services: agent.services.join(', '),
    'key valid': expires_at && `until ${expires_at} (${relativeTime(expires_at, now)})`,
  });
}

/** The bound service, and whether it responds. */
function boundText({ service_tcp, service_tcp_ok }: Agent): string {
  if (service_tcp === '') return '-';
  return service_tcp_ok ? service_tcp : `${service_tcp} (does not respond)`;
}

/** All agents, page by page. */
export async function allAgents(client: SvcClient): Promise<Agent[]> {
  const agents: Agent[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.agentsList({ cursor });
    agents.push(...page.agents);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return agents;
}

/** The list, also shown by `svc agents` without a subcommand. */
const LIST = {
  run: async ({ client }: CliContext) => ({ agents: await allAgents(client) }),
  aids: 'told' as const,
  watch: true as const,
  text: ({ agents }: { readonly agents: readonly Agent[] }, _: unknown, names: Names) =>
    formatTable(
      ['AID', 'NAME', 'STATUS', 'SERVICE', 'OFFERS'],
      agents.map((a) => [
        names.short(a.aid),
        names.nameOf(a.aid) ?? a.name,
        a.status,
        boundText(a),
        a.services.join(', '),
      ]),
      'No agent is registered here. Create one with "svc register".',
    ),
  quiet: ({ agents }: { readonly agents: readonly Agent[] }) => agents.map(({ aid }) => aid).join('\n'),
};

function probeText(p: Probe, service: string): WrappedText {
  const failure = p.tcp_error === undefined ? '' : `: ${p.tcp_error}`;
  const answers = p.service_tcp_ok === true ? `responds in ${p.tcp_ms} ms` : `does not respond${failure}`;
  return formatFields({
    service: p.service_tcp_ok === null ? 'none bound' : `${service} ${answers}`,
    published: p.dht_ok ? p.published_endpoints.join(', ') : 'no',
    seq: p.published_seq,
  });
}

function topicCommands(agents: CommandGroup): void {
  const topic = agents.group('topic', 'the services that an agent offers', [
    'svc agents topic add aid1… lang.translate lang.detect',
    'svc agents topic del aid1… lang.detect',
  ]);
  topic.call('list <aid>', 'show the services that an agent offers', {
    operation: 'servicesList',
    own: true,
    text: ({ services }) =>
      formatTable(
        ['SERVICE', 'NAME', 'BRIEF', 'TAGS', 'STORED AT', 'META'],
        services.map(({ service, name, brief, tags, replicas, meta }) => [
          ...[service, name, brief, tags.join(' '), pluralize(replicas, 'node')],
          Object.keys(meta).length === 0 ? '' : JSON.stringify(meta),
        ]),
        'No services.',
      ),
    quiet: ({ services }) => services.map(({ service }) => service).join('\n'),
  });
  topic.call('add <aid> <service...>', 'offer services', {
    examples: ['svc agents topic add aid1… lang.translate lang.detect'],
    operation: 'serviceRegister',
    progress: 'Publishing',
    input: ({ aid, service: services }) => ({ aid, services }),
    ...PUBLISHED_OUTPUT,
  });
  topic.call('del <aid> <service>', 'stop offering a service', {
    examples: ['svc agents topic del aid1… lang.detect'],
    operation: 'serviceUnregister',
    ...WITHDRAWN_OUTPUT,
  });
}

export function agentCommands(svc: CommandGroup): void {
  const agents = svc.group(
    'agents',
    'the agents of this daemon; lists them without a subcommand',
    ['svc agents', 'svc agents new --service-tcp 127.0.0.1:8080', 'svc agents get aid1…'],
    LIST,
  );
  addRegister(agents, 'agents new');
  for (const kind of WALLET_KINDS) addRegister(agents, `agents ${kind.command}`, kind);
  agents.run('list', 'list the agents', { examples: ['svc agents list --quiet'], ...LIST });
  agents.call('get <aid>', 'show one agent', {
    operation: 'agentGet',
    text: describe,
    quiet: ({ status }) => status,
  });
  agents.call('update <aid>', 'bind another service', {
    examples: ['svc agents update aid1… --service-tcp 127.0.0.1:9000', `svc agents update aid1… --service-tcp ''`],
    options: {
      '--service-tcp <address>': required('host:port, http://host:port, https://host:port, or "" to unbind'),
    },
    operation: 'agentPatch',
    text: describe,
    quiet: ({ service_tcp }) => service_tcp,
  });
  agents.call('del <aid>', 'unregister an agent and delete its operational key here', {
    examples: ['svc agents del aid1…', 'svc agents del aid1… -y   # in a script'],
    confirmation: ({ aid }) => ({
      question: `Delete the agent ${aid} on this node, with its key, notes, chats, groups and access lists?`,
      consequence: `To use this identity again you need its master key (svc register --master-key <file>). To keep its data, export it first (svc agents export ${aid} -o <file>).`,
    }),
    operation: 'agentDelete',
    text: (_, { aid }) => `${aid} is unregistered. Its published records expire.`,
    quiet: (_, { aid }) => aid,
  });
  agents.call('publish <aid>', 'publish the endpoint record now', {
    operation: 'agentPublish',
    progress: 'Publishing',
    text: ({ seq, replicas }) => `Published with seq ${seq}, stored at ${pluralize(replicas, 'node')}.`,
    quiet: ({ seq }) => String(seq),
  });
  agents.call('heartbeat <aid>', 'report that the agent is in use', {
    operation: 'agentHeartbeat',
    text: ({ at }) => `OK, ${at}`,
    quiet: ({ at }) => at,
  });
  agents.run('probe <aid>', 'check the bound service and the published record', {
    progress: 'Probing',
    run: ({ client }, { aid }) => Promise.all([client.agentProbe({ aid }), client.agentGet({ aid })]),
    json: ([probe]) => probe,
    text: ([probe, { service_tcp }]) => probeText(probe, service_tcp),
    quiet: ([{ dht_ok }]) => (dht_ok ? 'ok' : 'not published'),
  });
  moveCommands(agents);
  aclCommands(agents);
  profileCommands(agents);
  ownCardCommands(agents);
  topicCommands(agents);
}
