/** `svc mcp`: shares local MCP servers with other agents, and uses servers of other agents. */

import { resolve } from 'node:path';
import { systemClock } from '../../../foundation/clock.ts';
import { homeDirectory } from '../../../foundation/data-dir/paths.ts';
import { abortable } from '../../../foundation/deadline.ts';
import { MCP_PATH } from '../../../foundation/domain/services.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { parseAid } from '../../../foundation/identity/aid.ts';
import {
  addServer,
  CHANNEL_ABOUT,
  type ClientLaunch,
  type HostChange,
  hubEntry,
  isMcpClient,
  type Machine,
  MCP_CLIENTS,
  PERMISSIONS_ABOUT,
  removedEntry,
  removeServer,
  svcdEntry,
} from '../../mcp-hosts/hosts.ts';
import { hubLaunch, svcdLaunch } from '../../mcp-hosts/launch.ts';
import type { Gate, GateParts } from '../../mcp-share/gate.ts';
import type { Inspection } from '../../mcp-share/inspect.ts';
import { provenService } from '../../proven-caller.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { confirmReplacement } from '../confirm-replacement.ts';
import type { CliContext } from '../context.ts';
import {
  accessToken,
  CALLING_AGENT,
  namedAgent,
  type ParsedOptions,
  repeatable,
  type ValueOption,
} from '../options.ts';
import { type OutputFormats, show, showFirstPart } from '../output.ts';
import { publishedText, tryPublish } from '../publication.ts';
import { type Interruption, interruption, untilSignal } from '../signals.ts';
import { commandWord, formatFields, safeText } from '../text.ts';
import { rejectUsedLabel } from './alias.ts';
import { exposeAt } from './expose.ts';
import { ownCommand, proofKey, warnOfCallHooks } from './hooks.ts';
import {
  type CreatedAgent,
  MASTER_WARNING,
  masterKeyText,
  NEW_AGENT_OPTIONS,
  protectMasterKey,
  register,
  type ShowKey,
} from './identity.ts';
import { hubCommands } from './mcp-hub.ts';
import { IDLE_OPTION, nameAgent, onDemandAddress, removeOnDemand, serviceAgent, setOnDemand } from './serve.ts';

// `svc mcp use`: makes the MCP server that another agent shares available to local programs.

const INTO: ValueOption<string | undefined> = {
  about: 'add it to the configuration of a client, which then starts it',
  choices: Object.keys(MCP_CLIENTS),
  conflicts: ['stdio'],
};

const USE_OPTIONS = {
  '--into <client>': INTO,
  '--name <name>': 'with --into, its name in that client; default: its name here',
  '--dry-run': 'with --into, only print what would be written',
  '--stdio': 'act as the server on standard input and output; clients start this',
  ...CALLING_AGENT,
  '--access-token <secret>': accessToken('access token that the remote agent requires'),
} as const;

type Using = ParsedOptions<'<agent>', typeof USE_OPTIONS>;
type Way = Pick<Using, 'local_aid' | 'access_token'>;

/** The local URL of an agent's server. @throws SvcError as `originOpen` */
async function addressOf(context: CliContext, aid: string, { local_aid, access_token }: Way): Promise<URL> {
  const { url } = await context.client.originOpen({
    aid,
    ...(local_aid === undefined ? {} : { local_aid }),
    ...(access_token === undefined ? {} : { access_token }),
  });
  return new URL(MCP_PATH, url);
}

async function beServer(context: CliContext, aid: string, way: Way): Promise<undefined> {
  const { Bridge } = await import('../../mcp-share/bridge.ts');
  const { stdin: input, stdout: output } = context.io;
  const bridge = await Bridge.start({ input, output, address: () => addressOf(context, aid, way), clock: systemClock });
  await Promise.race([bridge.closed, untilSignal(context.io.signal).then(() => bridge.close())]);
  return undefined;
}

