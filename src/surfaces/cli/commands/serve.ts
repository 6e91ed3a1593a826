/** `svc serve`: makes a local service reachable in one step: creates an agent, binds the service, and publishes it. */
import { resolve } from 'node:path';
import { timeText } from '../../../foundation/display-text.ts';
import { MAX_ON_DEMAND_IDLE_MS } from '../../../foundation/domain/hooks.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { hookProof } from '../../../foundation/hook-proof.ts';
import { agentsNamed } from '../../../foundation/labels.ts';
import { parseServiceAddress } from '../../../foundation/service-address.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { confirmReplacement } from '../confirm-replacement.ts';
import type { CliContext } from '../context.ts';
import type { Names } from '../names.ts';
import { namedAgent, type ParsedOptions, seconds } from '../options.ts';
import { type OutputFormats, showFirstPart } from '../output.ts';
import { changeProfile, type PublishAttempt, publishedText, tryPublish } from '../publication.ts';
import { formatFields, formatTable, type WrappedText } from '../text.ts';
import { allAgents } from './agents.ts';
import { rejectUsedLabel, setLabel } from './alias.ts';
import { exposeAt } from './expose.ts';
import { ownCommand, proofKey, warnOfCallHooks } from './hooks.ts';
import { MASTER_WARNING, masterKeyText, NEW_AGENT_OPTIONS, protectMasterKey, register } from './identity.ts';

export const IDLE_OPTION = {
  '--idle <seconds>': seconds('with --on-demand, stop it when no connection has been open for this time; default 300', {
    minMs: 1000,
    maxMs: MAX_ON_DEMAND_IDLE_MS,
  }),
} as const;

const TAKES = {
  '[service...]':
    'a local port, an address as for "svc inbound bind", or with --on-demand a command; lists what is served if omitted',
  '--name <name>': 'the name that others see, and its label here; an existing agent with this name is reused',
  '--aid <aid>': namedAgent('the agent to use; default: the agent in use, the only agent, or a new one'),
  ...NEW_AGENT_OPTIONS,
  '--shell': 'with --on-demand, the command is one text for /bin/sh (on Windows: cmd)',
  '--on-demand':
    'start the command with the first call or connection; it must listen on 127.0.0.1, at the port in PORT',
  ...IDLE_OPTION,
  '--try': 'with --on-demand, start the command now, and fail if it does not listen',
  '--expose [node]': 'also expose it at a public https address, see "svc expose"; the node is the entry',
  '--replace': 'replace the service of the agent; --off binds the previous one again',
  '--off': 'stop serving; the previous service is bound again, and the agent stays',
} as const;

type Serving = Omit<ParsedOptions<'', typeof TAKES>, 'service'>;

interface Served {
  readonly aid: string;
  readonly name?: string | undefined;
  readonly service_tcp: string;
  readonly service_tcp_ok: boolean;
  readonly service_error?: string | undefined;
  readonly published: boolean;
}

interface Started extends Partial<Served>, Partial<PublishAttempt> {
  readonly aid: string;
  readonly replaced?: string | null;
  /** Milliseconds that the program took to start; null if it starts with the first call. */
  readonly start_ms?: number | null;
  readonly master_private_key_hex?: string | undefined;
  readonly master_file?: string | undefined;
  /** The public address, and the first token for it. */
  readonly url?: string;
  readonly token?: string;
}

function servedOf({ aid, name, service_tcp, service_tcp_ok, service_error, published }: AnswerOf<'agentGet'>): Served {
  const error = service_error === undefined ? {} : { service_error };
  return { aid, name, service_tcp, service_tcp_ok, ...error, published };
}

