/** `svc agents`: the agents of this daemon. */
import { pluralize, relativeTime } from '../../../foundation/display-text.ts';
import {
  ALLOW,
  accessTable,
  allowInput,
  entryText,
  hasSecret,
  NEW_ENTRY,
  REMOVED_ENTRY,
  removalConfirmation,
} from '../access.ts';
import type { AnswerOf, SvcClient } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { confirmReplacement } from '../confirm-replacement.ts';
import type { CliContext } from '../context.ts';
import type { Names } from '../names.ts';
import { WALLET_KINDS } from '../new-identity.ts';
import {
  actingArgument,
  choice,
  integer,
  type ParsedOptions,
  repeatable,
  required,
  type ValueOption,
} from '../options.ts';
import { changeProfile, publishResultText, storedText } from '../publication.ts';
import { formatFields, formatTable, type WrappedText } from '../text.ts';
import { ownCardCommands } from './cards.ts';
import { WITHDRAWN_OUTPUT } from './directory.ts';
import { warnOfCallHooks } from './hooks.ts';
import { addRegister } from './identity.ts';
import { moveCommands } from './move.ts';

// `svc agents profile`: the public profile of an agent.

type Published = AnswerOf<'serviceRegister'>;

/** Output after publication. */
const PUBLISHED_OUTPUT = {
  text: (answer: Published): string => publishResultText('the record', answer),
  quiet: ({ seq }: Published): string => String(seq),
};

const PROFILE_OPTIONS = {
  '--name <text>': 'display name; an empty text removes a field',
  '--brief <text>': 'one or two sentences',
  '--protocol <name>': repeatable('a protocol that it speaks; repeatable, replaces the previous ones'),
  '--skill <name>': repeatable('a skill; repeatable, at most three, replaces the previous ones'),
  '--modality <name>': repeatable('such as text or audio; repeatable, replaces the previous ones'),
  '--wakes <seconds>': integer('it starts when it is called, usually within this time; 0 removes it'),
} as const;

/** The members that options change. An empty text, or 0, removes one. */
function profileChanges(typed: ParsedOptions<'', typeof PROFILE_OPTIONS>): Parameters<typeof changeProfile>[2] {
  const { name, brief, protocol: protocols, skill: skills, modality: modalities, wakes } = typed;
  const list = (words: readonly string[]) => (words.length === 1 && words[0] === '' ? undefined : [...words]);
  return {
    ...(name === undefined ? {} : { name: name || undefined }),
    ...(brief === undefined ? {} : { brief: brief || undefined }),
    ...(protocols === undefined ? {} : { protocols: list(protocols) }),
    ...(skills === undefined ? {} : { skills: list(skills) }),
    ...(modalities === undefined ? {} : { modalities: list(modalities) }),
    ...(wakes === undefined ? {} : { wakes_within_s: wakes || undefined }),
  };
}

/** Adds the commands below `svc agents`. */
function profileCommands(agents: CommandGroup): void {
  const profile = agents
    .group('profile', 'the public profile of an agent', [
      'svc agents profile set --name "Translator" --brief "40 languages"',
    ])
    .acting('<aid>');
  profile.run('set', 'change the profile and publish it; without an option, a field keeps its value', {
    examples: [
      'svc agents profile set --name "Translator" --skill translate --modality text',
      'svc agents profile set --brief "" --wakes 0',
    ],
    options: PROFILE_OPTIONS,
    progress: 'Publishing',
    run: ({ client }, { aid, ...typed }) => changeProfile(client, aid, profileChanges(typed)),
    ...PUBLISHED_OUTPUT,
  });
  profile.call('profileDelete', 'clear', 'publish an empty profile', {
    confirmation: ({ aid }) => ({
      question: `Clear the profile of ${aid}?`,
      consequence:
        'svcd stores no copy. To restore it, use "svc agents profile set"; "svc info" shows the current one.',
    }),
    progress: 'Publishing',
    ...PUBLISHED_OUTPUT,
  });
}

// `svc agents acl`: access lists of local agents.

