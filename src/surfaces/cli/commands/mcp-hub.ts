/** `svc mcp hub`: the tools of other agents behind one MCP endpoint. */
import { systemClock } from '../../../foundation/clock.ts';
import { relativeTime } from '../../../foundation/display-text.ts';
import { HUB_CHANGE_ID_CHARS } from '../../../foundation/domain/hub.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { provenAgent } from '../../proven-agent.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { promptYes } from '../input.ts';
import { CALLING_AGENT, nextPageHint } from '../options.ts';
import { untilSignal } from '../signals.ts';
import { formatTable, safeLine } from '../text.ts';

interface LocalInput {
  readonly local_aid?: string;
}

function localInput(local_aid: string | undefined): LocalInput {
  return local_aid === undefined ? {} : { local_aid };
}

type Source = AnswerOf<'hubAdd'>;
type Change = AnswerOf<'hubChanges'>['changes'][number];

const ORIGINS: Readonly<Record<Source['origin'], string>> = {
  book: 'labeled',
  named: 'added',
  found: 'found by a search',
  removed: 'removed',
};

function stateText({ origin, state, error }: Source): string {
  if (origin === 'removed') return 'not used';
  const why = error === null ? '' : ` (${error})`;
  switch (state) {
    case 'new':
      return 'not read yet';
    case 'ok':
      return 'here';
    case 'away':
      return `away${why}`;
    case 'denied':
      return 'denies access';
    case 'none':
      return 'no tools';
  }
}

function sourceTable(sources: readonly Source[]) {
  return formatTable(
    ['AGENT', 'KNOWN AS', 'STATE', 'TOOLS', 'WAITING', 'SKIPPED', 'LISTED'],
    sources.map((one) => [
      one.aid,
      ORIGINS[one.origin],
      stateText(one),
      String(one.tools),
      String(one.changed + one.unaccepted),
      String(one.skipped),
      one.listed_at === null ? '-' : relativeTime(one.listed_at, Date.now()),
    ]),
    'No agents. Label one with "svc alias add", or add one with "svc mcp hub add <agent>".',
  );
}

/** The hub of the daemon on standard input and output, until the client disconnects. */
async function serve(context: CliContext, local: string | undefined): Promise<undefined> {
  if (context.options.via !== undefined)
    throw new SvcError('local_only', { message: 'MCP clients run on this machine. Omit --via.' });
  const aid = local === undefined ? undefined : await context.aid(local);
  const { Bridge } = await import('../../mcp-share/bridge.ts');
  const { stdin: input, stdout: output } = context.io;
  const { token: given = '', baseUrl } = context.connection;
  const { dataDir } = context;
  const proven = context.options.sendToken === true ? undefined : provenAgent(baseUrl, { token: given, dataDir });
  // A daemon that does not run yet may need the token.
  const token = (await proven?.needsToken().catch(() => true)) === false ? '' : given;
  const bridge = await Bridge.start({
    input,
    output,
    clock: systemClock,
    // The address is read again for each request, because the daemon may have restarted.
    address: async () => {
      const url = new URL('/mcp/hub', context.connection.baseUrl);
      if (aid !== undefined) url.searchParams.set('local_aid', aid);
      return url;
    },
    access: () => ({
      headers: token === '' ? {} : { authorization: `Bearer ${token}` },
      agent: token === '' ? undefined : proven,
    }),
  });
  await Promise.race([bridge.closed, untilSignal(context.io.signal).then(() => bridge.close())]);
  return undefined;
}

/** The members of a definition that differ, before and after. */
function changeText({ id, tool, before, after }: Change): string {
  const lines = [`${id}  ${safeLine(tool)}  ${before === null ? 'new' : 'changed'}`];
  for (const [key, value] of Object.entries(after)) {
    const text = (one: unknown): string => safeLine(typeof one === 'string' ? one : JSON.stringify(one));
    const old: unknown = before === null ? undefined : Reflect.get(before, key);
    if (text(value ?? null) === text(old ?? null) || (before === null && (value === null || value === ''))) continue;
    const name = key.replaceAll('_', ' ');
    if (before !== null) lines.push(`  ${name} before: ${text(old)}`);
    lines.push(`  ${name}${before === null ? '' : ' now'}: ${text(value)}`);
  }
  return lines.join('\n');
}

const CHANGE_ID = new RegExp(`^[0-9a-f]{${HUB_CHANGE_ID_CHARS}}$`);

