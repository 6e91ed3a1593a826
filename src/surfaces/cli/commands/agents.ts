/** `svc agents`: the agents of this daemon. */
import type { Command } from 'commander';
import type { CliContext, ContextOf, SvcClient } from '../context.ts';
import { examples } from '../examples.ts';
import { counted, formatFields, formatTable, relativeTime } from '../text.ts';
import { WALLETS } from '../wallet-options.ts';
import { aclCommands } from './acl.ts';
import { addRegister } from './identity.ts';
import { moveCommands } from './move.ts';
import { profileCommands } from './profile.ts';

type Agent = Awaited<ReturnType<SvcClient['agentGet']>>;

/** When a record is renewed; what is due is not long ago, but about to come. */
function renewalText(estimate: string, now: number): string {
  return Date.parse(estimate) <= now ? 'due now' : relativeTime(estimate, now);
}

function describe(agent: Agent): string {
  return formatFields([
    ['aid', agent.aid],
    ['name', agent.name],
    ['status', agent.status],
    [
      'service',
      agent.service_tcp === ''
        ? 'none bound'
        : `${agent.service_tcp} (${agent.service_tcp_ok ? 'answers' : 'does not answer'})`,
    ],
    [
      'published',
      agent.last_publish_at === null
        ? 'not yet'
        : `${relativeTime(agent.last_publish_at, Date.now())}, seq ${agent.seq}, kept by ${counted(agent.replicas, 'node')}`,
    ],
    [
      'next renewal',
      agent.next_republish_estimate === null ? undefined : renewalText(agent.next_republish_estimate, Date.now()),
    ],
    ['heartbeat', agent.heartbeat_seconds_ago === null ? 'none' : `${agent.heartbeat_seconds_ago} s ago`],
    ['services', agent.services.join(', ')],
    [
      'key valid',
      agent.delegation.expires_at === null
        ? undefined
        : `until ${agent.delegation.expires_at} (${relativeTime(agent.delegation.expires_at, Date.now())})`,
    ],
  ]);
}