/** What callers without an entry may do, by the default. */
const OTHERS: Readonly<Record<AnswerOf<'aclGet'>['default'], string>> = {
  public: 'Everyone may call, except denied agents.',
  deny: 'Only allowed callers may call.',
  ask: 'Other callers ask you first: svc access requests',
};

/** The agent in a new entry. */
const CALLER: ValueOption<string | undefined> = {
  about: 'the agent to allow',
  unless: ['aid', 'secret', 'generate'],
};
const CALLER_IN_SCRIPTS: ValueOption<string | undefined> = { about: CALLER.about, hidden: true };

/** Adds the commands below `svc agents`. */
function aclCommands(agents: CommandGroup): void {
  const lists = agents.group('acl', 'access lists for calls, tunnels and objects', [
    'svc agents acl default deny',
    'svc agents acl allow bob --expires 7d',
    'svc agents acl allow --secret   # prompts for it',
  ]);
  const acl = lists.acting('<agent>');
  acl.call('aclGet', 'show', 'show the access list without its secrets', {
    text: (lists) => {
      const { default: now, default_before: before } = lists;
      const temporary = `The temporary service set this. The default "${before}" returns when it ends.`;
      return [
        OTHERS[now],
        ...(before === undefined ? [] : [temporary]),
        ...(lists.allow.length + lists.deny.length === 0 ? [] : [accessTable(lists)]),
      ];
    },
    quiet: 'default',
  });
  const choose = 'set the default for callers without an entry: public, deny, or ask';
  acl.call('aclPatch', 'default <policy=default>', choose, {
    examples: ['svc agents acl default deny', 'svc agents acl default ask   # you decide about each caller'],
    json: (_, typed) => ({ ok: true, default: typed.default }),
    text: (_, typed) => `Default: ${typed.default}.`,
  });
  lists.run('allow', 'allow an agent, or callers that present a secret', {
    examples: [
      'svc agents acl allow bob --expires 7d',
      'svc agents acl allow --secret   # prompts for it',
      'svc agents acl allow --as home --generate --label "for the build server"',
    ],
    options: {
      '<agent>': actingArgument('the local agent'),
      '[caller]': CALLER,
      '--aid <aid>': CALLER_IN_SCRIPTS,
      ...ALLOW,
    },
    run: async (context, { agent: aid, aid: earlier, caller, ...way }) => {
      const body_aid = caller ?? earlier;
      return {
        ...(await context.client.aclAllow({ aid, body_aid, ...(await allowInput(context, body_aid, way)) })),
        agent: aid,
      };
    },
    json: ({ agent: _agent, ...entry }) => entry,
    text: (entry, _, names) => entryText(entry, names, `may call ${names.shown(entry.agent)}`),
    quiet: (entry) => NEW_ENTRY.quiet(entry),
    aids: NEW_ENTRY.aids,
    once: {
      holds: (entry) => hasSecret(entry),
      undo: ({ client }, { id, agent: aid }) => client.aclAllowDelete({ aid, id }),
    },
  });
  acl.call('aclDeny', 'deny <caller=body_aid>', 'deny an agent and close its open connections', {
    examples: ['svc agents acl deny mallory --as home'],
    help: { body_aid: 'the agent to deny; overrides every other entry' },
    ...NEW_ENTRY,
    text: (entry, { aid }, names) => entryText(entry, names, `may not call ${names.shown(aid)}`),
    remark: ({ id }, { aid }) => `It overrides every allow entry. To remove it: svc agents acl rm ${aid} deny ${id} -y`,
  });
  acl.run('rm', 'remove an entry from a list', {
    examples: ['svc agents acl rm allow 7f3a…'],
    options: { '<list>': choice('allow', 'deny'), '<id>': 'entry ID, as shown by "show"' },
    confirmation: ({ aid, list, id }) => removalConfirmation(list, id, `svc agents acl ${list} ${aid} <agent>`),
    run: ({ client }, { aid, list, id }) =>
      list === 'allow' ? client.aclAllowDelete({ aid, id }) : client.aclDenyDelete({ aid, id }),
    ...REMOVED_ENTRY,
  });
}

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
    service:
      service_tcp === '' ? 'none bound' : `${service_tcp} (${agent.service_tcp_ok ? 'answers' : 'does not respond'})`,
    published: published === null ? 'not yet' : `${published}, ${storedText(agent.replicas)}`,
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
  aids: 'labeled' as const,
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
  const topic = agents
    .group('topic', 'the services that an agent offers', [
      'svc agents topic add home lang.translate lang.detect',
      'svc agents topic rm lang.detect',
    ])
    .acting('<aid>');
  topic.call('servicesList', 'list', 'show the services that an agent offers', {
    own: true,
    table: {
      of: 'services',
      columns: {
        SERVICE: 'service',
        NAME: 'name',
        BRIEF: 'brief',
        TAGS: ({ tags }) => tags.join(' '),
        'STORED AT': ({ replicas }) => pluralize(replicas, 'node'),
        META: ({ meta }) => (Object.keys(meta).length === 0 ? '' : JSON.stringify(meta)),
      },
      none: 'No services.',
    },
  });
  topic.call('serviceRegister', 'add <service...>', 'offer services', {
    examples: ['svc agents topic add home lang.translate lang.detect'],
    help: { services: 'the service names' },
    progress: 'Publishing',
    ...PUBLISHED_OUTPUT,
  });
  topic.call('serviceUnregister', 'rm <service>', 'stop offering a service', {
    examples: ['svc agents topic rm lang.detect'],
    help: { service: 'its name' },
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
  agents.run('get <aid>', 'show one agent', {
    run: async (context, { aid }) => {
      const agent = await context.client.agentGet({ aid });
      await warnOfCallHooks(context, [agent.aid]);
      return agent;
    },
    text: describe,
    quiet: ({ status }) => status,
  });
  agents.run('update <aid>', 'bind another service', {
    examples: [
      'svc agents update aid1… --service-tcp 127.0.0.1:9000 --replace',
      `svc agents update aid1… --service-tcp ''`,
    ],
    options: {
      '--service-tcp <address>': required('host:port, http://host:port, https://host:port, or "" to unbind'),
      '--replace': 'replace another service of the agent',
    },
    run: async (context, { aid: named, service_tcp, replace }) => {
      const aid = await context.aid(named);
      const isAgreed = replace === true || service_tcp === '';
      const replaced = await context.withLocalAgentHint(
        confirmReplacement(context, aid, isAgreed, service_tcp, 'Replace it?'),
      );
      const agent = await context.client.agentPatch({ aid, service_tcp });
      return replaced === null ? agent : { ...agent, replaced };
    },
    text: (agent) => ('replaced' in agent ? [`Replaced ${agent.replaced}.`, describe(agent)] : describe(agent)),
    quiet: ({ service_tcp }) => service_tcp,
  });
  agents.call('agentDelete', 'rm <aid>', 'unregister an agent and delete its operational key here', {
    examples: ['svc agents rm aid1…', 'svc agents rm aid1… -y   # in a script'],
    confirmation: async ({ aid }, context) => {
      await context.withLocalAgentHint(context.client.agentGet({ aid }));
      return {
        question: `Delete the agent ${aid} on this node, with its key, notes, chats, groups and access lists?`,
        consequence: `To use this identity again you need its master key (svc register --master-key <file>). To keep its data, export it first (svc agents export ${aid} -o <file>).`,
      };
    },
    text: (_, { aid }) => `${aid} is unregistered. Its published records expire.`,
  });
  const acting = agents.acting('<aid>');
  acting.call('agentPublish', 'publish', 'publish the endpoint record now', {
    progress: 'Publishing',
    text: ({ seq, replicas, problem }) =>
      `Published with seq ${seq}, stored at ${pluralize(replicas, 'node')}.${problem === undefined ? '' : ` ${problem}`}`,
    quiet: 'seq',
  });
  acting.call('agentHeartbeat', 'heartbeat', 'report that the agent is in use', {
    text: ({ at }) => `OK, ${at}`,
    quiet: 'at',
  });
  acting.run('probe', 'check the bound service and the published record', {
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
