/** `svc run`: an agent for the life of a command. */
import { detach } from '../../../foundation/detached.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { freePort, listeningPort } from '../../../foundation/own-listener.ts';
import { followEvents } from '../../../operations/event-client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { type NewIdentity, newIdentity } from '../new-identity.ts';
import { integer, type ParsedOptions } from '../options.ts';
import { changeProfile } from '../publication.ts';
import { ended } from './connect.ts';

const OPTIONS = {
  '<command...>': 'the command, after "--"',
  '--name <name>': 'the name that others see',
  '--port <port>': integer('the port of the command; default: the port in PORT, or another one on which it listens'),
} as const;

type RunOptions = Omit<ParsedOptions<'', typeof OPTIONS>, 'command'>;

const HOST = '127.0.0.1';
/** Interval of the search for the port of the command, and how much longer each further one is, milliseconds. */
const FIND_MS = 200;
const SLOWER = 1.2;
const MAX_FIND_MS = 5000;
/** Milliseconds until the event stream is opened again after the daemon was away. */
const RETRY_MS = 500;

/** What is registered. */
interface Registration {
  readonly identity: NewIdentity;
  readonly name: string | undefined;
  /** Where the command listens, once that is known. */
  service_tcp?: string;
}

async function register({ client }: CliContext, { identity, name, service_tcp }: Registration): Promise<void> {
  const { aid, operational_private_key_hex, delegation_proof_hex } = identity;
  const service = service_tcp === undefined ? {} : { service_tcp };
  await client.agentRegister({ operational_private_key_hex, delegation_proof_hex, temporary: true, ...service });
  // If no node is reachable, name and endpoint are published later.
  if (name !== undefined) await changeProfile(client, aid, { name }).catch(() => {});
  detach(client.agentPublish({ aid }).catch(() => {}));
}

/**
 * Follows the events of the agent, which keeps it registered. Registers it again if the daemon was away for so long that
 * it deleted the agent.
 */
async function keep(context: CliContext, registration: Registration, signal: AbortSignal) {
  const options = { aid: registration.identity.aid, types: 'hook.dead', retryMs: RETRY_MS, signal };
  while (!signal.aborted) {
    try {
      for await (const _ of followEvents(context.connection, options));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof SvcError && error.code === 'not_found')) throw error;
      await register(context, registration);
    }
  }
}

/** Binds the agent to the port of the command when the command listens. */
async function bindPort(
  { client }: CliContext,
  registration: Registration,
  pid: number,
  port: number,
  signal: AbortSignal,
) {
  for (let waitMs = FIND_MS; !signal.aborted; waitMs = Math.min(waitMs * SLOWER, MAX_FIND_MS)) {
    const found = await listeningPort(pid, port);
    if (found !== null) {
      registration.service_tcp = `${HOST}:${found}`;
      await client.agentPatch({ aid: registration.identity.aid, service_tcp: registration.service_tcp });
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, waitMs).unref());
  }
}

async function run(context: CliContext, [program = '', ...args]: readonly string[], { name, port }: RunOptions) {
  if (context.options.via !== undefined)
    throw new SvcError('local_only', { message: 'The command runs on this machine. Omit --via.' });
  const registration: Registration = { identity: await newIdentity(context, {}), name };
  const { aid } = registration.identity;
  await register(context, registration);
  const over = new AbortController();
  const warn = (error: unknown): void => context.warn(error instanceof Error ? error.message : 'unknown error');
  const kept = keep(context, registration, over.signal).catch(warn);
  const own = port ?? (await freePort());
  const env = { ...context.io.env, SVC_AID: aid, PORT: String(own) };
  context.info(`${aid} is registered until this command ends.`);
  try {
    const exit_code = await ended(program, args, env, (pid) =>
      detach(bindPort(context, registration, pid, own, over.signal).catch(warn)),
    );
    return { aid, exit_code };
  } finally {
    over.abort();
    await kept;
    // Without the daemon, its next start deletes the agent.
    await context.client.agentDelete({ aid }).catch(() => {});
  }
}

export function runCommands(svc: CommandGroup): void {
  svc.run('run', 'run a command with an agent, which is deleted when the command ends', {
    examples: ['svc run -- python3 server.py', 'svc run --name build-7 --port 8000 -- python3 -m http.server 8000'],
    options: OPTIONS,
    run: (context, { command, ...options }) => run(context, command, options),
    text: () => '',
    quiet: () => '',
    exit: ({ exit_code: code }) => code,
  });
}