/** Every agent, page by page. */
async function allAgents(client: SvcClient): Promise<Agent[]> {
  const agents: Agent[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.agentsList(cursor === undefined ? {} : { cursor });
    agents.push(...page.agents);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return agents;
}

async function list(context: CliContext): Promise<void> {
  const agents = await allAgents(context.client);
  context.show(
    { agents },
    {
      text: () =>
        agents.length === 0
          ? 'No agent is registered here. Make one with "svc register".'
          : formatTable(
              ['AID', 'NAME', 'STATUS', 'SERVICE', 'SERVICES'],
              agents.map((a) => [
                a.aid,
                a.name ?? '',
                a.status,
                a.service_tcp === '' ? '-' : a.service_tcp,
                a.services.join(','),
              ]),
            ),
      quiet: () => agents.map((a) => a.aid).join('\n'),
    },
  );
}

export function agentCommands(program: Command, contextOf: ContextOf): void {
  const agents = program
    .command('agents')
    .description('the agents of this daemon; lists them where no command follows')
    .addHelpText(
      'after',
      examples('svc agents', 'svc agents new --service-tcp 127.0.0.1:8080', 'svc agents get aid1…'),
    );
  agents.action((_options, command: Command) => list(contextOf(command)));
  addRegister(agents, 'new', contextOf);
  for (const kind of WALLETS) addRegister(agents, kind.command, contextOf, kind);
  const onAgent = (
    name: string,
    description: string,
    action: (context: CliContext, aid: string) => Promise<void>,
  ): void => {
    agents
      .command(name)
      .argument('<aid>')
      .description(description)
      .addHelpText('after', examples(`svc agents ${name} aid1…`))
      .action((aid: string, _options, command: Command) => action(contextOf(command), aid));
  };
  agents
    .command('list')
    .description('list the agents')
    .addHelpText('after', examples('svc agents list --quiet'))
    .action((_options, command: Command) => list(contextOf(command)));
  onAgent('get', 'show one agent', async (context, aid) =>
    context.show(await context.client.agentGet({ aid }), { text: describe, quiet: (a) => a.status }),
  );
  agents
    .command('update')
    .argument('<aid>')
    .requiredOption(
      '--service-tcp <address>',
      'host:port, http://host:port, https://host:port, or an empty text to unbind',
    )
    .description('bind another service')
    .addHelpText(
      'after',
      examples('svc agents update aid1… --service-tcp 127.0.0.1:9000', `svc agents update aid1… --service-tcp ''`),
    )
    .action(async (aid: string, options: { serviceTcp: string }, command: Command) => {
      const context = contextOf(command);
      context.show(await context.client.agentPatch({ aid, service_tcp: options.serviceTcp }), {
        text: describe,
        quiet: (a) => a.service_tcp,
      });
    });
  onAgent('del', 'unregister an agent and delete its operational key here', async (context, aid) => {
    context.show(await context.client.agentDelete({ aid }), {
      text: () => `${aid} is unregistered. Its published records expire by themselves.`,
      quiet: () => aid,
    });
  });
  onAgent('publish', 'publish the endpoint record now', async (context, aid) => {
    const result = await context.progress('Publishing', context.client.agentPublish({ aid }));
    context.show(result, {
      text: (r) => `Published with seq ${r.seq}, kept by ${counted(r.replicas, 'node')}.`,
      quiet: (r) => String(r.seq),
    });
  });
  onAgent('heartbeat', 'say that the agent is alive', async (context, aid) =>
    context.show(await context.client.agentHeartbeat({ aid }), { text: (r) => `ok, ${r.at}`, quiet: (r) => r.at }),
  );
  onAgent('probe', 'examine the bound service and the published record', async (context, aid) => {
    const both = Promise.all([context.client.agentProbe({ aid }), context.client.agentGet({ aid })]);
    const [probe, { service_tcp }] = await context.progress('Probing', both);
    context.show(probe, {
      text: (p) =>
        formatFields([
          [
            'service',
            p.service_tcp_ok === null
              ? 'none bound'
              : p.service_tcp_ok
                ? `${service_tcp} answers in ${p.tcp_ms} ms`
                : `${service_tcp} does not answer${p.tcp_error === undefined ? '' : `: ${p.tcp_error}`}`,
          ],
          ['published', p.dht_ok ? p.published_endpoints.join(', ') : 'no'],
          ['seq', p.published_seq],
        ]),
      quiet: (p) => (p.dht_ok ? 'ok' : 'not published'),
    });
  });
  moveCommands(agents, contextOf);
  aclCommands(agents, contextOf);
  profileCommands(agents, contextOf);
  const topic = agents
    .command('topic')
    .description('the services that an agent offers')
    .addHelpText(
      'after',
      examples('svc agents topic add aid1… lang.translate lang.detect', 'svc agents topic del aid1… lang.detect'),
    );
  topic
    .command('add')
    .argument('<aid>')
    .argument('<service...>')
    .description('offer services')
    .addHelpText('after', examples('svc agents topic add aid1… lang.translate lang.detect'))
    .action(async (aid: string, services: string[], _options, command: Command) => {
      const context = contextOf(command);
      const result = await context.progress('Publishing', context.client.serviceRegister({ aid, services }));
      context.show(result, {
        text: (r) => `Published, kept by ${counted(r.replicas, 'node')}.`,
        quiet: (r) => String(r.seq),
      });
    });
  topic
    .command('del')
    .argument('<aid>')
    .argument('<service>')
    .description('offer a service no more')
    .addHelpText('after', examples('svc agents topic del aid1… lang.detect'))
    .action(async (aid: string, service: string, _options, command: Command) => {
      const context = contextOf(command);
      context.show(await context.client.serviceUnregister({ aid, service }), {
        text: () => `${service} is renewed no more; its record expires by itself.`,
        quiet: () => service,
      });
    });
}
