/** The README and the guides of `docs/guides/`, typed as written, on machines behind NATs. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { pythonTools } from '../../tools/python-environment.ts';
import { eventually } from '../support/eventually.ts';
import { type GuideStep, guideSteps, Reader } from '../support/guide.ts';
import { Internet } from '../support/lab/internet.ts';
import { behindLimits } from '../support/lab/limits/limits.ts';
import type { Machine } from '../support/lab/namespaces.ts';
import type { MachineShell } from '../support/lab/shell.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const ROOT = join(import.meta.dirname, '../..');
const GUIDES = join(ROOT, 'docs/guides');
const TOOL_SERVER = fileURLToPath(new URL('../support/tool-server-process.ts', import.meta.url));

function stepsOf(name: string): GuideStep[] {
  return guideSteps(readFileSync(join(GUIDES, name), 'utf8'));
}

interface Shells {
  readonly home: MachineShell;
  readonly laptop: MachineShell;
}

/** Waits until something listens on a port of a machine. */
async function untilListening(shell: MachineShell, port: number): Promise<void> {
  await eventually(`port ${port} listens`, async () =>
    (await shell.type(`(: < /dev/tcp/127.0.0.1/${port}) 2>/dev/null && echo open || true`)).includes('open'),
  );
}

/**
 * Prepares what a guide expects on the reader's machines.
 * @returns the reason why this is not possible here, or null
 */
type Preparation = (shells: Shells) => Promise<string | null>;

const nothing: Preparation = async () => null;

/** Servers that change to another user need to start as root. */
const isRoot = userInfo().uid === 0;

async function sshd({ home, laptop }: Shells): Promise<string | null> {
  if (!isRoot || !existsSync('/usr/sbin/sshd')) return 'needs root and openssh-server';
  const key = join(laptop.home, 'key');
  await laptop.type(`ssh-keygen -q -t ed25519 -N '' -f '${key}'`);
  const options = [
    'Port=22',
    'ListenAddress=127.0.0.1',
    `HostKey=${join(home.home, 'host')}`,
    `AuthorizedKeysFile=${key}.pub`,
    `PidFile=${join(home.home, 'sshd.pid')}`,
    'StrictModes=no',
    'UsePAM=no',
  ].map((option) => `-o ${option}`);
  await home.type(`ssh-keygen -q -t ed25519 -N '' -f host
mkdir -p /run/sshd
/usr/sbin/sshd -D -f /dev/null ${options.join(' ')} &`);
  await untilListening(home, 22);
  // ssh looks for its files in the home folder of the user database: that of the user who runs the tests.
  const settings = `-F none -i '${key}' -o UserKnownHostsFile='${key}.hosts' -o StrictHostKeyChecking=accept-new`;
  writeFileSync(join(laptop.home, 'bin/ssh'), `#!/bin/sh\nexec /usr/bin/ssh ${settings} -o LogLevel=ERROR "$@"\n`, {
    mode: 0o755,
  });
  return null;
}

async function postgres({ home }: Shells): Promise<string | null> {
  const bin = globSync('/usr/lib/postgresql/*/bin').at(-1);
  if (!isRoot || bin === undefined) return 'needs root and postgresql';
  await home.type(`mkdir data && chown postgres data
runuser -u postgres -- ${bin}/initdb -D data -U tester -A trust --no-locale --no-sync > /dev/null
runuser -u postgres -- ${bin}/postgres -D data -p 5432 -h 127.0.0.1 -k '' -F > postgres.log 2>&1 &`);
  // It listens for a while before it accepts connections.
  const look = `${bin}/pg_isready -q -h 127.0.0.1 -p 5432 && echo ready || true`;
  await eventually('the database accepts connections', async () => (await home.type(look)).includes('ready'));
  return null;
}

async function modelPage({ home }: Shells): Promise<null> {
  const page = `require('http').createServer((q, s) => s.end('<h1>my model</h1>')).listen(8080, '127.0.0.1')`;
  await home.type(`'${process.execPath}' -e "${page}" &`);
  await untilListening(home, 8080);
  return null;
}

async function toolServer({ home }: Shells): Promise<null> {
  await home.type(`'${process.execPath}' '${TOOL_SERVER}' 3000 &`);
  await untilListening(home, 3000);
  return null;
}

/** The Python and TypeScript programs of the guide need Python with requests, and the package installed. */
async function programs({ home, laptop }: Shells): Promise<string | null> {
  const python = pythonTools();
  if (python === null) return 'needs the packages of test/python/requirements.txt: node tools/python-tools.ts';
  for (const shell of [home, laptop]) {
    writeFileSync(join(shell.home, 'bin/python3'), `#!/bin/sh\nexec '${join(ROOT, python)}' "$@"\n`, { mode: 0o755 });
    mkdirSync(join(shell.home, 'node_modules'));
    symlinkSync(ROOT, join(shell.home, 'node_modules/svcd'));
    writeFileSync(join(shell.home, 'package.json'), '{ "type": "module" }');
  }
  return null;
}

const PREPARATIONS: Readonly<Record<string, Preparation>> = {
  'assistants.md': nothing,
  'database.md': postgres,
  'file.md': nothing,
  'friend.md': programs,
  'mcp-server.md': toolServer,
  'model.md': modelPage,
  'ssh-home.md': sshd,
};

/** The page that sets up the machines of all guides. */
const SETUP = 'vps.md';
/** Pages of `docs/guides/` that do not use these machines. */
const OTHER_PAGES = ['README.md', 'tour.md', 'sandbox.md', SETUP];

