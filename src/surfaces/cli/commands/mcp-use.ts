/** `svc mcp use`: makes the MCP server that another agent shares available to local programs. */
import { resolve } from 'node:path';
import { systemClock } from '../../../foundation/clock.ts';
import { homeDirectory } from '../../../foundation/data-dir/paths.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { addServer } from '../../mcp-hosts/add.ts';
import { type ClientLaunch, isMcpClient, type Machine, MCP_CLIENTS } from '../../mcp-hosts/hosts.ts';
import { MCP_PATH } from '../../mcp-share/shared-path.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { accessToken, type ParsedOptions, type ValueOption } from '../options.ts';
import { untilSignal } from '../signals.ts';
import { formatFields } from '../text.ts';

const INTO: ValueOption<string | undefined> = {
  about: 'add it to the configuration of a client, which then starts it',
  choices: Object.keys(MCP_CLIENTS),
  conflicts: ['stdio'],
};

const TAKES = {
  '--into <client>': INTO,
  '--name <name>': 'with --into, its name in that client; default: its name here',
  '--dry-run': 'with --into, only print what would be written',
  '--stdio': 'act as the server on standard input and output; clients start this',
  '--local-aid <aid>': 'the calling agent; optional if there is only one',
  '--access-token <secret>': accessToken('access token that the remote agent requires'),
} as const;

type Using = ParsedOptions<'<agent>', typeof TAKES>;
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
    ...(local_aid === undefined ? [] : ['--local-aid', local_aid]),
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
  const { added, aside } = into(context, aid, typed);
  const { inspectUrl: lookAtUrl } = await import('../../mcp-share/inspect.ts');
  const used = { aid, url: url.href, into: typed.into, added, aside };
  try {
    const { title, tools } = await context.progress('Connecting to the server', lookAtUrl(url));
    return { ...used, server: title, tools, problem: undefined };
  } catch (error) {
    // The entry is added even if the server is offline now.
    const problem = error instanceof Error ? error.message : 'unknown failure';
    return { ...used, server: null, tools: [], problem };
  }
}

/** Adds the server to the configuration of a client, if requested. @throws SvcError `config_invalid` */
function into(context: CliContext, aid: string, { into: client, name, agent, dry_run, ...way }: Using) {
  if (client === undefined || !isMcpClient(client)) return { added: undefined, aside: undefined };
  const called = entryName(name ?? agent);
  const entry = { name: called, launch: launchFor(context, aid, way), shownBy: 'svc mcp use --into cursor --dry-run' };
  return { added: addServer(client, entry, thisMachine(context), dry_run === true), aside: called };
}

export function addUseCommand(mcp: CommandGroup): void {
  mcp.run('use <agent>', 'use an MCP server that another agent shares', {
    examples: ['svc mcp use bob --into claude-code', 'svc mcp use bob', 'svc mcp use bob --stdio'],
    options: TAKES,
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
    remark: ({ added }, { agent }) =>
      added === undefined &&
      `Clients that accept a URL can use this one. Others start "svc mcp use ${agent} --stdio", which --into configures.`,
  });
}
