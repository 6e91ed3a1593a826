/** The README and the guides of `docs/guides/`, typed as written, on machines behind NATs. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
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
import { ConfiguredTools } from '../support/lab/configured-tools.ts';
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
  'wake.md': nothing,
};

/** The page that sets up the machines of all guides. */
const SETUP = 'vps.md';
/** Pages of `docs/guides/` that do not use these machines. `public-address.test.ts` types the commands of public-address.md. */
const OTHER_PAGES = ['README.md', 'tour.md', 'sandbox.md', 'systemd.md', 'public-address.md', SETUP];

/** Clears the access list of the agent at home. It stays bound to the service of an earlier guide. */
const EMPTY_ACL = `
  const acl = 'http://127.0.0.1:2121/agents/home/acl';
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

/** The tracked files of this checkout with their present content, as `git clone` would give them. */
function cloneTo(folder: string): void {
  const { stdout } = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const name of stdout.split('\0').filter((one) => one !== '' && existsSync(join(ROOT, one))))
    cpSync(join(ROOT, name), join(folder, name));
}

/** The lab has no registry: `npm ci` gets the packages of this checkout. Everything else is the real npm. */
function npmWithoutRegistry(shell: MachineShell): void {
  const npm = spawnSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).stdout.trim();
  writeFileSync(
    join(shell.home, 'bin/npm'),
    `#!/bin/sh\n[ "$1" = ci ] && exec ln -s '${join(ROOT, 'node_modules')}' .\nexec '${npm}' "$@"\n`,
    { mode: 0o755 },
  );
}

/** Commands that a reader may type on one machine until the first call is answered. */
const MAX_COMMANDS = 4;

function readmeSteps(): GuideStep[] {
  return guideSteps(readFileSync(join(ROOT, 'README.md'), 'utf8'));
}

/** A step without `join`. Its other commands remain. */
function withoutJoin(step: GuideStep): GuideStep {
  return { ...step, text: step.text.replace(/^.*svc join .*\n/m, '') };
}

/** Follows steps of the README on machines without svcd. */
async function followReadme(
  reader: Reader,
  shells: Readonly<Record<string, MachineShell>>,
  steps: readonly GuideStep[],
): Promise<void> {
  for (const step of steps) {
    const shell = shells[step.machine];
    if (step.machine !== 'each') {
      await reader.follow(step);
      if (shell !== undefined && step.text.startsWith('node ')) await untilListening(shell, 8080);
      continue;
    }
    const start = async (shell: MachineShell): Promise<void> => {
      cloneTo(join(shell.home, 'svcd'));
      npmWithoutRegistry(shell);
      // In a first terminal, while the reader continues in a second one.
      await shell.type(`cd svcd\n(${step.text.trim()}) > ../svcd.log 2>&1 &`);
      await untilListening(shell, 2121);
    };
    await Promise.all(Object.values(shells).map(start));
  }
}

test('the first call of the README: from a checkout to the answer, between two NATs', async (t) => {
  const world = await lab(t);
  if (world === null) return;
  const { internet, sit } = world;
  await using reader = world.reader;
  const shells = {
    vps: sit('vps', await internet.publicMachine('vps', [10])),
    home: sit('home', await internet.behind('home', ['cone'])),
    laptop: sit('laptop', await internet.behind('laptop', ['cone'])),
  };
  const steps = readmeSteps();
  for (const name of ['home', 'laptop']) {
    const typed = steps.filter(({ machine }) => machine === name || machine === 'each');
    const commands = typed.flatMap(({ text }) => text.trim().split('\n'));
    assert.ok(commands.length <= MAX_COMMANDS, commands.join('\n'));
  }
  assert.match(steps.map(({ text }) => text).join(''), /svc serve 8080 --name demo/);
  await followReadme(reader, shells, steps);
});

test('the first call of the README with two machines, of which one has a public address', async (t) => {
  const world = await lab(t);
  if (world === null) return;
  const { internet, sit } = world;
  await using reader = world.reader;
  const shells = {
    home: sit('home', await internet.publicMachine('home', [10])),
    laptop: sit('laptop', await internet.behind('laptop', ['cone'])),
  };
  const typed = readmeSteps().map((step) => {
    if (step.machine === 'vps') return { ...step, machine: 'home' };
    return step.machine === 'home' ? withoutJoin(step) : step;
  });
  await followReadme(reader, shells, typed);
});

test('the first call of the README with two machines on one LAN', async (t) => {
  const world = await lab(t);
  if (world === null) return;
  const { internet, sit } = world;
  await using reader = world.reader;
  const [first, second] = await internet.lan('office', 2, 0);
  assert.ok(first !== undefined && second !== undefined);
  const shells = { home: sit('home', first), laptop: sit('laptop', second) };
  const typed = readmeSteps().filter(({ machine }) => machine !== 'vps');
  await followReadme(reader, shells, typed.map(withoutJoin));
});