/** The command that a client runs: the absolute path of this program, because desktop programs have another PATH. */
function launchFor(context: CliContext, aid: string, { local_aid }: Way): ClientLaunch {
  const [command = 'node', script = 'svc'] = process.argv;
  const api = context.options.api ?? context.io.env['SVC_API'];
  const dataDir = context.io.env['SVCD_DATA_DIR'];
  const args = [
    ...[resolve(script), 'mcp', 'use', aid, '--stdio'],
    ...(local_aid === undefined ? [] : ['--as', local_aid]),
    ...(api === undefined ? [] : ['--api', context.api]),
  ];
  // A daemon that restarts on another port is found through its data directory.
  return {
    command,
    args,
    ...(api === undefined && dataDir !== undefined ? { env: { SVCD_DATA_DIR: resolve(dataDir) } } : {}),
  };
}

function thisMachine({ io }: CliContext): Machine {
  return { platform: process.platform, home: io.env['HOME'] ?? homeDirectory(), environment: io.env };
}

/** A name that every client configuration accepts. */
function entryName(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_-]+/g, '-').slice(0, 64) || 'friend';
}

async function use(context: CliContext, typed: Using) {
  if (context.options.via !== undefined)
    throw new SvcError('local_only', { message: 'MCP clients run on this machine. Omit --via.' });
  const aid = await context.aid(typed.agent);
  const way: Way = {
    local_aid: typed.local_aid === undefined ? undefined : await context.aid(typed.local_aid),
    access_token: typed.access_token,
  };
  if (typed.stdio === true) return beServer(context, aid, way);
  const url = await context.progress('Connecting', addressOf(context, aid, way));
  const found = await context.progress('Connecting to the server', serverAt(context, url, typed.agent));
  return { aid, url: url.href, into: typed.into, ...into(context, aid, typed), ...found };
}

/**
 * The server of an agent. `problem`: why it does not respond now. It can be used when it does.
 * @throws SvcError `bad_response` if the agent is no MCP server
 */
async function serverAt(context: CliContext, url: URL, agent: string) {
  const { inspectUrl } = await import('../../mcp-share/inspect.ts');
  try {
    const { title: server, tools } = await inspectUrl(url, {
      clock: systemClock,
      onSilent: (text) => context.info(text),
    });
    return { server, tools, problem: undefined };
  } catch (error) {
    if (error instanceof SvcError && error.code === 'bad_response')
      throw new SvcError(error.code, {
        message: `${agent} is not an MCP server. ${error.message} "svc mcp share" on its machine shares one.`,
        cause: error,
      });
    const problem = error instanceof Error ? error.message : 'unknown failure';
    return { server: null, tools: [], problem };
  }
}

/** Adds the server to the configuration of a client, if requested. @throws SvcError `config_invalid` */
function into(context: CliContext, aid: string, { into: client, name, agent, dry_run, ...way }: Using) {
  if (client === undefined || !isMcpClient(client)) return { added: undefined, aside: undefined };
  const called = entryName(name ?? agent);
  const entry = { name: called, launch: launchFor(context, aid, way), shownBy: 'svc mcp use --into cursor --dry-run' };
  const { text, name: aside } = addServer(client, entry, thisMachine(context), dry_run === true);
  return { added: text, aside };
}

function addUseCommand(mcp: CommandGroup): void {
  mcp.run('use <agent>', 'use an MCP server that another agent shares', {
    examples: ['svc mcp use bob --into claude-code', 'svc mcp use bob', 'svc mcp use bob --stdio'],
    options: USE_OPTIONS,
    run: use,
    json: ({ aid, url, server, tools, problem, into: client, aside }) => ({
      aid,
      url,
      server,
      tools,
      ...(problem === undefined ? {} : { problem }),
      ...(client === undefined ? {} : { into: client, name: aside }),
    }),
    text: ({ url, server, tools, problem, added }) => [
      formatFields({
        address: url,
        server:
          problem === undefined
            ? (server ?? 'requires authorization: configure clients with the URL')
            : `no response now (${problem})`,
        tools: tools.length === 0 ? undefined : tools.join(', '),
      }),
      ...(added === undefined ? [] : [added.trimEnd()]),
    ],
    quiet: ({ url }) => url,
    // An entry for a client is useful even if the server is offline now.
    fails: ({ problem, added }, { agent }) =>
      problem !== undefined && added === undefined && `${agent} does not respond as an MCP server.`,
    remark: ({ added, problem }, { agent }) =>
      added === undefined &&
      problem === undefined &&
      `Clients that accept a URL can use this one. Others start "svc mcp use ${commandWord(agent)} --stdio", which --into configures.`,
  });
}

