/**
 * Runs inside Wine: uses svcd as a person does, and writes one line of JSON for each check. Only modules of Node are
 * imported. Arguments: the folder for everything that the run writes, the package, and the backup of another system.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const [, , RUN = '', PACKAGE = '', BACKUP = ''] = process.argv;
const NODE = process.execPath;
const SVC = path.join(PACKAGE, 'bin', 'svc');
const SVCD = path.join(PACKAGE, 'bin', 'svcd');
const API_PORT = 28_121;
const LISTEN_PORT = 28_122;
const SERVICE_PORT = 18_099;
/** Time for one command, and until a state is reached, milliseconds. Node starts slowly in Wine. */
const LIMIT_MS = 240_000;

interface Result {
  readonly code: number | null;
  readonly text: string;
}

const at = (...names: readonly string[]): string => path.join(RUN, ...names);

function check(name: string, actual: unknown, expected: unknown): void {
  appendFileSync(at('checks.txt'), `${JSON.stringify({ name, actual, expected })}\n`);
}

/** Checks that a text contains a part. */
function contains(name: string, text: string, part: string): void {
  check(name, text.includes(part) ? part : text.slice(0, 600), part);
}

async function until<T>(what: () => T | false | Promise<T | false>): Promise<T | false> {
  const end = performance.now() + LIMIT_MS;
  for (;;) {
    const found = await Promise.resolve(what()).catch(() => false as const);
    if (found !== false || performance.now() > end) return found;
    await pause(100);
  }
}