/** All waiting definitions of these agents. */
async function waitingOf(context: CliContext, agents: readonly string[], local: LocalInput): Promise<Change[]> {
  const aids = new Set(await Promise.all(agents.map((one) => context.aid(one))));
  const waiting: Change[] = [];
  let cursor: string | undefined;
  do {
    const page = await context.client.hubChanges({ ...local, cursor });
    waiting.push(...page.changes.filter(({ aid }) => aids.has(aid)));
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return waiting;
}

/** Shows definitions, and asks whether to accept them. @throws SvcError `invalid_request` without a terminal */
async function askToAccept(context: CliContext, waiting: readonly Change[]): Promise<boolean> {
  if (!context.interactive)
    throw new SvcError('invalid_request', {
      message:
        'Without a terminal, accept definitions by their IDs: "svc mcp hub changes" shows them. An agent may offer other ones by now.',
    });
  context.io.stderr.write(`${waiting.map(changeText).join('\n\n')}\n`);
  return promptYes(context.io, `Accept these ${waiting.length} definitions?`);
}

/**
 * The IDs among the arguments, and the IDs of the waiting definitions of the agents among them. To accept them, the user
 * reads them first.
 */
async function chosenIds(
  context: CliContext,
  named: readonly string[],
  local: LocalInput,
  isAccepted: boolean,
): Promise<string[]> {
  const ids = named.filter((one) => CHANGE_ID.test(one));
  const agents = named.filter((one) => !CHANGE_ID.test(one));
  const waiting = agents.length === 0 ? [] : await waitingOf(context, agents, local);
  if (isAccepted && waiting.length > 0 && !(await askToAccept(context, waiting))) return ids;
  return [...new Set([...ids, ...waiting.map(({ id }) => id)])];
}

function addDecision(hub: CommandGroup, name: 'accept' | 'refuse', about: string, done: string): void {
  hub.run(name, about, {
    examples: [`svc mcp hub ${name} 3f9a12bc04d5e6f718c2a9d07b6e4f35`, `svc mcp hub ${name} bob`],
    options: {
      ...CALLING_AGENT,
      '<change...>': 'IDs from "svc mcp hub changes", or agents, for all their waiting definitions',
    },
    run: async (context, { change, local_aid }) => {
      const { client } = context;
      const local = localInput(local_aid);
      const tools: string[] = [];
      for (const id of await chosenIds(context, change, local, name === 'accept')) {
        const input = { id, ...local };
        tools.push((await (name === 'accept' ? client.hubAccept(input) : client.hubRefuse(input))).tool);
      }
      return { tools };
    },
    text: ({ tools }) => (tools.length === 0 ? 'Nothing was decided.' : `${done} ${tools.map(safeLine).join(', ')}.`),
    quiet: ({ tools }) => tools.map(safeLine).join('\n'),
  });
}

export function hubCommands(mcp: CommandGroup): void {
  const hub = mcp.group(
    'hub',
    'the tools of other agents behind one MCP endpoint',
    ['svc mcp hub', 'svc mcp hub find "reserve restaurant table"', 'svc mcp hub changes'],
    {
      options: {
        ...CALLING_AGENT,
        '--stdio': 'act as the MCP server on standard input and output; clients start this',
      },
      run: async (context, { stdio, local_aid }) =>
        stdio === true ? serve(context, local_aid) : context.client.hubSources(localInput(local_aid)),
      text: ({ sources }) => sourceTable(sources),
      quiet: ({ sources }) => sources.map(({ aid }) => aid).join('\n'),
      remark: ({ sources }) =>
        sources.some(({ changed, unaccepted }) => changed + unaccepted > 0)
          ? 'Some definitions wait for you: "svc mcp hub changes".'
          : 'MCP clients use it after "svcd mcp add --hub <client>", or at /mcp/hub of the API.',
    },
  );
  hub.call('hubAdd', 'add <aid>', 'add an agent, and accept its first list of tools', {
    progress: 'Reading its tools',
    text: (source) => sourceTable([source]),
    quiet: 'tools',
  });
  hub.call('hubRefresh', 'refresh [aid]', 'read the tools of an agent, or of all agents, now', {
    progress: 'Reading the tools',
    text: ({ sources }) => sourceTable(sources),
    quiet: ({ sources }) => sources.map(({ aid }) => aid).join('\n'),
  });
  hub.call('hubRemove', 'rm <aid>', 'remove an agent, with its accepted definitions', {
    text: (_, { aid }) => `The hub no longer uses the tools of ${aid}.`,
  });
  hub.call('hubChanges', 'changes', 'show the definitions of tools that wait for you', {
    text: ({ changes }) => (changes.length === 0 ? 'Nothing waits for you.' : changes.map(changeText).join('\n\n')),
    quiet: ({ changes }) => changes.map(({ id }) => id).join('\n'),
    remark: (page) =>
      page.changes.length > 0 &&
      [
        'Their agents wrote these texts. Accept with "svc mcp hub accept <id>", or refuse with "svc mcp hub refuse <id>".',
        nextPageHint(page),
      ]
        .filter((line) => line !== false)
        .join('\n'),
  });
  addDecision(hub, 'accept', 'accept definitions of tools', 'Accepted');
  addDecision(hub, 'refuse', 'refuse definitions of tools', 'Refused');
  hub.call('hubFind', 'find <query> --limit <count> --from <agent>', 'find tools by keywords', {
    examples: ['svc mcp hub find "reserve restaurant table"'],
    help: {
      limit: 'maximum number of tools',
      from: 'search the tools of one agent; "network" also looks for unknown agents',
    },
    progress: 'Searching',
    table: {
      of: 'tools',
      columns: { TOOL: 'tool', ARGUMENTS: 'arguments', DESCRIPTION: 'description' },
      none: 'No tool matches.',
    },
    quiet: ({ tools }) => tools.map(({ tool }) => safeLine(tool)).join('\n'),
    remark: ({ waiting_for_owner: waiting }) =>
      waiting !== undefined && `${waiting} more wait for you: "svc mcp hub changes".`,
  });
}
