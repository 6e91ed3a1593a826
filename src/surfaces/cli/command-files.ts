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

/** All commands except `completion` and `help`. */
export const COMMAND_FILES: readonly Part[] = [
  {
    heading: NODE,
    names: ['status', 'version'],
    add: async (svc, { version }) => (await import('./commands/node.ts')).nodeCommands(svc, version),
  },
  { heading: NODE, names: ['panel'], add: async (svc) => (await import('./commands/panel.ts')).panelCommands(svc) },
  {
    heading: NODE,
    names: ['invite', 'join', 'contacts'],
    add: async (svc) => (await import('./commands/joining.ts')).joiningCommands(svc),
  },
  {
    heading: NODE,
    names: ['doctor'],
    add: async (svc, { version }) => (await import('./commands/doctor.ts')).doctorCommand(svc, version),
  },
  {
    heading: NODE,
    names: ['links', 'peers', 'traffic', 'netcheck', 'ping'],
    add: async (svc) => (await import('./commands/reach.ts')).reachCommands(svc),
  },
  {
    heading: NODE,
    names: ['trace'],
    add: async (svc) => (await import('./commands/traces.ts')).traceCommands(svc),
  },
  {
    heading: AGENTS,
    names: ['register', 'identity'],
    add: async (svc) => (await import('./commands/identity.ts')).identityCommands(svc),
  },
  {
    heading: AGENTS,
    names: ['wallet'],
    add: async (svc) => (await import('./commands/wallets.ts')).walletCommands(svc),
  },
  {
    heading: AGENTS,
    names: ['agents'],
    add: async (svc) => (await import('./commands/agents.ts')).agentCommands(svc),
  },
  {
    heading: AGENTS,
    names: ['callers'],
    add: async (svc) => (await import('./commands/callers.ts')).callerCommands(svc),
  },
  {
    heading: AGENTS,
    names: ['access'],
    add: async (svc) => (await import('./commands/callers.ts')).accessCommands(svc),
  },
  {
    heading: AGENTS,
    names: ['use', 'whoami'],
    add: async (svc) => (await import('./commands/use.ts')).useCommands(svc),
  },
  {
    heading: FINDING,
    names: ['serve'],
    add: async (svc) => (await import('./commands/serve.ts')).serveCommand(svc),
  },
  {
    heading: FINDING,
    names: ['publish'],
    add: async (svc) => (await import('./commands/publish.ts')).publishCommand(svc),
  },
  { heading: FINDING, names: ['card'], add: async (svc) => (await import('./commands/cards.ts')).cardCommands(svc) },
  {
    heading: FINDING,
    names: ['unpublish', 'search', 'resolve', 'info', 'did', 'did-document'],
    add: async (svc) => (await import('./commands/directory.ts')).directoryCommands(svc),
  },
  {
    heading: CALLS,
    names: ['get', 'post', 'inbound'],
    add: async (svc) => (await import('./commands/calls.ts')).callCommands(svc),
  },
  {
    heading: CALLS,
    names: ['evidence'],
    add: async (svc) => (await import('./commands/evidence.ts')).evidenceCommands(svc),
  },
  {
    heading: CALLS,
    names: ['connect', 'tunnel'],
    add: async (svc) => (await import('./commands/tunnels.ts')).tunnelCommands(svc),
  },
  {
    heading: CALLS,
    names: ['origin'],
    add: async (svc) => (await import('./commands/origins.ts')).originCommands(svc),
  },
  {
    heading: CALLS,
    names: ['push'],
    add: async (svc) => (await import('./commands/push.ts')).pushCommands(svc),
  },
  {
    heading: CALLS,
    names: ['open', 'ssh', 'nc'],
    add: async (svc) => (await import('./commands/connect.ts')).connectCommands(svc),
  },
  { heading: CALLS, names: ['mcp'], add: async (svc) => (await import('./commands/mcp.ts')).mcpCommands(svc) },
  {
    heading: MESSAGES,
    names: ['events'],
    add: async (svc) => (await import('./commands/events.ts')).eventCommands(svc),
  },
  { heading: MESSAGES, names: ['note'], add: async (svc) => (await import('./commands/notes.ts')).noteCommands(svc) },
  { heading: MESSAGES, names: ['chat'], add: async (svc) => (await import('./commands/chat.ts')).chatCommands(svc) },
  {
    heading: MESSAGES,
    names: ['group'],
    add: async (svc) => (await import('./commands/groups.ts')).groupCommands(svc),
  },
  {
    heading: MESSAGES,
    names: ['send', 'receive', 'files'],
    add: async (svc) => (await import('./commands/files.ts')).fileCommands(svc),
  },
  {
    heading: MESSAGES,
    names: ['object'],
    add: async (svc) => (await import('./commands/objects.ts')).objectCommands(svc),
  },
  {
    heading: MESSAGES,
    names: ['on', 'hooks'],
    add: async (svc) => (await import('./commands/hooks.ts')).hookCommands(svc),
  },
  { heading: DAEMON, names: ['admin'], add: async (svc) => (await import('./commands/admin.ts')).adminCommands(svc) },
  { heading: DAEMON, names: ['alias'], add: async (svc) => (await import('./commands/alias.ts')).aliasCommands(svc) },
  {
    heading: DAEMON,
    names: ['backup', 'restore'],
    add: async (svc, { version }) => (await import('./commands/backup.ts')).backupCommands(svc, version),
  },
  {
    heading: DAEMON,
    names: ['config'],
    add: async (svc) => (await import('./commands/config.ts')).configCommands(svc),
  },
  {
    heading: DAEMON,
    names: ['logs', 'stop', 'restart'],
    add: async (svc) => (await import('./commands/process.ts')).processCommands(svc),
  },
  {
    heading: DAEMON,
    names: ['update'],
    add: async (svc) => (await import('./commands/update.ts')).updateCommands(svc),
  },
];

/** Options without a value that often precede the command. */
const SWITCHES: ReadonlySet<string> = new Set(['--json', '--quiet']);

/** The parts that a command line needs: one if it names a command, all if only the parser can tell. */
export function commandFilesFor(args: readonly string[]): readonly Part[] {
  const first = args.find((arg) => !SWITCHES.has(arg));
  const part = COMMAND_FILES.find(({ names }) => first !== undefined && names.includes(first));
  return part === undefined ? COMMAND_FILES : [part];
}
