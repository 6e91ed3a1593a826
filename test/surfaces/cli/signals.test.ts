/** Signals end a command without waiting for its work. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { newIdentity } from '../../support/identities.ts';
import { FIXTURE } from '../../support/shared-mcp.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

/** A daemon that accepts connections and never answers. */
async function deafDaemon(t: TestContext) {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.on('error', () => {});
    t.after(() => socket.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { api: `http://127.0.0.1:${port}`, isAsked: () => connections > 0 };
}

/** A running `svc mcp share`. */
function share(t: TestContext, args: readonly string[], env: NodeJS.ProcessEnv) {
  const child = spawn(process.execPath, ['bin/svc', 'mcp', 'share', ...args], {
    env: { ...process.env, SVCD_DATA_DIR: temporaryDirectory(t), ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  let reported = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (reported += text));
  const closed = once(child, 'close');
  const end = async (signal: NodeJS.Signals): Promise<unknown> => {
    child.kill(signal);
    return (await closed)[0];
  };
  return { reported: () => reported, end };
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('signals', { skip: process.platform === 'win32' }, () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    test(`${signal} ends the wait for a server that does not answer`, async (t) => {
      const file = join(temporaryDirectory(t), 'pid');
      const script = 'printf "Password: "; echo $$ >"$0"; exec sleep 1000';
      const { reported, end } = share(t, ['--', 'sh', '-c', script, file], { SVC_API: (await deafDaemon(t)).api });
      await eventually('the owner is informed', () => reported().includes('not answered yet'));
      assert.match(reported(), /It wrote "Password: " to its standard output/);
      const pid = Number(readFileSync(file, 'utf8'));
      assert.equal(await end(signal), 1);
      await eventually('the server has stopped too', () => !isRunning(pid));
    });

  test('a signal ends the wait for a daemon that does not answer', async (t) => {
    const { api, isAsked } = await deafDaemon(t);
    const ran = join(temporaryDirectory(t), 'ran');
    const { end } = share(t, ['--', 'sh', '-c', 'echo >"$0"; exec "$1" "$2"', ran, process.execPath, FIXTURE], {
      SVC_API: api,
    });
    await eventually('the daemon receives a request', () => existsSync(ran) && isAsked());
    assert.equal(await end('SIGTERM'), 1);
  });

  test('a signal ends a server on demand that waits for the daemon', async (t) => {
    const { api, isAsked } = await deafDaemon(t);
    const env = { SVC_API: api, PORT: '1', SVC_PORT: '1', SVC_AID: newIdentity().aid };
    const { end } = share(t, ['--woken', 'modern', '--', process.execPath, FIXTURE], env);
    await eventually('the daemon receives a request', isAsked);
    assert.equal(await end('SIGTERM'), 1);
  });
});