test('the tour works as described', async (t) => {
  const world = await lab(t);
  if (world === null) return;
  const { internet, sit } = world;
  await using reader = world.reader;
  const shell = sit('tour', await internet.behind('tour', ['cone']));
  for (const step of stepsOf('tour.md')) {
    await reader.follow(step);
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

/** The commands of a container and of a CI job in `sandbox.md`, without docker and GitHub. */
function sandboxSnippets(page: string): Readonly<Record<string, string>> {
  const found = (pattern: RegExp): string => {
    const [, text] = pattern.exec(page) ?? [];
    assert.ok(text !== undefined, `sandbox.md has no ${pattern}`);
    return text;
  };
  const job = found(/^ {2}run: \|\n((?: {4}.*\n)+)/m).replaceAll(/^ {4}/gm, '');
  // The entry point of the image is svcd.
  const started = found(/^docker run .* svcd:[\d.]+ (.*)$/m);
  return {
    container: `svcd ${started} > svcd.log 2>&1 &\n${found(/^docker exec svcd (.*)$/m)}`,
    runner: job,
  };
}

test('the snippets for containers, CI jobs and coding agents work behind a proxy', async (t) => {
  const world = await lab(t);
  if (world === null) return;
  const { internet, sit } = world;
  await using _ = world.reader;
  const vps = sit('vps', await internet.publicMachine('vps', [10]));
  await startDaemon(vps);
  await modelPage({ home: vps, laptop: vps });
  const [aid = ''] = /aid1\w+/.exec(await vps.type('svc serve 8080 --name model --print-master')) ?? [];
  const [invitation = ''] = /svc:\/\/\S+/.exec(await vps.type('svc invite')) ?? [];
  const page = readFileSync(join(GUIDES, 'sandbox.md'), 'utf8')
    .replaceAll('svc://aid1…/join/…', invitation)
    .replaceAll('aid1…', aid);
  const place = async (name: string): Promise<MachineShell> => {
    const { machine, env, leave } = await behindLimits(internet, name, 'connect-proxy');
    t.after(leave);
    const shell = sit(name, machine);
    for (const [variable, value] of Object.entries({ ...env, SVC_INVITATION: invitation }))
      await shell.type(`export ${variable}='${value}'`);
    return shell;
  };
  const shown: Record<string, string> = {};
  for (const [name, commands] of Object.entries(sandboxSnippets(page)))
    shown[name] = await (await place(name)).type(commands);
  assert.match(shown['container'] ?? '', /over TLS through helper .*, through the proxy/);
  assert.match(shown['runner'] ?? '', /my model/);
  const [, servers = ''] = /^```json\n([\s\S]*?)^```$/m.exec(page) ?? [];
  const { machine, env, leave } = await behindLimits(internet, 'agent', 'connect-proxy');
  t.after(leave);
  const { home } = sit('agent', machine);
  const { mcpServers } = JSON.parse(servers);
  const command = join(home, 'bin', mcpServers.svcd.command);
  const server = { ...mcpServers.svcd, command, env };
  writeFileSync(join(home, '.claude.json'), JSON.stringify({ mcpServers: { svcd: server } }));
  await using tools = new ConfiguredTools(machine, home);
  await eventually('the assistant is in the network', async () =>
    /"state": ?"tls"/.test(await tools.call('svc_status', {})),
  );
});

/**
 * The services of a user without systemd, which does not run in the lab: `systemctl --user <verb> [--now] <unit>`
 * starts the command of a unit file, and stops it.
 */
const SYSTEMCTL = `#!/bin/sh
shift
verb=$1 unit=\${2%.service} pids="$HOME/pids"
[ "$2" = --now ] && verb="$1 --now" unit=\${3%.service}
mkdir -p "$pids"
stop() {
  pid=$(cat "$pids/$unit" 2>/dev/null) || return 0
  rm "$pids/$unit"
  kill "$pid"
  while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
}
start() {
  command=$(sed -n 's/^ExecStart=:*//p' "$HOME/.config/systemd/user/$unit.service" | sed "s|%h|$HOME|g")
  sh -c "exec $command" > "$HOME/$unit.log" 2>&1 &
  echo $! > "$pids/$unit"
}
case "$verb" in
  'enable --now' | start | restart) stop; start ;;
  'disable --now' | stop) stop ;;
esac
`;

/** `svcd`, which finds a running systemd. Its commands see another `/run`. */
const SVCD = `#!/bin/sh
set -- '${process.execPath}' '${join(ROOT, 'bin/svcd')}' "$@"
exec unshare -m sh -c 'mount -t tmpfs none /run && mkdir -p /run/systemd/system && exec "$@"' sh "$@"
`;

test('svcd and a program run as services of a user', async (t) => {
  const world = await lab(t);
  if (world === null) return;
  const { internet, sit } = world;
  await using reader = world.reader;
  const server = sit('server', await internet.publicMachine('server', [10]));
  for (const [name, text] of Object.entries({ systemctl: SYSTEMCTL, svcd: SVCD }))
    writeFileSync(join(server.home, 'bin', name), text, { mode: 0o755 });
  const pids = join(server.home, 'pids');
  try {
    for (const step of stepsOf('systemd.md')) {
      await reader.follow(step);
      // systemd does not wait until they listen either, but a person types slowly.
      if (/svcd service install|restart svcd/.test(step.text)) await untilListening(server, 2121);
      if (step.text.includes('enable --now hello')) await untilListening(server, 8090);
    }
    assert.deepEqual(readdirSync(pids), []);
    assert.equal(existsSync(join(server.home, '.config/systemd/user/svcd.service')), false);
  } finally {
    // Units that a failed step left running.
    for (const unit of existsSync(pids) ? readdirSync(pids) : [])
      spawnSync('kill', [readFileSync(join(pids, unit), 'utf8').trim()]);
  }
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
  // A reader who began with the README has another agent.
  await home.type('svc register --label demo --save-master demo.key');
  for (const step of stepsOf(SETUP)) await reader.follow(step);
  const begin = async (t: TestContext, guide: string): Promise<void> => {
    const missing = await PREPARATIONS[guide]?.({ home, laptop });
    if (missing === undefined) assert.fail(`no test runs ${guide}`);
    if (missing !== null) return t.skip(missing);
    await home.type(`'${process.execPath}' --input-type=module -e "${EMPTY_ACL}"`);
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
    await reader.closeSessions();
  };
  for (const guide of readdirSync(GUIDES))
    if (!OTHER_PAGES.includes(guide)) await t.test(guide, (t) => begin(t, guide));
});
