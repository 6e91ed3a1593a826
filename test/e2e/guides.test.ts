/** The guides of `docs/guides/`, typed as they are written, on two machines behind routers that let nobody in. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually } from '../support/eventually.ts';
import { type GuideStep, guideSteps, Reader } from '../support/guide.ts';
import { Internet } from '../support/lab/internet.ts';
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
async function listens(shell: MachineShell, port: number): Promise<void> {
  await eventually(`port ${port} listens`, async () =>
    (await shell.type(`(: < /dev/tcp/127.0.0.1/${port}) 2>/dev/null && echo open || true`)).includes('open'),
  );
}

/**
 * What a guide takes for granted on its reader's machines.
 * @returns why it cannot be had here; null where all of it is there
 */
type Preparation = (shells: Shells) => Promise<string | null>;

const nothing: Preparation = async () => null;

/** Servers that change to another user need a root who is one. */
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
  await listens(home, 22);
  // ssh looks for its files in the home that the system knows, which is that of whoever runs the tests.
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
  // It listens for a while before it takes anybody.
  const look = `${bin}/pg_isready -q -h 127.0.0.1 -p 5432 && echo ready || true`;
  await eventually('the database takes whoever comes', async () => (await home.type(look)).includes('ready'));
  return null;
}

async function modelPage({ home }: Shells): Promise<null> {
  const page = `require('http').createServer((q, s) => s.end('<h1>my model</h1>')).listen(8080, '127.0.0.1')`;
  await home.type(`'${process.execPath}' -e "${page}" &`);
  await listens(home, 8080);
  return null;
}

async function toolServer({ home }: Shells): Promise<null> {
  await home.type(`'${process.execPath}' '${TOOL_SERVER}' 3000 &`);
  await listens(home, 3000);
  return null;
}

const PREPARATIONS: Readonly<Record<string, Preparation>> = {
  'assistants.md': nothing,
  'database.md': postgres,
  'file.md': nothing,
  'mcp-server.md': toolServer,
  'model.md': modelPage,
  'ssh-home.md': sshd,
};

/** Unbinds the agent at home and takes back who may call it, as each guide begins with one that has neither. */
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
  await listens(shell, 2121);
}

test('each guide does what it says', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const root = temporaryDirectory(t);
  // Servers that run as another user have their data below it.
  chmodSync(root, 0o711);
  await using reader = new Reader();
  const sit = async (name: string, machine: Machine): Promise<MachineShell> => {
    const home = join(root, name);
    mkdirSync(home, { mode: 0o711 });
    const shell = reader.sit(name, machine, home, [join(ROOT, 'node_modules/.bin')]);
    await startDaemon(shell);
    return shell;
  };
  const [, home, laptop] = await Promise.all([
    sit('open', await internet.publicMachine('open', [10])),
    sit('home', await internet.behind('home', ['cone'])),
    sit('laptop', await internet.behind('laptop', ['cone'])),
  ]);
  for (const step of stepsOf('README.md')) await reader.follow(step);
  const begin = async (t: TestContext, guide: string): Promise<void> => {
    const missing = await PREPARATIONS[guide]?.({ home, laptop });
    if (missing === undefined) assert.fail(`${guide} is tried by nobody`);
    if (missing !== null) return t.skip(missing);
    await home.type(`'${process.execPath}' --input-type=module -e "${FRESH_AGENT}"`);
    const steps = stepsOf(guide);
    assert.ok(steps.length > 0, 'it has no step');
    for (const step of steps) {
      // A request is carried in the background, and a person types the answer to one that has come.
      if (step.commands.startsWith('svc chat accept'))
        await eventually('the request has come', async () =>
          /"in_pending":\s*\[\s*\{/.test(await home.type('svc chat contacts --json')),
        );
      await reader.follow(step);
    }
  };
  for (const guide of readdirSync(GUIDES)) if (guide !== 'README.md') await t.test(guide, (t) => begin(t, guide));
});