/** The agent to use. Undefined if a new one is needed. @throws SvcError `local_aid_required` */
export async function serviceAgent(
  context: CliContext,
  { aid, name }: Pick<Serving, 'aid' | 'name'>,
): Promise<string | undefined> {
  if (aid !== undefined) return context.aid(aid);
  const agents = await allAgents(context.client);
  if (name === undefined) return agents.length === 0 ? undefined : context.localAgent(undefined);
  const book = await context.client.addressBookGet();
  const named = agentsNamed(
    name,
    book,
    agents.filter((one) => book.aliases[one.aid] === undefined),
  );
  return agents.find((one) => named.includes(one.aid))?.aid;
}

/** Names an agent in its profile and in the address book. */
export async function nameAgent(context: CliContext, aid: string, name: string): Promise<void> {
  const labeled = agentsNamed(name, await context.client.addressBookGet(), []);
  if (!labeled.includes(aid)) await setLabel(context, aid, name);
  // If no node is reachable, the name is published later.
  await changeProfile(context.client, aid, { name }).catch(() => {});
}

/** The address of a service that a user typed: a local port, or an address. @throws SvcError `bad_service_address` */
function addressOf(typed: string): string {
  const address = /^\d+$/.test(typed) ? `127.0.0.1:${typed}` : typed;
  try {
    parseServiceAddress(address);
    return address;
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    throw new SvcError('bad_service_address', {
      message: `"${typed}" is neither a local port, 1 to 65535, nor the address of a service: ${String(error.details?.['reason'])}. Use a port such as 8080, or host:port, http://host:port or tcp://host:port. "svc inbound bind --help" shows more.`,
      ...(error.details === undefined ? {} : { details: error.details }),
      cause: error,
    });
  }
}

/** A service whose address is known after its agent: opens it. `before`: its address if it was opened earlier. */
interface Opening {
  readonly open: (aid: string) => Promise<string>;
  readonly before?: string | undefined;
}

async function start(context: CliContext, where: string | Opening, options: Serving): Promise<Started> {
  const { client } = context;
  const given = typeof where === 'string' ? addressOf(where) : undefined;
  const known = await serviceAgent(context, options);
  const { name, save_master } = options;
  if (known === undefined && name !== undefined) await rejectUsedLabel(context, name);
  if (known === undefined) protectMasterKey(context, options);
  const made =
    known === undefined
      ? await register(context, { service_tcp: given, save_master, publish: given !== undefined }, (agent, text) =>
          showFirstPart<Serve, unknown>(context, { started: agent }, options, SERVE, text),
        )
      : undefined;
  const aid = made?.aid ?? known ?? '';
  const same = typeof where === 'string' ? given : where.before;
  const replaced = made === undefined ? await confirmReplacement(context, aid, options.replace === true, same) : null;
  const isBound = made !== undefined && given !== undefined;
  const service_tcp = typeof where === 'string' ? (given ?? '') : await where.open(aid);
  if (!isBound) await client.agentPatch({ aid, service_tcp, temporary: replaced !== null });
  const state = isBound ? made : await context.progress('Publishing', tryPublish(context, aid));
  if (name !== undefined) await nameAgent(context, aid, name);
  const key = made?.master_private_key_hex;
  // The key comes first: it was printed before the rest was known.
  const begun: Pick<Started, 'aid' | 'master_private_key_hex'> =
    key === undefined ? { aid } : { aid, master_private_key_hex: key };
  const served = servedOf(await client.agentGet({ aid }));
  await warnOfCallHooks(context, [served.aid]);
  return Object.assign(begun, served, { aid }, name === undefined ? {} : { name }, state, { replaced });
}

