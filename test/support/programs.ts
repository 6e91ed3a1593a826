/** External programs that tests use: OpenSSH, PostgreSQL, curl, wrk. `.ci/run` installs them. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, globSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, Server } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { codeOf } from '../../src/foundation/errors.ts';
import { eventually } from './eventually.ts';
import { dial } from './tcp.ts';

export interface Output {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end. */
export async function run(
  program: string,
  args: readonly string[],
  options: { readonly input?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Output> {
  const child = spawn(program, args, { env: { ...process.env, ...options.env } });
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  // A program that exits without reading reports the reason with its exit code.
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '');
  const [code]: unknown[] = await once(child, 'close');
  return { code: typeof code === 'number' ? code : null, ...output };
}

/** Like `run`, for a program that must succeed. */
export async function runOk(
  program: string,
  args: readonly string[],
  options: { readonly input?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<string> {
  const { code, stdout, stderr } = await run(program, args, options);
  if (code !== 0) throw new Error(`${program} ${args.join(' ')}: exit code ${code}\n${stdout}\n${stderr}`);
  return stdout;
}

function listens(port: number): Promise<boolean> {
  return dial(`127.0.0.1:${port}`).then(
    (socket) => (socket.destroy(), true),
    () => false,
  );
}

/** Ports that the system never assigns: `ip_local_port_range` starts above them. */
const QUIET_PORTS = { first: 20_000, count: 10_000 };

/** One file per reserved port, so that tests in other processes choose another port. */
const CLAIMS = join(tmpdir(), 'svcd-reserved-ports');
/** Tests of other users, also in user namespaces, add their files. They cannot remove the files of others. */
const CLAIMS_MODE = 0o1777;
const claimed = new Set<number>();

/** Reserves a port for this process. False if another test has it. */
function claim(port: number): boolean {
  if (claimed.has(port)) return false;
  const isNew = mkdirSync(CLAIMS, { recursive: true }) !== undefined;
  if (isNew) chmodSync(CLAIMS, CLAIMS_MODE);
  try {
    writeFileSync(join(CLAIMS, String(port)), '', { flag: 'wx' });
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
  if (claimed.size === 0)
    process.once('exit', () => {
      for (const one of claimed) rmSync(join(CLAIMS, String(one)), { force: true });
    });
  claimed.add(port);
  return true;
}

/** A free port of 127.0.0.1 for TCP and UDP that the system never assigns, for programs that start later or restart. */
export async function quietPort(): Promise<number> {
  for (;;) {
    const port = QUIET_PORTS.first + randomInt(QUIET_PORTS.count);
    const isOurs = claim(port) && (await isFree(createServer(), port)) && (await isFree(createSocket('udp4'), port));
    if (isOurs) return port;
  }
}

/** True if a port of 127.0.0.1 can be bound. The socket is closed again. */
async function isFree(socket: Server | Socket, port: number): Promise<boolean> {
  const bound = once(socket, 'listening').then(
    () => true,
    () => false,
  );
  if (socket instanceof Server) socket.listen(port, '127.0.0.1');
  else socket.bind(port, '127.0.0.1');
  if (!(await bound)) return false;
  const closed = once(socket, 'close');
  socket.close();
  await closed;
  return true;
}

/** A program that runs until the test ends. */
export class Service {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(port: number, child: ChildProcess) {
    this.port = port;
    this.#child = child;
  }

  static async start(
    port: number,
    program: string,
    args: readonly string[],
    isReady: () => Promise<boolean> = () => listens(port),
  ): Promise<Service> {
    const child = spawn(program, args, { stdio: 'ignore' });
    await eventually(`${program} serves at port ${port}`, isReady);
    return new Service(port, child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await exited;
  }
}

/** An OpenSSH server with its own keys, and how `ssh` and `scp` reach it. */
export async function sshServer(directory: string): Promise<{ service: Service; identity: string; user: string }> {
  const path = (name: string): string => join(directory, name);
  for (const key of ['host', 'client']) await runOk('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path(key)]);
  writeFileSync(path('authorized_keys'), '');
  await runOk('cp', [path('client.pub'), path('authorized_keys')]);
  chmodSync(path('authorized_keys'), 0o600);
  // Required by the server when it runs as root.
  if (userInfo().uid === 0 && !existsSync('/run/sshd')) mkdirSync('/run/sshd', { mode: 0o755 });
  const port = await quietPort();
  const lines = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${path('host')}`,
    `AuthorizedKeysFile ${path('authorized_keys')}`,
    `PidFile ${path('pid')}`,
    'StrictModes no',
    'UsePAM no',
    'PasswordAuthentication no',
    'PermitRootLogin prohibit-password',
    'Subsystem sftp internal-sftp',
  ];
  writeFileSync(path('sshd_config'), `${lines.join('\n')}\n`);
  return {
    service: await Service.start(port, '/usr/sbin/sshd', ['-D', '-f', path('sshd_config')]),
    identity: path('client'),
    user: userInfo().username,
  };
}

/** A PostgreSQL server with an empty database. It refuses to run as root, so it gets its own user. */
export async function postgresServer(directory: string): Promise<Service> {
  const bin = globSync('/usr/lib/postgresql/*/bin').at(-1);
  if (bin === undefined) throw new Error('PostgreSQL is not installed');
  const data = join(directory, 'data');
  const asUser = (args: readonly string[]): [string, readonly string[]] =>
    userInfo().uid === 0 ? ['runuser', ['-u', 'postgres', '--', ...args]] : [args[0] ?? '', args.slice(1)];
  if (userInfo().uid === 0) {
    const uid = Number(spawnSync('id', ['-u', 'postgres'], { encoding: 'utf8' }).stdout);
    chownSync(directory, uid, uid);
    chmodSync(directory, 0o711);
  }
  const [program, args] = asUser([
    `${bin}/initdb`,
    '-D',
    data,
    '-U',
    'tester',
    '-A',
    'trust',
    '--no-locale',
    '--no-sync',
  ]);
  await runOk(program, args);
  const port = await quietPort();
  const [server, serverArgs] = asUser([
    `${bin}/postgres`,
    '-D',
    data,
    '-p',
    String(port),
    '-h',
    '127.0.0.1',
    '-k',
    '',
    '-F',
  ]);
  // It listens for a while before it accepts connections.
  const isReady = async (): Promise<boolean> =>
    (await run(`${bin}/pg_isready`, ['-q', '-h', '127.0.0.1', '-p', String(port)])).code === 0;
  return Service.start(port, server, serverArgs, isReady);
}