// `svc mcp add` and `svc mcp rm`: the commands of `svcd mcp`, for this daemon.

const CLIENT: ValueOption<string> = { about: 'client name', choices: Object.keys(MCP_CLIENTS) };
const DRY_RUN = { '--dry-run': 'show the changes without writing them' } as const;

const HOST_FORMATS: OutputFormats<HostChange, unknown> = {
  json: ({ file, name, changed, backup }) => ({ file, name, changed, backup }),
  text: ({ text }) => text.trimEnd(),
  quiet: ({ file }) => file,
};

function requireClient(name: string): keyof typeof MCP_CLIENTS {
  if (isMcpClient(name)) return name;
  throw new SvcError('invalid_request', { message: `Choose a client: ${Object.keys(MCP_CLIENTS).join(', ')}.` });
}

function requireHere({ options }: CliContext): void {
  if (options.via !== undefined)
    throw new SvcError('local_only', { message: 'MCP clients run on this machine. Omit --via.' });
}

/** The commands that clients run for the daemon of this command. */
function launches(context: CliContext) {
  const { env } = context.io;
  const dataDir = env['SVCD_DATA_DIR'] || undefined;
  const api = (context.options.api ?? env['SVC_API']) === undefined ? undefined : context.api;
  const options = api === undefined ? [] : ['--api-addr', new URL(api).host];
  return { svcd: () => svcdLaunch(env, { dataDir, options }), hub: () => hubLaunch(dataDir, api) };
}

function addHostCommands(mcp: CommandGroup): void {
  mcp.run('add', 'add svcd to the configuration of an MCP client, with a backup of the previous file', {
    examples: ['svc mcp add claude-code --dry-run', 'svc mcp add codex'],
    options: {
      '<client>': CLIENT,
      '--hub': 'the tools of other agents, behind three tools, instead of the tools of svcd',
      '--channel': CHANNEL_ABOUT,
      '--permissions <aid>': PERMISSIONS_ABOUT,
      ...DRY_RUN,
    },
    run: async (context, { client: typed, hub, channel, permissions, dry_run }) => {
      requireHere(context);
      const client = requireClient(typed);
      const launch = launches(context);
      const entry =
        hub === true
          ? hubEntry(client, launch.hub())
          : svcdEntry(
              client,
              launch.svcd(),
              channel,
              permissions === undefined ? undefined : await context.aid(permissions),
            );
      return addServer(client, entry, thisMachine(context), dry_run === true);
    },
    ...HOST_FORMATS,
  });
  mcp.run('rm', 'remove svcd from the configuration of an MCP client, with a backup of the previous file', {
    examples: ['svc mcp rm claude-code', 'svc mcp rm cursor --name notes'],
    options: {
      '<client>': CLIENT,
      '--hub': 'remove the hub instead',
      '--name <name>': 'another entry, such as one of "svc mcp use --into"',
      ...DRY_RUN,
    },
    run: async (context, { client, hub, name, dry_run }) => {
      requireHere(context);
      return removeServer(
        requireClient(client),
        removedEntry(hub === true, name),
        thisMachine(context),
        dry_run === true,
      );
    },
    ...HOST_FORMATS,
  });
}

// `svc mcp share`: shares an MCP server of this machine with allowed agents while the command runs.

// The agent of a shared MCP server. It is created if necessary, and closed to all but the allowed agents.

/** Deadline for each request while the command stops, milliseconds. A daemon that hangs must not delay the end. */
const UNBIND_MS = 1_000;

interface ShareAgentOptions {
  readonly aid: string | undefined;
  readonly name: string | undefined;
  readonly save_master: string | undefined;
  readonly print_master: true | undefined;
  readonly replace: true | undefined;
  readonly on_demand: true | undefined;
}

interface ShareAgent {
  readonly aid: string;
  readonly isNew: boolean;
  /** The service that the share replaces, or null. */
  readonly replaced: string | null;
  readonly master_private_key_hex?: string | undefined;
  readonly master_file?: string | undefined;
}

/**
 * The agent, not bound to a service yet.
 * @throws SvcError `wrong_state` if another service is bound and may not be replaced
 */