/** Serves a program that svcd starts and stops. @throws SvcError as `start` */
async function startOnDemand(context: CliContext, words: readonly string[], options: Serving): Promise<Started> {
  const isShell = options.shell === true;
  const command = isShell ? words : ownCommand(words, context.io.env);
  const key = proofKey(context);
  const known = await serviceAgent(context, options);
  const before = known === undefined ? undefined : await onDemandAddress(context, known);
  let startMs: number | null = null;
  let opened: { readonly aid: string; readonly address: string } | undefined;
  const open = async (aid: string): Promise<string> => {
    const program = { aid, command, shell: isShell, idleMs: options.idle, isTried: options.try === true };
    const set = setOnDemand(context, key, program);
    const {
      service_tcp: address,
      failure,
      start_ms,
    } = await (program.isTried ? context.progress('Starting the program', set) : set);
    opened = { aid, address };
    if (failure !== null)
      throw new SvcError('inbound_unreachable', {
        message: [failure.problem, failure.output.trim()].join('\n').trim(),
      });
    startMs = start_ms;
    return address;
  };
  try {
    const started = await start(context, { open, before }, options);
    return { ...started, start_ms: startMs };
  } catch (error) {
    if (opened !== undefined && (await context.client.agentGet({ aid: opened.aid })).service_tcp !== opened.address)
      await removeOnDemand(context, opened.aid);
    throw error;
  }
}

interface OnDemandProgram {
  readonly aid: string;
  readonly command: readonly string[];
  readonly shell: boolean;
  /** Milliseconds. */
  readonly idleMs: number | undefined;
  /** Start it now. */
  readonly isTried?: boolean;
}

/**
 * Sets the program that svcd starts for an agent, in this folder.
 * @param key see `proofKey`
 * @returns its state
 * @throws SvcError as `onDemandSet`
 */
export async function setOnDemand(
  { client }: CliContext,
  key: Buffer,
  wanted: OnDemandProgram,
): Promise<AnswerOf<'onDemandSet'>> {
  const { idleMs, command, isTried = false, ...rest } = wanted;
  // The daemon knows the AID that a label or a prefix stands for.
  const { aid } = await client.agentGet({ aid: wanted.aid });
  const program = { ...rest, aid, command: [...command], folder: resolve('.') };
  const idle = idleMs === undefined ? {} : { idle_s: idleMs / 1000 };
  const proof = hookProof(key, { ...program, kind: 'serve' });
  return await client.onDemandSet({ ...program, ...idle, ...(isTried ? { try: true } : {}), proof });
}

/** The address of the program that svcd starts for an agent; undefined if there is none. */
export async function onDemandAddress({ client }: CliContext, agent: string): Promise<string | undefined> {
  const [{ aid }, { services }] = await Promise.all([client.agentGet({ aid: agent }), client.onDemandList({})]);
  return services.find((one) => one.aid === aid)?.service_tcp;
}

export async function removeOnDemand(context: CliContext, aid: string): Promise<void> {
  if ((await onDemandAddress(context, aid)) !== undefined) await context.client.onDemandRemove({ aid });
}

async function stop(context: CliContext, options: Serving): Promise<Served> {
  const aid = await serviceAgent(context, options);
  if (aid === undefined)
    throw new SvcError('not_found', {
      message: 'No agent with this name serves anything. "svc serve" lists the served agents.',
    });
  const served = servedOf(await context.client.agentPatch({ aid, service_tcp: '', temporary: true }));
  await removeOnDemand(context, served.aid);
  return served;
}

function listText(served: readonly Served[], names: Names): WrappedText {
  return formatTable(
    ['NAME', 'SERVES', 'ANSWERS', 'PUBLISHED', 'AID'],
    served.map((one) => [
      names.nameOf(one.aid) ?? one.name ?? '-',
      one.service_tcp,
      one.service_tcp_ok
        ? 'yes'
        : one.service_error === undefined
          ? 'no'
          : `no (${one.service_error.replace(/\.$/, '')})`,
      one.published ? 'yes' : 'not yet',
      names.short(one.aid),
    ]),
    'Nothing is served. Start with "svc serve <port>".',
  );
}

function stoppedText({ aid, service_tcp }: Served): string {
  return service_tcp === ''
    ? `${aid} no longer serves anything. It stays registered.`
    : `${aid} is bound to ${service_tcp} again.`;
}

