import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { runCli } from '../../../src/surfaces/cli/program.ts';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';

const OPTIONS = { version: '0', dataDir: '/nonexistent' };

/** Runs a command until it has printed `until`. Returns the output. */
async function watched(api: string, args: readonly string[], until: RegExp, terminal = false): Promise<string> {
  const stop = new AbortController();
  const stdout = Object.assign(new PassThrough(), terminal ? { isTTY: true as const } : {});
  let printed = '';
  stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
    if (until.test(printed)) stop.abort();
  });
  const io = {
    stdin: new PassThrough(),
    stdout,
    stderr: new PassThrough(),
    env: { SVC_API: api },
    signal: stop.signal,
  };
  assert.equal(await runCli([...args, '--watch', '--every', '0.1'], io, OPTIONS), 0);
  return printed;
}

test('refreshes a list until interrupted', async (t) => {
  let looks = 0;
  const daemon = await AnsweringDaemon.start(t, () => {
    const changed = Math.floor(looks++ / 3);
    return [200, { contacts: [{ contact: `node${changed}.example:4121`, joined: true, state: 'met' }] }];
  });
  const printed = await watched(daemon.api, ['contacts'], /node2/);
  // Unchanged responses add nothing to a pipe.
  assert.deepEqual(printed.match(/node\d/g), ['node0', 'node1', 'node2']);
  looks = 0;
  const shown = await watched(daemon.api, ['contacts'], /node1/, true);
  assert.equal(shown.split('\u001b[H\u001b[2J').length, 5);
  looks = 0;
  const json = await watched(daemon.api, ['contacts', '--json'], /node1[^}]*\}\s*\]\s*\}\n/);
  assert.equal(json.match(/"contacts"/g)?.length, 2);
});

test('fails if the first request fails, or the interval is invalid', async (t) => {
  const daemon = await AnsweringDaemon.start(t, () => [401, { error: 'unauthorized', message: 'No.' }]);
  const io = () => ({ stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough(), env: {} });
  const line = ['--api', daemon.api, 'agents', 'list', '--watch'];
  assert.equal(await runCli(line, io(), OPTIONS), 4);
  assert.equal(await runCli([...line, '--every', '0'], io(), OPTIONS), 2);
});