async function shareAgent(context: CliContext, options: ShareAgentOptions, showKey: ShowKey): Promise<ShareAgent> {
  const { name, save_master } = options;
  const known = await serviceAgent(context, options);
  const replaced = known === undefined ? null : await replacedBy(context, known, options);
  if (known === undefined && name !== undefined) await rejectUsedLabel(context, name);
  if (known === undefined) protectMasterKey(context, options);
  const made =
    known === undefined
      ? await register(context, { save_master, publish: false, service_tcp: undefined }, showKey)
      : undefined;
  const aid = made?.aid ?? known ?? '';
  if (name !== undefined) await nameAgent(context, aid, name);
  await warnOfCallHooks(context, [aid]);
  // The key comes first: it was printed before the rest was known.
  const { master_private_key_hex, master_file } = made ?? {};
  return { aid, isNew: made !== undefined, master_private_key_hex, master_file, replaced };
}

/** As `confirmReplacement`. An earlier share with --on-demand is no other service. */
async function replacedBy(context: CliContext, aid: string, { replace, on_demand }: ShareAgentOptions) {
  const before = on_demand === true ? await onDemandAddress(context, aid) : undefined;
  return confirmReplacement(context, aid, replace === true, before === undefined ? undefined : provenService(before));
}

type Policy = AnswerOf<'aclGet'>['default'];

/** The agents that may use a share: AID → tools; null for all tools. */
type ShareCallers = ReadonlyMap<string, readonly string[] | null>;

/**
 * Allows these agents to call the bound service until it ends, and no others that an earlier share of it allowed.
 * @returns the AIDs that may call it
 */
async function allowAll(
  { client }: CliContext,
  aid: string,
  service_tcp: string,
  callers: ShareCallers,
): Promise<string[]> {
  const { allow } = await client.aclGet({ aid });
  for (const { id, aid: one = '', service_tcp: service } of allow)
    if (service === service_tcp && !callers.has(one)) await client.aclAllowDelete({ aid, id });
  for (const [one, tools] of callers)
    await client.aclAllow({
      aid,
      body_aid: parseAid(one),
      service_tcp,
      ...(tools === null ? {} : { tools: [...tools] }),
    });
  const permanent = allow.flatMap((entry) =>
    entry.aid === undefined || entry.service_tcp !== undefined ? [] : [entry.aid],
  );
  return [...new Set([...permanent, ...callers.keys()])];
}

/**
 * Denies callers without an entry until the temporary service ends. A new agent is closed permanently.
 * @returns the default that returns then; undefined if it stays
 */
async function denyOthers({ client }: CliContext, { aid, isNew }: ShareAgent): Promise<Policy | undefined> {
  await client.aclPatch({ aid, default: 'deny', temporary: !isNew });
  return (await client.aclGet({ aid })).default_before;
}

/**
 * Closes the agent to callers without an entry, binds it, and lets its callers in. If this command is killed, another
 * program on the port cannot act as the agent.
 */
async function bindShare(
  context: CliContext,
  agent: ShareAgent,
  service_tcp: string,
  callers: ShareCallers,
): Promise<Pick<Shared, 'allowed' | 'default_before'>> {
  const { client } = context;
  const { aid } = agent;
  const before = await denyOthers(context, agent);
  try {
    await client.agentPatch({ aid, service_tcp, temporary: true });
  } catch (error) {
    if (before !== undefined) await client.aclPatch({ aid, default: before });
    throw error;
  }
  // The end of another temporary service may have restored the default before the binding.
  const default_before = await denyOthers(context, agent);
  return { default_before, allowed: await allowAll(context, aid, service_tcp, callers) };
}

/** Binds the previous service again, unless another one was bound since. */
async function unbindShare(context: CliContext, aid: string, address: string): Promise<void> {
  const limit = { timeoutMs: UNBIND_MS };
  const { service_tcp } = await context.client.agentGet({ aid }, limit);
  if (service_tcp === provenService(address))
    await context.client.agentPatch({ aid, service_tcp: '', temporary: true }, limit);
}

/** The revisions of MCP that a server supports. */
const REVISIONS = ['modern', 'sessions'] as const;

const WOKEN: ValueOption<(typeof REVISIONS)[number] | undefined> = {
  about: 'serve at the port in PORT; svcd starts this for --on-demand',
  choices: [...REVISIONS],
  conflicts: ['onDemand'],
};