function run(
  program: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
  output?: number,
): Promise<Result> {
  const child = spawn(NODE, [program, ...args], {
    env: { ...process.env, ...environment },
    cwd: RUN,
    stdio: ['pipe', output ?? 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data: Buffer) => (text += data));
  child.stdin?.end();
  const limit = setTimeout(() => child.kill(), LIMIT_MS);
  return new Promise((resolve) => {
    child.on('close', (code) => {
      clearTimeout(limit);
      resolve({ code, text: text.replaceAll(/^.*extra certs.*\n/gm, '').replaceAll('\r\n', '\n') });
    });
  });
}

class TestNode {
  readonly dataDir: string;
  readonly #port: number;
  #child: ChildProcess | null = null;
  output = '';

  constructor(dataDir: string, port = API_PORT) {
    this.dataDir = dataDir;
    this.#port = port;
  }

  get environment(): NodeJS.ProcessEnv {
    return { SVCD_NETWORK: 'wine', SVCD_MDNS: 'false', SVCD_DATA_DIR: this.dataDir };
  }

  get api(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** False if it ends before its API responds. */
  async start(): Promise<boolean> {
    const listen = LISTEN_PORT + this.#port - API_PORT;
    const args = ['--api-addr', `127.0.0.1:${this.#port}`, '--listen', `127.0.0.1:${listen}`, '--no-open-browser'];
    const child = spawn(NODE, [SVCD, ...args], {
      env: { ...process.env, ...this.environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (this.output += data));
    await until(async () => child.exitCode !== null || (await fetch(`${this.api}/health`)).ok);
    return child.exitCode === null;
  }

  svc(...args: readonly string[]): Promise<Result> {
    return run(SVC, ['--api', this.api, ...args], this.environment);
  }

  /** The number with which its process exits. */
  ended(): Promise<number | null | false> {
    return until(() => this.#child?.exitCode ?? false);
  }

  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL');
    await until(() => this.#child?.signalCode !== null || this.#child.exitCode !== null);
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** A file that a program writes, without line ends. False until it exists. */
function written(name: string): string | false {
  const file = at(name);
  return existsSync(file) && readFileSync(file, 'utf8').trim();
}

const WORDS = ['plain', 'two words', 'a"b', '%PATH%', '100%', '^x', 'a&b|c', '(y)', 'ünï 漢', '', 'back\\', '!z!'];

const PROGRAMS: Readonly<Record<string, string>> = {
  'args.js': `require('fs').writeFileSync(process.argv[2], JSON.stringify(process.argv.slice(3)))`,
  'args.cmd': `@echo off\r\n"${NODE}" "%~dp0args.js" %*\r\n`,
  'tree.js': `const c = require('child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' });
require('fs').writeFileSync('tree.txt', process.pid + ' ' + c.pid); setInterval(() => {}, 1000);`,
  'slow.js': `const fs = require('fs'); fs.appendFileSync('slow.txt', 'start ');
setInterval(() => { if (fs.existsSync('go')) { fs.appendFileSync('slow.txt', 'end'); process.exit(); } }, 50);`,
  'answer.js': `let t = ''; process.stdin.on('data', (d) => (t += d)).on('end', () =>
process.stdout.write('answer to ' + JSON.parse(t).call.path));`,
  'server.js': `require('fs').writeFileSync('server.txt', String(process.pid));
require('http').createServer((q, r) => r.end('on demand')).listen(process.env.PORT, '127.0.0.1');`,
};

async function hooks(node: TestNode): Promise<void> {
  const on = (...args: readonly string[]): Promise<Result> => node.svc('on', 'note', '--as', 'bob', ...args);
  const note = (): Promise<Result> => node.svc('note', 'send', 'bob', '--text', 'hello', '--as', 'ann');
  const clear = async (): Promise<void> => {
    const { text } = await node.svc('hooks', '--quiet');
    for (const id of text.split('\n').filter((one) => one !== '')) await node.svc('hooks', 'remove', id);
  };
  check('hook: a program by its name', (await on('--', 'cmd', '/c', `more > ${at('name.txt')}`)).code, 0);
  const cmd = `${process.env['SystemRoot']}\\System32\\cmd.exe`;
  check('hook: a program by its path', (await on('--', cmd, '/c', `more > ${at('path.txt')}`)).code, 0);
  check('hook: a text for the shell', (await on('--shell', `more > "${at('shell text.txt')}"`)).code, 0);
  for (const [name, program] of Object.entries({ exe: [NODE, at('args.js')], cmd: [at('args.cmd')] }))
    check(`hook: ${name} with arguments`, (await on('--', ...program, at(`${name}.json`), ...WORDS)).code, 0);
  const lines = await on('--', at('args.cmd'), 'a\nb');
  contains(
    'hook: a line break for a batch file is an error',
    lines.text,
    'cannot receive an argument with a line break',
  );
  contains('hook: a script without its program', (await on('--', at('args.js'))).text, 'A script needs the program');
  await note();
  for (const name of ['name.txt', 'path.txt', 'shell text.txt'])
    check(`hook: ${name} has the note`, (await until(() => written(name))) !== false, true);
  for (const name of ['exe.json', 'cmd.json'])
    check(`hook: arguments in ${name}`, await until(() => written(name)), JSON.stringify(WORDS));
  await clear();

  await on('--timeout', '2', '--', NODE, at('tree.js'));
  await note();
  const pids = String(await until(() => written('tree.txt')))
    .split(' ')
    .map(Number);
  check('hook: two processes', pids.length, 2);
  check('hook: both end with the time limit', await until(() => !pids.some(isAlive)), true);
  await clear();

  await on('--', NODE, at('slow.js'));
  await note();
  await until(() => written('slow.txt'));
  await node.kill();
  check('daemon: starts again after it was killed', await node.start(), true);
  writeFileSync(at('go'), '');
  const [id = ''] = (await node.svc('hooks', '--quiet')).text.split('\n');
  const done = async (): Promise<boolean> => (await node.svc('hooks', 'deliveries', id)).text.includes('done');
  check('hook: its program outlives the daemon, and its result is stored', await until(done), true);
  check('hook: it ran once', written('slow.txt'), 'start end');
  await clear();

  await node.svc('on', 'call', '--as', 'bob', '--', NODE, at('answer.js'));
  check('hook: answers a call', (await node.svc('get', 'bob', '/q', '--as', 'ann')).text.trim(), 'answer to /q');
  await clear();
}

async function services(node: TestNode): Promise<void> {
  const serve = await node.svc('serve', '--on-demand', '--name', 'demand', '--', NODE, at('server.js'));
  check('service on demand: set', serve.code, 0);
  check('service on demand: not running yet', written('server.txt'), false);
  check('service on demand: answers', (await node.svc('get', 'demand', '/', '--as', 'ann')).text.trim(), 'on demand');
  const pid = Number(written('server.txt'));
  check('service on demand: runs', isAlive(pid), true);
  await node.svc('serve', '--off', '--as', 'demand');
  check('service on demand: its process ends', await until(() => !isAlive(pid)), true);
}

/** Names of offers that Windows does not have, or has for something else, and one that exists in other letters. */
const OFFERED = ['CON', 'a:b', 'x.', 'x ', 'NUL.txt', 'A.txt', 'ünï.txt'];
const RECEIVED = ['A (1).txt', '_CON', '_NUL.txt', 'a.txt', 'a_b', 'x', 'x (1)', 'ünï.txt'];

async function files(node: TestNode): Promise<void> {
  const into = 'C:\\received';
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into);
  writeFileSync(path.join(into, 'a.txt'), 'mine');
  writeFileSync(at('offer'), 'x');
  for (const name of OFFERED) await node.svc('send', at('offer'), 'bob', '--name', name, '--as', 'ann', '--no-wait');
  check('files: all are received', (await node.svc('receive', '-y', '--as', 'bob', '--into', into)).code, 0);
  check('files: under safe names', readdirSync(into).toSorted(), RECEIVED);
  check('files: an own file stays', readFileSync(path.join(into, 'a.txt'), 'utf8'), 'mine');
  const long = path.join('C:\\long', ...Array.from({ length: 5 }, () => 'l'.repeat(60)));
  mkdirSync(long, { recursive: true });
  writeFileSync(path.join(long, 'f.txt'), 'x');
  check(
    'files: a path of 300 characters',
    (await node.svc('send', path.join(long, 'f.txt'), 'bob', '--as', 'ann', '--no-wait')).code,
    0,
  );
  for (const name of ['NUL', 'key:b', 'key.']) {
    const { code, text } = await node.svc('register', '--label', 'lost', '--no-publish', '--save-master', at(name));
    check(`keys: ${name} is refused`, [code !== 0, text.includes('Choose another one')], [true, true]);
  }
  check('keys: nothing was registered', (await node.svc('agents', 'list')).text.includes('lost'), false);
}

async function configuration(node: TestNode): Promise<void> {
  const file = path.join(node.dataDir, 'config.toml');
  const reader = openSync(file, 'r');
  const held = await node.svc('config', 'set', 'log_level', 'debug');
  closeSync(reader);
  check('config: a file that is open elsewhere is written', held.code, 0);
  check(
    'config: byte order mark and line ends stay',
    readFileSync(file, 'utf8'),
    '\ufeffauto_publish = false\r\nlog_level = "debug"\r\n',
  );
  check(
    'config: no temporary file remains',
    readdirSync(node.dataDir).filter((name) => name.endsWith('.tmp')),
    [],
  );
}

async function backups(node: TestNode): Promise<void> {
  writeFileSync(at('password.txt'), '\ufeffa long password\r\n', 'utf16le');
  const password = ['--password-file', at('password.txt')];
  check('backup: written', (await node.svc('backup', at('windows.svcd'), ...password)).code, 0);
  const other = new TestNode(at('restored'), API_PORT + 10);
  const restored = await run(SVC, ['restore', BACKUP, '--data-dir', other.dataDir, ...password], other.environment);
  check('restore: a backup of Linux', [restored.code, restored.code === 0 ? '' : restored.text], [0, '']);
  check('restore: its daemon starts', await other.start(), true);
  contains('restore: its agent is there', (await other.svc('agents', 'list')).text, 'linus');
  await other.svc('stop');
  check('restore: its daemon stops', await other.ended(), 0);
}

async function places(node: TestNode): Promise<void> {
  const second = new TestNode(node.dataDir, API_PORT + 20);
  check('second daemon: not in the same data directory', await second.start(), false);
  contains('second daemon: the error names the first', second.output, 'runs on the data directory');
  for (const [name, dataDir] of Object.entries({
    'a path of 300 characters': path.join('C:\\long', ...Array.from({ length: 5 }, () => 'd'.repeat(60))),
    'a path with \\\\?\\': '\\\\?\\C:\\namespaced',
    'another drive, with blanks and other letters': at('data ünï 漢'),
    'in ProgramData': path.join(process.env['ProgramData'] ?? '', 'svcd-lab'),
  })) {
    rmSync(dataDir, { recursive: true, force: true });
    const one = new TestNode(dataDir, API_PORT + 20);
    check(`data directory: ${name}`, (await one.start()) || one.output.slice(-600), true);
    await one.svc('stop');
    await one.ended();
  }
  const addon = path.join(PACKAGE, '..', 'udx-native', 'prebuilds');
  renameSync(addon, `${addon}.away`);
  const without = new TestNode(at('without'), API_PORT + 20);
  check('without udx-native: the daemon starts', await without.start(), true);
  contains('without udx-native: the status names it', (await without.svc('status')).text, 'udx-native');
  await without.svc('stop');
  await without.ended();
  renameSync(`${addon}.away`, addon);
}

const HOSTS = ['claude-code', 'claude-desktop', 'cursor', 'vscode', 'windsurf', 'gemini-cli', 'codex'];

async function assistants(node: TestNode): Promise<void> {
  // Some programs of Windows pass this on with other letters than ASCII.
  const home = at('Jürgen 漢');
  const environment = {
    ...node.environment,
    USERPROFILE: home,
    HOME: home,
    APPDATA: path.join(home, 'AppData', 'Roaming'),
  };
  mkdirSync(home);
  for (const host of HOSTS) {
    const { code, text } = await run(SVCD, ['mcp', 'add', host], environment);
    check(`mcp add ${host}`, [code, code === 0 ? '' : text], [0, '']);
    contains(`mcp add ${host} again`, (await run(SVCD, ['mcp', 'add', host], environment)).text, 'already');
  }
  const { text } = await run(SVCD, ['service', 'install', '--dry-run'], node.environment);
  const [, xml = ''] = /svcd-task\.xml:\n((?: {4}.*\n)+)/.exec(text) ?? [];
  writeFileSync(at('task.xml'), `\ufeff${xml.replaceAll(/^ {4}/gm, '').replaceAll('\n', '\r\n')}`, 'utf16le');
  const { status, stdout } = spawnSync('schtasks.exe', ['/create', '/tn', 'svcd-lab', '/f', '/xml', at('task.xml')], {
    encoding: 'utf8',
  });
  check('service: Task Scheduler accepts the definition', [status, status === 0 ? '' : stdout], [0, '']);
  contains(
    'completion: PowerShell',
    (await run(SVC, ['completion', 'powershell'], node.environment)).text,
    'Register-ArgumentCompleter',
  );
}

const node = new TestNode(at('data'));
for (const [name, text] of Object.entries(PROGRAMS)) writeFileSync(at(name), text);
mkdirSync(node.dataDir);
writeFileSync(path.join(node.dataDir, 'config.toml'), '\ufeffauto_publish = false\r\n');
createServer((request, response) => response.end(`hello ${request.url}`)).listen(SERVICE_PORT, '127.0.0.1');

check('daemon: starts without the QUIC engine', (await node.start()) || node.output, true);
contains('status: names the missing engine', (await node.svc('status')).text, '@chainsafe/libp2p-quic-win32-x64-msvc');
contains('doctor: names the missing engine', (await node.svc('doctor')).text, '@chainsafe/libp2p-quic-win32-x64-msvc');
const output = openSync(at('register.txt'), 'w');
const registered = await run(
  SVC,
  ['--api', node.api, 'register', '--label', 'bob', '--no-publish'],
  node.environment,
  output,
);
closeSync(output);
check('register: with its output in a file', [registered.code, registered.text.includes('EINVAL')], [0, false]);
contains('register: the file has the key', readFileSync(at('register.txt'), 'utf8'), 'master key');
check(
  'register: with a file for the key',
  (await node.svc('register', '--label', 'ann', '--no-publish', '--save-master', at('ann.key'))).code,
  0,
);
check('bind', (await node.svc('inbound', 'bind', '--as', 'bob', '--addr', `127.0.0.1:${SERVICE_PORT}`)).code, 0);
check('call', (await node.svc('get', 'bob', '/x', '--as', 'ann')).text.trim(), 'hello /x');
const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'lab', version: '1' } },
};
const mcp = spawnSync(NODE, [SVCD, '--mcp-stdio'], {
  env: { ...process.env, ...node.environment },
  input: `${JSON.stringify(initialize)}\n`,
  encoding: 'utf8',
  timeout: LIMIT_MS,
});
contains('MCP on standard input', mcp.stdout, '"serverInfo":{"name":"svcd"');
for (const part of [hooks, services, files, configuration, backups, places, assistants])
  try {
    await part(node);
  } catch (error) {
    check(`${part.name}: runs to its end`, String(error), '');
  }
contains('logs', (await node.svc('logs')).text, 'svcd is ready');
check('stop', (await node.svc('stop')).code, 0);
check('daemon: exit code', await node.ended(), 0);
check(
  'daemon: no errors in its log',
  node.output
    .split('\n')
    .filter((line) => / ERROR /.test(line))
    .slice(0, 4),
  [],
);
writeFileSync(at('done'), '');
process.exit(0);
