/**
 * The commands of `svc` in the order of its help. Each is loaded with the file that declares it, so that a command loads
 * only its own code and packages.
 */
import type { CommandGroup } from './command-group.ts';

interface Part {
  /** Heading in the help. */
  readonly heading: string;
  /** First words of its commands. */
  readonly names: readonly string[];
  add(svc: CommandGroup, { version }: { readonly version: string }): Promise<void>;
}

const NODE = 'This node:';
const AGENTS = 'Agents:';
const FINDING = 'Discovery:';
const CALLS = 'Calls and tunnels:';
const MESSAGES = 'Messages, events and files:';
const DAEMON = 'Running the daemon:';

type Add = (svc: CommandGroup, version: string) => void;

function part(heading: string, names: string, load: () => Promise<Add>): Part {
  return { heading, names: names.split(' '), add: async (svc, { version }) => (await load())(svc, version) };
}

/** All commands except `completion` and `help`. */
export const COMMAND_FILES: readonly Part[] = [
  part(NODE, 'status version', async () => (await import('./commands/node.ts')).nodeCommands),
  part(NODE, 'panel', async () => (await import('./commands/panel.ts')).panelCommands),
  part(NODE, 'invite join contacts', async () => (await import('./commands/joining.ts')).joiningCommands),
  part(NODE, 'doctor', async () => (await import('./commands/doctor.ts')).doctorCommand),
  part(NODE, 'links peers traffic netcheck ping', async () => (await import('./commands/reach.ts')).reachCommands),
  part(NODE, 'trace', async () => (await import('./commands/traces.ts')).traceCommands),
  part(AGENTS, 'register identity', async () => (await import('./commands/identity.ts')).identityCommands),
  part(AGENTS, 'wallet', async () => (await import('./commands/wallets.ts')).walletCommands),
  part(AGENTS, 'agents', async () => (await import('./commands/agents.ts')).agentCommands),
  part(AGENTS, 'callers', async () => (await import('./commands/callers.ts')).callerCommands),
  part(AGENTS, 'access', async () => (await import('./commands/callers.ts')).accessCommands),
  part(AGENTS, 'use whoami', async () => (await import('./commands/use.ts')).useCommands),
  part(FINDING, 'serve', async () => (await import('./commands/serve.ts')).serveCommand),
  part(FINDING, 'run', async () => (await import('./commands/run.ts')).runCommands),
  part(FINDING, 'publish', async () => (await import('./commands/publish.ts')).publishCommand),
  part(FINDING, 'card', async () => (await import('./commands/cards.ts')).cardCommands),
  part(
    FINDING,
    'unpublish search resolve info did did-document',
    async () => (await import('./commands/directory.ts')).directoryCommands,
  ),
  part(CALLS, 'get post inbound', async () => (await import('./commands/calls.ts')).callCommands),
  part(CALLS, 'evidence', async () => (await import('./commands/evidence.ts')).evidenceCommands),
  part(CALLS, 'connect tunnel', async () => (await import('./commands/tunnels.ts')).tunnelCommands),
  part(CALLS, 'origin', async () => (await import('./commands/origins.ts')).originCommands),
  part(CALLS, 'expose', async () => (await import('./commands/expose.ts')).exposeCommands),
  part(CALLS, 'entry', async () => (await import('./commands/entry.ts')).entryCommands),
  part(CALLS, 'push', async () => (await import('./commands/push.ts')).pushCommands),
  part(CALLS, 'open ssh nc', async () => (await import('./commands/connect.ts')).connectCommands),
  part(CALLS, 'mcp', async () => (await import('./commands/mcp.ts')).mcpCommands),
  part(MESSAGES, 'events', async () => (await import('./commands/events.ts')).eventCommands),
  part(MESSAGES, 'note', async () => (await import('./commands/notes.ts')).noteCommands),
  part(MESSAGES, 'chat', async () => (await import('./commands/chat.ts')).chatCommands),
  part(MESSAGES, 'group', async () => (await import('./commands/groups.ts')).groupCommands),
  part(MESSAGES, 'send receive files', async () => (await import('./commands/files.ts')).fileCommands),
  part(MESSAGES, 'object', async () => (await import('./commands/objects.ts')).objectCommands),
  part(MESSAGES, 'on hooks', async () => (await import('./commands/hooks.ts')).hookCommands),
  part(DAEMON, 'admin', async () => (await import('./commands/admin.ts')).adminCommands),
  part(DAEMON, 'alias', async () => (await import('./commands/alias.ts')).aliasCommands),
  part(DAEMON, 'backup restore', async () => (await import('./commands/backup.ts')).backupCommands),
  part(DAEMON, 'config', async () => (await import('./commands/config.ts')).configCommands),
  part(DAEMON, 'logs stop restart', async () => (await import('./commands/process.ts')).processCommands),
  part(DAEMON, 'uninstall', async () => (await import('./commands/uninstall.ts')).uninstallCommand),
  part(DAEMON, 'update', async () => (await import('./commands/update.ts')).updateCommands),
];

/** Options without a value that often precede the command. */
const SWITCHES: ReadonlySet<string> = new Set(['--json', '--quiet']);

/** The parts that a command line needs: one if it names a command, all if only the parser can tell. */
export function commandFilesFor(args: readonly string[]): readonly Part[] {
  const first = args.find((arg) => !SWITCHES.has(arg));
  const part = COMMAND_FILES.find(({ names }) => first !== undefined && names.includes(first));
  return part === undefined ? COMMAND_FILES : [part];
}
