import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { updateCommand } from '../../src/daemon/update-command.ts';
import { DaemonProver, isProofRequest } from '../../src/surfaces/daemon-prover.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const KEY = randomBytes(32);

const IDLE = {
  current_version: '1.0.0',
  latest_version: '1.1.0',
  update_available: true,
  state: 'idle',
  last_check_at: '2026-02-03T00:00:00.000Z',
  managed: true,
};

/** A data directory with a daemon.json for an address; null for no daemon.json. */
function dataDirOf(t: TestContext, api_addr: string | null): string {
  const dataDir = temporaryDirectory(t);
  const proof_key = Buffer.from(KEY).toString('base64url');
  const info = { pid: 1, api_addr, started_at: '', version: '1.0.0', proof_key };
  writeFileSync(join(dataDir, 'daemon.json'), JSON.stringify(info));
  return dataDir;
}

/** A daemon that returns these responses to `GET /update/status` in order, then repeats the last. */
async function daemon(t: TestContext, answers: readonly object[]) {
  const asked: string[] = [];
  const tokens = new Set<string | undefined>();
  let given = 0;
  const prover = new DaemonProver({ key: KEY, token: () => '' });
  const server = createServer((request, response) => {
    if (isProofRequest(request)) return prover.answer(request, response, (_request, isRight) => void isRight());
    asked.push(`${request.method} ${request.url}`);
    tokens.add(request.headers.authorization);
    response.setHeader('content-type', 'application/json');
    if (request.method === 'POST') response.writeHead(202).end('{"message":"on its way"}');
    else response.end(JSON.stringify(answers[Math.min(given++, answers.length - 1)]));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  return { asked, tokens, dataDir: dataDirOf(t, `127.0.0.1:${port}`) };
}

/** Runs `svcd update`. Returns its output and exit code. */
async function run(dataDir: string, args: readonly string[] = [], environment: NodeJS.ProcessEnv = {}) {
  let printed = '';
  const print = (text: string): void => {
    printed += text;
  };
  const before = process.exitCode;
  try {
    await updateCommand({ dataDir: () => dataDir, environment, print }).parseAsync(args, { from: 'user' });
    return { printed, code: process.exitCode ?? 0 };
  } finally {
    process.exitCode = before;
  }
}

test('a check goes through the running daemon, with the token of the environment', async (t) => {
  const { asked, tokens, dataDir } = await daemon(t, [IDLE]);
  const { printed, code } = await run(dataDir, ['--check'], { SVC_TOKEN: 'correct horse' });
  assert.match(printed, /^svcd 1\.1\.0 is available\. This is 1\.0\.0\./);
  assert.equal(code, 0, 'an available release is not a failure');
  assert.deepEqual(asked, ['GET /update/status?check=true']);
  assert.deepEqual([...tokens], ['Bearer correct horse']);
});

test('an update is requested and followed to its result, and a rollback is a failure', async (t) => {
  const done = { ...IDLE, current_version: '1.1.0', update_available: false };
  const good = await daemon(t, [IDLE, { ...IDLE, state: 'applying' }, done]);
  const updated = await run(good.dataDir);
  assert.match(updated.printed, /^svcd 1\.1\.0 is the newest release/);
  assert.equal(updated.code, 0);
  assert.deepEqual(good.asked.slice(0, 2), ['GET /update/status?check=true', 'POST /update/apply']);
  assert.deepEqual([...good.tokens], [undefined]);

  const rolledBack = { ...IDLE, state: 'rolled_back', last_error: 'It did not start.' };
  const kept = await run((await daemon(t, [IDLE, rolledBack])).dataDir);
  assert.match(kept.printed, /rolled back: It did not start\./);
  assert.equal(kept.code, 1);
});

test('a failed check is a failure, an unmanaged svcd is not', async (t) => {
  const failed = {
    ...IDLE,
    state: 'failed',
    last_error: 'No registry.',
    latest_version: null,
    update_available: false,
  };
  const { printed, code } = await run((await daemon(t, [failed])).dataDir, ['--check']);
  assert.deepEqual([printed, code], ['No registry.\n', 1]);
  const unmanaged = await daemon(t, [{ ...IDLE, managed: false }]);
  assert.equal((await run(unmanaged.dataDir)).code, 0);
  assert.deepEqual(unmanaged.asked, ['GET /update/status?check=true'], 'nothing is applied');
});

test('an error of the daemon is reported, without a direct check', async (t) => {
  const server = createServer((_request, response) => {
    response.writeHead(401, { 'content-type': 'application/json' });
    response.end('{"error":"unauthorized","message":"The token is missing."}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  await assert.rejects(run(dataDirOf(t, `127.0.0.1:${port}`)), { code: 'unauthorized' });
});

test('without a daemon svcd checks directly, except in a checkout', async (t) => {
  const closed = createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port } = closed.address() as AddressInfo;
  await new Promise((resolve) => closed.close(resolve));
  for (const dataDir of [temporaryDirectory(t), dataDirOf(t, null), dataDirOf(t, `127.0.0.1:${port}`)]) {
    const { printed, code } = await run(dataDir);
    assert.match(printed, /This svcd runs from a checkout/);
    assert.equal(code, 0);
  }
});
