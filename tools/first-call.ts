/**
 * `npm run first-call`: measures the time from `npm ci` in a fresh copy of this checkout to the first answered call
 * between two daemons. The target is 90 s with a warm npm cache. The figure is printed and never fails the run. Needs
 * git and npm.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { LocalDaemon, plainEnvironment } from './local-daemon.ts';

/** Target, seconds. */
const TARGET_S = 90;

const execute = promisify(execFile);
const root = mkdtempSync(join(tmpdir(), 'svcd-first-call-'));
const checkout = join(root, 'svcd');
/** The copy's Node, as `npm start` uses it. */
const node = join(checkout, 'node_modules/.bin/node');
const env = { ...plainEnvironment(), HOME: root };
let last = performance.now();

function done(step: string): void {
  const now = performance.now();
  console.log(`${((now - last) / 1000).toFixed(1).padStart(7)} s  ${step}`);
  last = now;
}

async function svc(daemon: LocalDaemon, ...args: readonly string[]): Promise<string> {
  const { stdout } = await execute(node, ['bin/svc', '--api', daemon.api, ...args], { cwd: checkout, env });
  return stdout.trim();
}

async function firstCall(): Promise<void> {
  const options = { checkout, node, env };
  await using one = await LocalDaemon.start({ ...options, dataDir: join(root, 'one') }, null);
  done('the first daemon answers (first build included)');
  await using two = await LocalDaemon.start({ ...options, dataDir: join(root, 'two') }, one);
  done('the second daemon answers');
  await using service = createServer((_, response) => response.end('Hello!')).listen(0, '127.0.0.1');
  await once(service, 'listening');
  const address = service.address();
  if (address === null || typeof address === 'string') throw new Error('the service has no port');
  await svc(one, 'register', '--save-master', join(root, 'one.key'));
  const bound = ['--service-tcp', `http://127.0.0.1:${address.port}`];
  const aid = await svc(two, '--quiet', 'register', ...bound, '--save-master', join(root, 'two.key'));
  done('an agent is published on each daemon');
  const answer = await svc(one, 'get', aid, '/');
  if (answer !== 'Hello!') throw new Error(`the call was answered with "${answer}"`);
  done('the first call is answered');
}

try {
  await execute('git', ['clone', '--quiet', join(import.meta.dirname, '..'), checkout]);
  done('a copy of the checkout (not counted)');
  const begin = last;
  // npm's cache is in the home directory of the user.
  await execute('npm', ['ci', '--no-audit', '--no-fund', '--prefer-offline'], {
    cwd: checkout,
    env: plainEnvironment(),
  });
  done('npm ci');
  await firstCall();
  const seconds = (last - begin) / 1000;
  console.log(`${seconds.toFixed(1).padStart(7)} s  from npm ci to the answer (target: ${TARGET_S} s)`);
} finally {
  rmSync(root, { recursive: true, force: true });
}