const SHARE_OPTIONS = {
  '<server...>': 'the command that starts the server, after "--", or the URL of a running server',
  '--name <name>': 'the name that others see, and its label here; an existing agent with this name is reused',
  '--aid <aid>': namedAgent('the agent to use; default: the agent in use, the only agent, or a new one'),
  '--allow <agent>': repeatable(
    'an agent that may use it; repeatable. Agents on the allow list may use it too. All others are denied until the share ends',
  ),
  '--tools <agent=tool,…>': repeatable('an agent that may use only these tools; repeatable'),
  '--expose [node]': 'also expose it at a public https address, see "svc expose"; the node is the entry',
  '--replace': 'replace the service of the agent while this command runs',
  '--on-demand': 'start the server when a caller comes, also without this command; "svc serve --off" ends it',
  ...IDLE_OPTION,
  '--woken <revision>': WOKEN,
  ...NEW_AGENT_OPTIONS,
} as const;

type Sharing = Omit<ParsedOptions<'', typeof SHARE_OPTIONS>, 'server'>;

interface Shared extends Omit<ShareAgent, 'isNew'> {
  readonly name?: string | undefined;
  readonly server: string | null;
  readonly tools: readonly string[];
  readonly allowed: readonly string[];
  /** The access default that returns when the share ends. */
  readonly default_before?: Policy | undefined;
  readonly service_tcp: string;
  readonly published: boolean;
  readonly publish_error?: string | undefined;
  /** The public address, and the first token for it. */
  readonly url?: string;
  readonly token?: string;
}

/** AID → tools, from `agent=tool,tool`. @throws SvcError `invalid_request`, `bad_aid` */
async function toolLists(context: CliContext, texts: readonly string[]): Promise<Map<string, Set<string>>> {
  const lists = new Map<string, Set<string>>();
  for (const text of texts) {
    const [, agent, names] = /^([^=]+)=(.+)$/.exec(text) ?? [];
    if (agent === undefined || names === undefined)
      throw new SvcError('invalid_request', {
        message: 'Use --tools <agent>=<tool>,<tool>, such as --tools bob=search.',
      });
    const aid = await context.aid(agent);
    const tools = names.split(',').map((name) => name.trim());
    lists.set(aid, new Set([...(lists.get(aid) ?? []), ...tools.filter((name) => name !== '')]));
  }
  return lists;
}

/** Rejects unknown tool names, which would silently allow nothing. @throws SvcError `invalid_request` */
function checkTools({ tools, title }: Inspection, lists: ReadonlyMap<string, ReadonlySet<string>>): void {
  if (title === null || tools.length === 0) return;
  const unknown = [...lists.values()].flatMap((names) => [...names]).find((name) => !tools.includes(name));
  if (unknown !== undefined)
    throw new SvcError('invalid_request', {
      message: `The server has no tool "${unknown}". Its tools: ${tools.join(', ')}.`,
    });
}

