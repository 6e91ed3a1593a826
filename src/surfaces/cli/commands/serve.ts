/** `svc serve`: makes a local service reachable in one step: creates an agent, binds the service, and publishes it. */
import { SvcError } from '../../../foundation/errors.ts';
import { parseServiceAddress } from '../../../foundation/service-address.ts';
import { replacedService, replacementRequired } from '../../replace-service.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { promptYes } from '../input.ts';
import type { Names } from '../names.ts';
import type { ParsedOptions } from '../options.ts';
import { type OutputFormats, showFirstPart } from '../output.ts';
import { type PublishAttempt, publishedText, tryPublish } from '../publication.ts';
import { formatFields, formatTable, safeText, type WrappedText } from '../text.ts';
import { allAgents } from './agents.ts';
import { setLabel } from './alias.ts';
import { MASTER_WARNING, masterKeyText, register } from './identity.ts';

const TAKES = {
  '[service]': 'a local port, or an address as for "svc inbound bind"; lists what is served if omitted',
  '--name <name>': 'the name that others see, and its label here; an existing agent with this name is reused',
  '--aid <aid>': 'the agent to use; default: the only agent, or a new one',
  '--save-master <file>': 'save the master key of a new agent to a new file with mode 0600 instead of printing it',
  '--replace': 'replace the service of the agent; --off binds the previous one again',
  '--off': 'stop serving; the previous service is bound again, and the agent stays',
} as const;

type Serving = Omit<ParsedOptions<'', typeof TAKES>, 'service'>;

interface Served {
  readonly aid: string;
  readonly name?: string | undefined;
  readonly service_tcp: string;
  readonly service_tcp_ok: boolean;
  readonly published: boolean;
}

interface Started extends Partial<Served>, Partial<PublishAttempt> {
  readonly aid: string;
  readonly replaced?: string | null;
  readonly master_private_key_hex?: string | undefined;
  readonly master_file?: string | undefined;
}

function servedOf({ aid, name, service_tcp, service_tcp_ok, published }: AnswerOf<'agentGet'>): Served {
  return { aid, name, service_tcp, service_tcp_ok, published };
}

/** The agent to use. Undefined if a new one is needed. @throws SvcError `local_aid_required` */
export async function serviceAgent(
  context: CliContext,
  { aid, name }: Pick<Serving, 'aid' | 'name'>,
): Promise<string | undefined> {
  if (aid !== undefined) return context.aid(aid);
  const agents = await allAgents(context.client);
  if (name === undefined) return agents.length === 0 ? undefined : context.localAgent(undefined);
  const { aliases } = await context.client.addressBookGet();
  const wanted = name.toLowerCase();
  return agents.find((one) => (aliases[one.aid] ?? one.name ?? '').toLowerCase() === wanted)?.aid;
}

/** Names an agent in its profile and in the address book. */
export async function nameAgent(context: CliContext, aid: string, name: string): Promise<void> {
  await setLabel(context, aid, name);
  const { profile } = await context.client.agentGet({ aid });
  // Keep the rest of the profile. If no node is reachable, the name is published later.
  await context.client.profileSet({ ...profile, aid, name }).catch(() => {});
}

/**
 * The service to replace, or null if none is bound. Asks on a terminal.
 * @param service the service to bind; undefined if it is not known yet
 * @throws SvcError `wrong_state` if another service is bound and may not be replaced
 */
export async function confirmReplacement(
  context: CliContext,
  aid: string,
  agreed: boolean,
  service?: string,
): Promise<string | null> {
  const bound = await replacedService(context.client, aid, service);
  if (bound === null || agreed) return bound;
  const question = `${aid} is bound to ${bound}. Replace it while the new service is served?`;
  if (context.interactive && (await promptYes(context.io, safeText(question)))) return bound;
  throw replacementRequired(aid, bound, 'say --replace');
}

async function start(context: CliContext, where: string, options: Serving): Promise<Started> {
  const { client } = context;
  const service_tcp = /^\d+$/.test(where) ? `127.0.0.1:${where}` : where;
  const known = await serviceAgent(context, options);
  const { name, save_master } = options;
  const made =
    known === undefined
      ? await register(context, { service_tcp, save_master, publish: true }, (agent, said) =>
          showFirstPart<Serve, unknown>(context, { started: agent }, options, SERVE, said),
        )
      : undefined;
  const aid = made?.aid ?? known ?? '';
  const replaced =
    made === undefined ? await confirmReplacement(context, aid, options.replace === true, service_tcp) : null;
  if (made === undefined) await client.agentPatch({ aid, service_tcp, temporary: replaced !== null });
  const state = made ?? (await context.progress('Publishing', tryPublish(context, aid)));
  if (name !== undefined) await nameAgent(context, aid, name);
  const key = made?.master_private_key_hex;
  // The key comes first: it was printed before the rest was known.
  const begun: Pick<Started, 'aid' | 'master_private_key_hex'> =
    key === undefined ? { aid } : { aid, master_private_key_hex: key };
  const served = servedOf(await client.agentGet({ aid }));
  return Object.assign(begun, served, { aid }, name === undefined ? {} : { name }, state, { replaced });
}

async function stop(context: CliContext, options: Serving): Promise<Served> {
  const aid = await serviceAgent(context, options);
  if (aid === undefined)
    throw new SvcError('not_found', {
      message: 'No agent with this name serves anything. "svc serve" lists the served agents.',
    });
  return servedOf(await context.client.agentPatch({ aid, service_tcp: '', temporary: true }));
}

function listText(served: readonly Served[], names: Names): WrappedText {
  return formatTable(
    ['NAME', 'SERVES', 'ANSWERS', 'PUBLISHED', 'AID'],
    served.map((one) => [
      names.nameOf(one.aid) ?? one.name ?? '-',
      one.service_tcp,
      one.service_tcp_ok ? 'yes' : 'no',
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
  const serves = `${service_tcp} (${service_tcp_ok === true ? 'responds' : 'does not respond yet'})`;
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
  aids: 'told',
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
      'svc serve',
      'svc serve --off --name demo',
    ],
    options: TAKES,
    run: async (context, { service, ...options }) => {
      if (options.off === true) return { stopped: await stop(context, options) };
      if (service !== undefined) return { started: await start(context, service, options) };
      const agents = await allAgents(context.client);
      return { served: agents.filter(({ service_tcp }) => service_tcp !== '').map(servedOf) };
    },
    ...SERVE,
  });
}