/** Unbinds the agent at home and clears its access list, because each guide starts without either. */
const FRESH_AGENT = `
  const api = 'http://127.0.0.1:2121';
  const { agents: [{ aid }] } = await (await fetch(api + '/agents')).json();
  const unbind = { method: 'PATCH', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ service_tcp: '' }) };
  const unbound = await fetch(api + '/agents/' + aid, unbind);
  if (!unbound.ok) throw new Error(await unbound.text());
  const acl = api + '/agents/' + aid + '/acl';
  const lists = await (await fetch(acl)).json();
  for (const list of ['allow', 'deny'])
    for (const { id } of lists[list]) {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(acl + '/' + list + '/' + id, { method: 'DELETE', headers, body: '{}' });
      if (!answer.ok) throw new Error(await answer.text());
    }`;

async function startDaemon(shell: MachineShell): Promise<void> {
  await shell.type('svcd --no-open-browser > svcd.log 2>&1 &');
  await untilListening(shell, 2121);
}

/**
 * A small Internet, and a reader who types at its machines. The caller disposes of the reader first. Without namespaces
 * it returns null, and the test is skipped.
 */
async function lab(
  t: TestContext,
): Promise<{ reader: Reader; internet: Internet; sit: (name: string, machine: Machine) => MachineShell } | null> {
  const internet = await Internet.start(t);
  if (internet === null) return null;
  const root = temporaryDirectory(t);
  // Servers that run as another user store their data in this folder.
  chmodSync(root, 0o711);
  const reader = new Reader();
  const sit = (name: string, machine: Machine): MachineShell => {
    const home = join(root, name);
    mkdirSync(home, { mode: 0o711 });
    return reader.sit(name, machine, home, [join(ROOT, 'node_modules/.bin')]);
  };
  return { reader, internet, sit };
}

test('the first call of the README succeeds between a public machine and one behind a NAT', async (t) => {
  const world = await lab(t);
  if (world === null) return;
  const { internet, sit } = world;
  await using reader = world.reader;
  const server = sit('server', await internet.publicMachine('server', [10]));
  const laptop = sit('laptop', await internet.behind('laptop', ['cone']));
  await Promise.all([startDaemon(server), startDaemon(laptop)]);
  const steps = guideSteps(readFileSync(join(ROOT, 'README.md'), 'utf8'));
  const commands = steps.flatMap(({ text }) => text.trim().split('\n')).filter((line) => line.startsWith('svc '));
  assert.deepEqual(
    commands.map((line) => line.split(' ')[1]),
    ['invite', 'serve', 'join', 'get'],
  );
  for (const step of steps) {
    await reader.follow(step);
    if (step.text.startsWith('node ')) await untilListening(server, 8080);
  }
});

test('the tour works as described', async (t) => {
  const world = await lab(t);
  if (world === null) return;
  const { internet, sit } = world;
  await using reader = world.reader;
  const shell = sit('tour', await internet.behind('tour', ['cone']));
  for (const step of stepsOf('tour.md')) {
    await reader.follow(step);
    // A person types slowly enough for a started daemon to listen.
    if (step.text.includes('svcd --data-dir')) for (const port of [2141, 2151]) await untilListening(shell, port);
    if (step.text.includes('listen(8081')) await untilListening(shell, 8081);
  }
});

test('a node in a sandbox joins through a proxy with a password, in one line', async (t) => {
  const world = await lab(t);
  if (world === null) return;
  const { internet, sit } = world;
  await using reader = world.reader;
  const vps = sit('vps', await internet.publicMachine('vps', [10]));
  await startDaemon(vps);
  const { machine, env, leave } = await behindLimits(internet, 'sandbox', 'proxy-password');
  t.after(leave);
  const sandbox = sit('sandbox', machine);
  for (const [name, value] of Object.entries(env)) await sandbox.type(`export ${name}='${value}'`);
  for (const step of stepsOf('sandbox.md')) await reader.follow(step);
});

test('each guide works as described', async (t) => {
  const world = await lab(t);
  if (world === null) return;
  const { internet, sit } = world;
  await using reader = world.reader;
  const vps = sit('vps', await internet.publicMachine('vps', [10]));
  const home = sit('home', await internet.behind('home', ['cone']));
  const laptop = sit('laptop', await internet.behind('laptop', ['cone']));
  await Promise.all([vps, home, laptop].map(startDaemon));
  for (const step of stepsOf(SETUP)) await reader.follow(step);
  const begin = async (t: TestContext, guide: string): Promise<void> => {
    const missing = await PREPARATIONS[guide]?.({ home, laptop });
    if (missing === undefined) assert.fail(`no test runs ${guide}`);
    if (missing !== null) return t.skip(missing);
    await home.type(`'${process.execPath}' --input-type=module -e "${FRESH_AGENT}"`);
    const steps = stepsOf(guide);
    assert.ok(steps.length > 0, 'the guide has no step');
    for (const step of steps) {
      // A request arrives in the background, and a person accepts it after it has arrived.
      if (step.text.startsWith('svc chat accept'))
        await eventually('the request has arrived', async () =>
          /"in_pending":\s*\[\s*\{/.test(await home.type('svc chat contacts --json')),
        );
      await reader.follow(step);
      if (step.text.startsWith('python3 weather.py')) await untilListening(home, 8000);
    }
  };
  for (const guide of readdirSync(GUIDES))
    if (!OTHER_PAGES.includes(guide)) await t.test(guide, (t) => begin(t, guide));
});