/** The server to share: a command or a URL. */
function serverOf(words: readonly string[]): { command: string; args: string[] } | URL {
  const [first = '', ...args] = words;
  if (!/^https?:\/\//i.test(first)) return { command: first, args };
  const url = URL.parse(first);
  if (url === null || args.length > 0)
    throw new SvcError('invalid_request', {
      message: 'Pass one valid URL and nothing after it, such as http://127.0.0.1:3000/mcp.',
    });
  return url;
}

async function share(context: CliContext, words: readonly string[], options: Sharing): Promise<undefined> {
  if (context.options.via !== undefined)
    throw new SvcError('local_only', { message: 'A server can only be shared by its own machine. Omit --via.' });
  const server = serverOf(words);
  const lists = await toolLists(context, options.tools ?? []);
  if (options.woken !== undefined) return beWoken(context, server, options.woken, lists);
  const isLasting = options.on_demand === true;
  const key = isLasting ? proofKey(context) : undefined;
  if (isLasting && server instanceof URL)
    throw new SvcError('invalid_request', { message: 'Give the command that starts the server, after "--".' });
  const named = await Promise.all((options.allow ?? []).map((agent) => context.aid(agent)));
  const { io } = context;
  const log = (text: string): void => void io.stderr.write(safeText(text));
  // From here on a signal must also stop the processes of the server.
  const end = interruption(io.signal);
  const within = <T>(work: Promise<T>): Promise<T> => abortable(work, end.signal);
  const { open } = await import('../../mcp-share/open.ts');
  const opening = open(server, { environment: io.env, log, lists, clock: systemClock, signal: end.signal });
  const { seen, begin } = await context.progress('Starting the server', opening);
  checkTools(seen, lists);
  const agent = await within(
    shareAgent(context, options, (made, text) => showFirstPart(context, made, options, SHARED, text)),
  );
  const { isNew: _, ...known } = agent;
  const callers: ShareCallers = new Map([
    ...named.map((one) => [one, null] as const),
    ...[...lists].map(([one, names]) => [one, [...names]] as const),
  ]);
  const { title, tools } = seen;
  const details = { ...known, name: options.name, server: title, tools };
  const exposed = async () => (options.expose === undefined ? {} : await exposeAt(context, agent.aid, options.expose));
  if (key !== undefined) {
    const revision = seen.isModern ? 'modern' : 'sessions';
    const command = [...wakingCommand(revision, lists), ...ownCommand(words, io.env)];
    const shared = await within(shareOnDemand(context, agent, { key, command, callers, idleMs: options.idle }));
    await show(context, { ...details, ...shared, ...(await exposed()) }, options, ON_DEMAND);
    return undefined;
  }
  await shareNow(context, {
    agent,
    callers,
    begin,
    end,
    tell: async (shared) => show(context, { ...details, ...shared, ...(await exposed()) }, options, SHARED),
  });
  return undefined;
}

type Bound = Pick<Shared, 'allowed' | 'service_tcp' | 'default_before' | 'published' | 'publish_error'>;

interface OnDemandShare {
  readonly key: Buffer;
  readonly command: readonly string[];
  readonly callers: ShareCallers;
  readonly idleMs: number | undefined;
}

/** Has svcd start the server when a caller comes. */
async function shareOnDemand(context: CliContext, agent: ShareAgent, wanted: OnDemandShare): Promise<Bound> {
  const { aid } = agent;
  const { key, callers, ...program } = wanted;
  const { service_tcp: address } = await setOnDemand(context, key, { ...program, aid, shell: false });
  const service_tcp = provenService(address);
  const bound = await bindShare(context, agent, service_tcp, callers).catch(async (error: unknown) => {
    await removeOnDemand(context, aid);
    throw error;
  });
  return { service_tcp, ...bound, ...(await context.progress('Publishing', tryPublish(context, aid))) };
}

interface RunningShare {
  readonly agent: ShareAgent;
  readonly callers: ShareCallers;
  readonly begin: (agent: GateParts['agent']) => Promise<Gate>;
  readonly end: Interruption;
  readonly tell: (shared: Bound) => Promise<void>;
}

/** Shares the server until a signal arrives. */
async function shareNow(context: CliContext, { agent, callers, begin, end, tell }: RunningShare): Promise<void> {
  const { aid } = agent;
  const within = <T>(work: Promise<T>): Promise<T> => abortable(work, end.signal);
  const gate = await begin(await within(gateAgent(context, aid)));
  try {
    const service_tcp = provenService(gate.address);
    const bound = await within(bindShare(context, agent, service_tcp, callers));
    const publishing = Promise.race([tryPublish(context, aid), end.ended]);
    const state = (await context.progress('Publishing', publishing)) ?? { published: false };
    await tell({ service_tcp, ...bound, ...state });
    await end.ended;
  } finally {
    // The daemon may be stopped. A stale binding is harmless, because no other process can prove to be this one.
    await Promise.all([unbindShare(context, aid, gate.address).catch(() => {}), gate.close()]);
  }
}

/** The agent of a share, with the key of the proofs of its callers. */
async function gateAgent({ client }: CliContext, aid: string) {
  const { caller_key_hex } = await client.agentCallerKey({ aid });
  return { aid, key: Buffer.from(caller_key_hex, 'hex') };
}

/** The first words of the command that svcd starts for a share with --on-demand. */
function wakingCommand(revision: string, lists: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const [node = 'node', script = 'svc'] = process.argv;
  const tools = [...lists].flatMap(([aid, names]) => ['--tools', `${aid}=${[...names].join(',')}`]);
  return [node, resolve(script), 'mcp', 'share', '--woken', revision, ...tools, '--'];
}

/** Serves a share with --on-demand until svcd stops this process. */
async function beWoken(
  context: CliContext,
  server: ReturnType<typeof serverOf>,
  revision: (typeof REVISIONS)[number],
  lists: ReadonlyMap<string, ReadonlySet<string>>,
): Promise<undefined> {
  const { PORT, HOST: _, SVC_PORT, SVC_AID, ...environment } = context.io.env;
  const ports = { own: Number(PORT), bound: Number(SVC_PORT) };
  if (server instanceof URL || SVC_AID === undefined || !(ports.own > 0 && ports.bound > 0))
    throw new SvcError('invalid_request', { message: 'Only svcd uses --woken. Use --on-demand.' });
  const end = interruption(context.io.signal);
  const { wake } = await import('../../mcp-share/open.ts');
  const agent = await abortable(gateAgent(context, SVC_AID), end.signal);
  const log = (text: string): void => void context.io.stderr.write(safeText(text));
  const gate = await wake(
    server,
    revision === 'modern',
    { agent, ports },
    { environment, log, lists, clock: systemClock },
  );
  await end.ended;
  await gate.close();
  return undefined;
}

const SHARED: OutputFormats<Partial<Shared> & CreatedAgent, unknown> = {
  aids: 'labeled',
  text: (one, _, names) => {
    const { master_private_key_hex: key, allowed, tools } = one;
    const lets = allowed?.map((aid) => names.nameOf(aid) ?? aid).join(', ');
    // Before the agent is registered only its key can be shown.
    const isMade = one.service_tcp !== undefined;
    return formatFields({
      ...(key === undefined ? {} : { aid: one.aid, 'master key': key }),
      name: isMade ? one.name : undefined,
      server: isMade ? (one.server ?? 'requires authorization') : undefined,
      tools: tools?.length === 0 ? 'none shown' : tools?.join(', '),
      allowed: lets === '' ? 'no one yet' : lets,
      replaces: one.replaced ?? undefined,
      ...(key === undefined ? { aid: one.aid } : {}),
      ...(key === undefined && one.master_file !== undefined ? { 'master key': masterKeyText(one) } : {}),
      published: publishedText(one),
      address: one.url,
      token: one.token,
    });
  },
  quiet: ({ aid }) => aid,
  remark: (one) => sharedRemark(one, 'It is shared until this command stops.'),
};

const ON_DEMAND: typeof SHARED = {
  ...SHARED,
  remark: (one) => sharedRemark(one, `It starts with a call. "svc serve --off --as ${one.aid}" ends this.`),
};

/** @param lasts how long it is shared */
function sharedRemark(
  { aid, allowed, default_before, master_private_key_hex }: Partial<Shared> & CreatedAgent,
  lasts: string,
): string {
  return [
    master_private_key_hex !== undefined && MASTER_WARNING,
    allowed?.length === 0 && `Allow an agent: "svc agents acl allow <agent> --as ${aid}".`,
    default_before !== undefined &&
      `Callers without an entry are denied. The default "${default_before}" returns when the share ends.`,
    `Others use it with "svc mcp use ${aid} --into claude-code". ${lasts}`,
  ]
    .filter((line) => typeof line === 'string')
    .join('\n');
}

function addShareCommand(mcp: CommandGroup): void {
  mcp.run('share', 'share an MCP server of this machine with other agents while this command runs', {
    examples: [
      'svc mcp share --name notes --allow bob -- npx my-notes-server',
      'svc mcp share http://127.0.0.1:3000/mcp --name notes --tools bob=search,read',
      'svc mcp share --on-demand --name notes --allow bob -- npx my-notes-server',
    ],
    options: SHARE_OPTIONS,
    run: (context, { server, ...options }) => share(context, server, options),
    text: () => '',
  });
}

export function mcpCommands(svc: CommandGroup): void {
  const mcp = svc.group('mcp', 'share MCP servers with other agents, and use shared servers', [
    'svc mcp share --name notes --allow bob -- npx my-notes-server',
    'svc mcp use notes --into claude-code',
  ]);
  addShareCommand(mcp);
  addUseCommand(mcp);
  addHostCommands(mcp);
  hubCommands(mcp);
}