function startedText(one: Started): WrappedText {
  const { name, service_tcp, service_tcp_ok, master_private_key_hex: key } = one;
  const state =
    one.start_ms === null
      ? 'starts on a call, not tried yet'
      : one.start_ms !== undefined
        ? `started in ${timeText(one.start_ms)}`
        : service_tcp_ok === true
          ? 'responds'
          : 'does not respond yet';
  const serves = `${service_tcp} (${state})`;
  // Before the agent is registered only its key can be shown.
  const isMade = service_tcp !== undefined;
  return formatFields({
    ...(key === undefined ? {} : { aid: one.aid, 'master key': key }),
    name: isMade ? name : undefined,
    serves: isMade ? serves : undefined,
    replaces: one.replaced ?? undefined,
    ...(key === undefined ? { aid: one.aid } : {}),
    ...(key === undefined && one.master_file !== undefined ? { 'master key': masterKeyText(one) } : {}),
    published: publishedText(one),
    address: one.url,
    token: one.token,
  });
}

/** How other agents reach the service: its address may admit only calls or only tunnels. */
function usageText({ aid, service_tcp = '' }: Started): string {
  const service = service_tcp === '' ? undefined : parseServiceAddress(service_tcp);
  const uses = [
    ...(service?.acceptsCalls === false ? [] : [`call it with "svc get ${aid} /"`]),
    ...(service?.tunnels === null ? [] : [`open a tunnel to it with "svc tunnel open ${aid}"`]),
  ];
  return `Others ${uses.join(', or ')}.`;
}

/** Exposes the agent of a service if the user wants that. */
async function exposed(context: CliContext, started: Started, { expose: at }: Serving): Promise<Started> {
  if (at === undefined) return started;
  return { ...started, ...(await exposeAt(context, started.aid, at)) };
}

/** One of the three modes of the command. */
interface Serve {
  readonly started?: Started | undefined;
  readonly stopped?: Served | undefined;
  readonly served?: readonly Served[] | undefined;
}

const SERVE: OutputFormats<Serve, unknown> = {
  json: ({ started, stopped, served }) => {
    if (started === undefined) return stopped ?? { served };
    const { replaced, ...shown } = started;
    return typeof replaced === 'string' ? { ...shown, replaced } : shown;
  },
  aids: 'labeled',
  text: ({ started, stopped, served }, _, names) =>
    started !== undefined
      ? startedText(started)
      : stopped !== undefined
        ? stoppedText(stopped)
        : listText(served ?? [], names),
  quiet: ({ started, stopped, served }) =>
    started?.aid ?? stopped?.aid ?? (served ?? []).map(({ aid }) => aid).join('\n'),
  remark: ({ started }) =>
    started !== undefined &&
    [started.master_private_key_hex !== undefined && MASTER_WARNING, usageText(started)]
      .filter((line) => line !== false)
      .join('\n'),
};

export function serveCommand(svc: CommandGroup): void {
  svc.run('serve', 'make a local service reachable in one step, or list what is served', {
    examples: [
      'svc serve 8080 --name demo --save-master demo.key',
      'svc serve tcp://127.0.0.1:22 --name ssh',
      'svc serve 8080 --name demo --expose',
      'svc serve --on-demand --idle 60 -- python3 server.py',
      'svc serve',
      'svc serve --off --name demo',
    ],
    options: TAKES,
    run: async (context, { service, ...options }) => {
      if (options.off === true) return { stopped: await stop(context, options) };
      const [first, ...others] = service ?? [];
      if (options.on_demand === true && first !== undefined)
        return { started: await exposed(context, await startOnDemand(context, [first, ...others], options), options) };
      if (options.on_demand === true || options.shell === true || options.try === true || others.length > 0)
        throw new SvcError('invalid_request', { message: 'Give one service, or a command after --on-demand --.' });
      if (first !== undefined)
        return { started: await exposed(context, await start(context, first, options), options) };
      const agents = await allAgents(context.client);
      const served = agents.filter(({ service_tcp }) => service_tcp !== '').map(servedOf);
      await warnOfCallHooks(
        context,
        served.map(({ aid }) => aid),
      );
      return { served };
    },
    ...SERVE,
  });
}
