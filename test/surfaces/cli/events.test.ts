import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { runCli } from '../../../src/surfaces/cli/program.ts';
import { eventWorld, one, two, unknown } from '../../support/event-world.ts';

function terminal() {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const lines: string[] = [];
  let rest = '';
  const waiting = new Set<() => void>();
  stdout.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop() ?? '';
    lines.push(...parts);
    for (const wake of waiting) wake();
  });
  const until = async (count: number): Promise<void> => {
    while (lines.length < count) await new Promise<void>((resolve) => waiting.add(resolve));
  };
  return { io: { stdin: new PassThrough(), stdout, stderr, env: {} }, lines, until };
}

const OPTIONS = { version: '0', dataDir: '/nonexistent' };

test('prints all pages of the event log, one line per event, filtered by type', async (t) => {
  const { api, emit } = await eventWorld(t);
  emit(one, 8);
  const { io, lines } = terminal();
  assert.equal(await runCli(['--api', api.url, '--json', 'events', '--aid', one], io, OPTIONS), 0);
  const events = lines.map((line) => JSON.parse(line) as { seq: number; type: string; data: unknown });
  assert.deepEqual(
    events.map(({ seq }) => seq),
    [4, 5, 6, 7, 8],
  );
  assert.deepEqual(events[0]?.data, { peer: two, seq: 3 });
  const none = terminal();
  const kinds = ['--types', 'chat.unread'];
  assert.equal(await runCli(['--api', api.url, 'events', '--aid', one, ...kinds], none.io, OPTIONS), 0);
  assert.deepEqual(none.lines, []);
  const since = terminal();
  assert.equal(await runCli(['--api', api.url, 'events', '--aid', one, '--since', '7'], since.io, OPTIONS), 0);
  assert.equal(since.lines.length, 1);
  assert.match(
    since.lines[0] ?? '',
    /^#8 {2}\d{4}-.*Z {2}aid1\w{8}… {2}chat\.received {2}\{"peer":"aid1\w{8}…","seq":7\}$/,
  );
});

test('rejects an unknown event type', async (t) => {
  const { api, emit } = await eventWorld(t);
  emit(one, 1);
  const line = ['--api', api.url, 'events', '--aid', one, '--types'];
  assert.equal(await runCli([...line, 'chat.received, chat.unraed'], terminal().io, OPTIONS), 2);
  assert.equal(await runCli([...line, 'chat.received, chat.unread'], terminal().io, OPTIONS), 0);
});

test('an unknown agent gives the exit code of "not found"', async (t) => {
  const { api } = await eventWorld(t);
  assert.equal(await runCli(['--api', api.url, 'events', '--aid', unknown], terminal().io, OPTIONS), 5);
});

test('--follow prints events as they arrive', async (t) => {
  const { api, emit, streams } = await eventWorld(t);
  const { io, lines, until } = terminal();
  const stop = new AbortController();
  const done = runCli(['--api', api.url, '--json', 'events', '--follow'], { ...io, signal: stop.signal }, OPTIONS);
  while (streams.active === 0) await new Promise((resolve) => setImmediate(resolve));
  emit();
  await until(1);
  const { seq, type, aid } = JSON.parse(lines[0] ?? '{}') as Record<string, unknown>;
  assert.deepEqual([seq, type, aid], [1, 'chat.received', one]);
  stop.abort();
  assert.equal(await done, 1);
});
