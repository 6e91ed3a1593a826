/** `svc mcp share`: shares an MCP server of this machine with allowed agents while the command runs. */
import { systemClock } from '../../../foundation/clock.ts';
import { SvcError } from '../../../foundation/errors.ts';
import type { Gate } from '../../mcp-share/gate.ts';
import type { Inspection } from '../../mcp-share/inspect.ts';
import { provenService } from '../../proven-caller.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { type ParsedOptions, repeatable } from '../options.ts';
import { type OutputFormats, show, showFirstPart } from '../output-formats.ts';
import { publishedText, tryPublish } from '../publication.ts';
import { allowOnly, bindShare, type ShareAgent, shareAgent, unbindShare } from '../share-agent.ts';
import { untilSignal } from '../signals.ts';
import { formatFields, safeText } from '../text.ts';
import { type CreatedAgent, MASTER_WARNING, masterKeyText } from './identity.ts';

const TAKES = {
  '<server...>': 'the command that starts the server, after "--", or the URL of a running server',
  '--name <name>': 'the name that others see, and its label here; an existing agent with this name is reused',
  '--aid <aid>': 'the agent to use; default: the only agent, or a new one',
  '--allow <agent>': repeatable('an agent that may use it; repeatable. All others are denied'),
  '--tools <agent=tool,…>': repeatable('an agent that may use only these tools; repeatable'),
  '--replace': 'replace the service of the agent while this command runs',
  '--save-master <file>': 'save the master key of a new agent to a new file with mode 0600 instead of printing it',
} as const;

type Sharing = Omit<ParsedOptions<'', typeof TAKES>, 'server'>;

interface Shared extends ShareAgent {
  readonly name?: string | undefined;
  readonly server: string | null;
  readonly tools: readonly string[];
  readonly allowed: readonly string[];
  readonly service_tcp: string;
  readonly published: boolean;
  readonly publish_error?: string | undefined;
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
  const named = await Promise.all((options.allow ?? []).map((agent) => context.aid(agent)));
  const { io } = context;
  const log = (text: string): void => void io.stderr.write(safeText(text));
  // From here on a signal must also stop the processes of the server.
  const end = new AbortController();
  const ending = untilSignal(io.signal).then(() => end.abort());
  const { open } = await import('../../mcp-share/open.ts');
  const opening = open(server, { environment: io.env, log, lists, clock: systemClock, signal: end.signal });
  const { seen, begin } = await context.progress('Starting the server', opening);
  if (end.signal.aborted) throw new SvcError('cancelled');
  checkTools(seen, lists);
  const agent = await shareAgent(context, options, (made, said) => showFirstPart(context, made, options, SHARED, said));
  const { aid } = agent;
  const allowed = await allowOnly(context, aid, [...new Set([...named, ...lists.keys()])]);
  const { caller_key_hex } = await context.client.agentCallerKey({ aid });
  const gate: Gate = await begin({ aid, key: Buffer.from(caller_key_hex, 'hex') });
  try {
    await bindShare(context, aid, gate.address);
    const publishing = Promise.race([tryPublish(context, aid), ending]);
    const state = (await context.progress('Publishing', publishing)) ?? { published: false };
    const { title, tools } = seen;
    const service_tcp = provenService(gate.address);
    const shared: Shared = { ...agent, name: options.name, server: title, tools, allowed, service_tcp, ...state };
    await show(context, shared, options, SHARED);
    await ending;
  } finally {
    // The daemon may be stopped. A stale binding is harmless, because no other process can prove to be this one.
    await unbindShare(context, aid, gate.address).catch(() => {});
    await gate.close();
  }
  return undefined;
}

const SHARED: OutputFormats<Partial<Shared> & CreatedAgent, unknown> = {
  aids: 'told',
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
    });
  },
  quiet: ({ aid }) => aid,
  remark: ({ aid, allowed, master_private_key_hex }) =>
    [
      master_private_key_hex !== undefined && MASTER_WARNING,
      allowed?.length === 0 && `Allow an agent: "svc agents acl allow ${aid} --aid <agent>".`,
      `Others use it with "svc mcp use ${aid} --into claude-code". It is shared until this command stops.`,
    ]
      .filter((line) => typeof line === 'string')
      .join('\n'),
};

export function addShareCommand(mcp: CommandGroup): void {
  mcp.run('share', 'share an MCP server of this machine with other agents while this command runs', {
    examples: [
      'svc mcp share --name notes --allow bob -- npx my-notes-server',
      'svc mcp share http://127.0.0.1:3000/mcp --name notes --tools bob=search,read',
    ],
    options: TAKES,
    run: (context, { server, ...options }) => share(context, server, options),
    text: () => '',
  });
}
