/** `svc nc`, `svc ssh`, `svc open`: familiar programs over a connection to an agent. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { parseAddress } from '../../../foundation/address.ts';
import { codeOf, SvcError } from '../../../foundation/errors.ts';
import { ownScript } from '../../../foundation/package-file.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { accessToken, CALLING_AGENT, type ParsedOptions, type ValueOption } from '../options.ts';
import { SIGNALS, signalExitCode } from '../signals.ts';

const CONNECT_OPTIONS = {
  ...CALLING_AGENT,
  '--access-token <secret>': accessToken('access token for the remote agent'),
} as const;

const PATH: ValueOption<string> = { about: 'path and query', otherwise: '/' };

type ConnectOptions = ParsedOptions<'', typeof CONNECT_OPTIONS>;

/** Programs that open a URL in a browser, by platform. The default is `xdg-open`. */
const BROWSERS: Readonly<Record<string, readonly [program: string, ...args: string[]]>> = {
  darwin: ['open'],
  // Unlike `explorer`, this opens every URL in the browser.
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/** With --via the connection would start on the other machine. @throws SvcError `local_only` */
function refuseRemote({ options }: CliContext): void {
  if (options.via !== undefined)
    throw new SvcError('local_only', { message: 'This command connects from this machine. Omit --via.' });
}

/** Copies standard input and output over one connection until both directions end. */
async function carry(context: CliContext, aid: string, connectOptions: ConnectOptions): Promise<undefined> {
  refuseRemote(context);
  const { stdin, stdout } = context.io;
  const { tunnel } = await context.client.connect({ aid, ...connectOptions });
  const { host, port } = parseAddress(tunnel) ?? { host: '', port: 0 };
  const socket = connect({ host, port, allowHalfOpen: true });
  const down = pipeline(socket, stdout, { end: false });
  const up = pipeline(stdin, socket);
  try {
    // On a terminal the command ends when the other side ends. Other input is sent to its end.
    if (stdin.isTTY === true) await Promise.race([down, up.then(() => down)]);
    else await Promise.all([down, up]);
    return undefined;
  } catch (cause) {
    if (stdout.errored !== null)
      throw new SvcError('not_writable', { message: `The output cannot be written (${codeOf(cause)}).`, cause });
    throw new SvcError('connect_failed', { message: `The connection was lost (${codeOf(cause)}).`, cause });
  } finally {
    up.catch(() => {});
    down.catch(() => {});
    // An open terminal would keep the process running.
    stdin.destroy();
    socket.destroySoon();
  }
}

/** Quotes a word of a ProxyCommand. ssh expands `%` first, then a shell, or Windows, parses the result. */
export function quoted(word: string, platform: string = process.platform): string {
  const text = word.replaceAll('%', '%%');
  // No path and no AID contains a double quote on Windows.
  return platform === 'win32' ? `"${text}"` : `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * Runs a program and forwards signals to it.
 * @param onStart called with its process ID
 * @returns its exit code, as a shell reports it
 * @throws SvcError `not_found` if the program cannot be started
 */
export async function ended(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  onStart: (pid: number) => void = () => {},
): Promise<number> {
  // Installed before the start, so that a signal during the start reaches the child.
  const pass = (signal: NodeJS.Signals): void => {
    child.kill(signal);
  };
  for (const one of SIGNALS) process.on(one, pass);
  const child = spawn(program, args, { stdio: 'inherit', env });
  if (child.pid !== undefined) onStart(child.pid);
  try {
    const [code, signal]: unknown[] = await once(child, 'exit');
    if (typeof code === 'number') return code;
    return signalExitCode(signal);
  } catch (cause) {
    throw new SvcError('not_found', { message: `${program} cannot be started (${codeOf(cause)}).`, cause });
  } finally {
    for (const one of SIGNALS) process.off(one, pass);
  }
}

async function ssh(context: CliContext, destination: string, args: readonly string[], connectOptions: ConnectOptions) {
  refuseRemote(context);
  if (destination.startsWith('-'))
    throw new SvcError('invalid_request', { message: 'Name the agent first, then "--" and the ssh options.' });
  const at = destination.lastIndexOf('@') + 1;
  const aid = await context.aid(destination.slice(at));
  // Standard input of the command that ssh starts is the connection, so it cannot ask.
  const acting = connectOptions.local_aid ?? (context.interactive ? await context.oneOfSeveral() : undefined);
  const local = acting === undefined ? [] : ['--as', await context.aid(acting)];
  const program = [process.execPath, ownScript(), 'nc', ...local, aid];
  const options = [`ProxyCommand=${program.map((word) => quoted(word)).join(' ')}`, `HostKeyAlias=${aid}`];
  const { token } = context.connection;
  const env = {
    ...context.io.env,
    SVC_API: context.api,
    ...(token === undefined ? {} : { SVC_TOKEN: token }),
    ...(connectOptions.access_token === undefined ? {} : { SVC_ACCESS_TOKEN: connectOptions.access_token }),
  };
  // ssh also accepts options after the destination, up to the first word of a command.
  const words = [...options.flatMap((one) => ['-o', one]), `${destination.slice(0, at)}${aid}`, ...args];
  return { aid, exit_code: await ended('ssh', words, env) };
}

async function open(context: CliContext, aid: string, path: string, connectOptions: ConnectOptions) {
  refuseRemote(context);
  const { id, url: origin } = await context.client.originOpen({ aid, ...connectOptions });
  const url = `${origin}${path}`;
  const [program, ...args] = BROWSERS[process.platform] ?? ['xdg-open'];
  if (!context.interactive) return { url, origin_id: id, opened: false };
  const browser = spawn(program, [...args, url], { stdio: 'ignore', detached: true, env: { ...context.io.env } });
  browser.unref();
  const opened = await Promise.race([
    once(browser, 'spawn').then(() => true),
    once(browser, 'error').then(() => false),
  ]).catch(() => false);
  return { url, origin_id: id, opened };
}

export function connectCommands(svc: CommandGroup): void {
  svc.run('open', 'open a local address for an agent, and show it in a browser', {
    examples: ['svc open home', 'svc open aid1… /docs --quiet'],
    options: { '<aid>': 'the agent', '[path]': PATH, ...CONNECT_OPTIONS },
    progress: 'Connecting',
    run: (context, { aid, path, ...connectOptions }) => open(context, aid, path, connectOptions),
    text: ({ url, opened }) => (opened ? `Opened ${url} in your browser.` : url),
    quiet: ({ url }) => url,
  });
  svc.run('ssh', 'log in to the machine of an agent whose service is sshd', {
    examples: ['svc ssh me@home', 'svc ssh home -- uptime', 'svc ssh home -- -L 8080:localhost:80 -N'],
    options: {
      '<destination>': 'the agent, or user@agent',
      '[argument...]': 'after "--": ssh options, then a remote command',
      ...CONNECT_OPTIONS,
    },
    run: (context, { destination, argument, ...connectOptions }) => ssh(context, destination, argument, connectOptions),
    text: () => '',
    quiet: () => '',
    exit: ({ exit_code: code }) => code,
  });
  svc.run('nc', 'copy standard input and output over one connection to an agent', {
    examples: ['svc nc home', "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | svc nc home"],
    options: { '<aid>': 'the agent', ...CONNECT_OPTIONS },
    run: (context, { aid, ...connectOptions }) => carry(context, aid, connectOptions),
    text: () => '',
  });
}
