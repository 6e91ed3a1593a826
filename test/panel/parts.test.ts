import assert from 'node:assert/strict';
import { test } from 'node:test';
import { areaOf, availability, lineOf } from '../../panel/src/lib/chart.ts';
import { bytes, relative, span } from '../../panel/src/lib/format.ts';
import { listOf } from '../../panel/src/lib/lists.ts';
import { barsOf, shortAid } from '../../panel/src/lib/mark.ts';
import { hashOf, parseHash } from '../../panel/src/lib/route.ts';
import {
  codeParts,
  fieldText,
  restartKeys,
  settingsOf,
  shownValue,
  tomlLine,
  valueOf,
} from '../../panel/src/lib/settings.ts';
import { fill, partsOf } from '../../panel/src/lib/text.ts';
import { type AgentState, publicAddress, verdictOf, waitingOf } from '../../panel/src/lib/verdict.ts';
import { rowsInView } from '../../panel/src/lib/window.ts';
import { configSchema } from '../../src/foundation/config/schema.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');

function agent(changes: Partial<AgentState> = {}): AgentState {
  const delegation = { expires_at: null };
  return { aid: 'aid1x', published: true, service_tcp: 'a:1', service_tcp_ok: true, delegation, ...changes };
}

test('the most serious problem comes first', () => {
  const ended = agent({ aid: 'ended', delegation: { expires_at: '2025-12-31T00:00:00Z' } });
  const ending = agent({ aid: 'ending', delegation: { expires_at: '2026-01-03T00:00:00Z' } });
  const down = agent({ aid: 'down', service_tcp_ok: false });
  const hidden = agent({ aid: 'hidden', published: false });
  const all = [agent(), ending, hidden, down, ended];
  assert.equal(verdictOf(false, all, NOW).problem, 'offline');
  assert.equal(verdictOf(false, all, NOW, true).problem, 'closed');
  assert.deepEqual(verdictOf(true, all, NOW), { problem: 'expired', aids: ['ended'] });
  assert.deepEqual(verdictOf(true, all.slice(0, 4), NOW), { problem: 'service', aids: ['down'] });
  assert.deepEqual(verdictOf(true, all.slice(0, 3), NOW), { problem: 'unpublished', aids: ['hidden'] });
  assert.deepEqual(verdictOf(true, all.slice(0, 2), NOW), { problem: 'ending', aids: ['ending'] });
  assert.equal(verdictOf(true, [agent({ service_tcp: '', service_tcp_ok: false })], NOW).problem, 'none');
  assert.equal(verdictOf(true, [], NOW).problem, 'empty');
  assert.deepEqual(
    waitingOf(all, { a: { mailbox: 2 }, b: { chat_invites: 1, chat_unread: 3 } }, NOW).map(({ kind, n }) => [kind, n]),
    [
      ['invites', 1],
      ['unread', 3],
      ['notes', 2],
      ['ending', 2 * 24 * 3600 * 1000],
      ['expired', 0],
    ],
  );
});

test('a route comes back from its hash, with any content', () => {
  const path = ['discover', 'a/b?c#d%'];
  assert.deepEqual(parseHash(hashOf(path, { q: 'x&y=1', empty: '' })), { path, query: { q: 'x&y=1' } });
  assert.deepEqual(parseHash('#/%zz'), { path: ['%zz'], query: {} });
  assert.deepEqual(parseHash(''), { path: [], query: {} });
});

test('renders at most sixty visible rows of a long table', () => {
  assert.deepEqual(rowsInView(60, 0, 900, 53), [0, 60]);
  for (const offset of [-400, 0, 10_000, 53_000]) {
    const [from, to] = rowsInView(1_000, offset, 900, 53);
    assert.ok(to - from <= 60);
    assert.ok(from * 53 <= Math.max(0, offset));
    assert.ok(to === 1_000 || to * 53 >= offset + 900);
  }
  const [first, behind] = rowsInView(1_000, 0, 100_000, 20);
  assert.ok(behind - first <= 60);
});

test('texts take their values, in the form of their number', () => {
  const text = { one: '{n} note for {agent}', other: '{n} notes for {agent}' };
  assert.equal(fill(text, 'en', { n: 1, agent: 'a' }), '1 note for a');
  assert.equal(fill(text, 'de', { n: 1234, agent: '{n}' }), '1.234 notes for {n}');
  assert.deepEqual(partsOf('ask {agent} now'), ['ask ', 'agent', ' now']);
});

test('numbers and times are written as the language does', () => {
  assert.equal(bytes(3_100_000, 'en'), '3.1 MB');
  assert.equal(bytes(999, 'en'), '999 byte');
  assert.equal(span(6 * 24 * 3600 + 5, 'en'), '6 days');
  assert.equal(relative(NOW - 240_000, NOW, 'en'), '4 min. ago');
  assert.equal(relative(NOW + 60_000, NOW, 'de'), 'in 1 Min.');
});

test('an AID has one mark of six bars, and another AID another one', () => {
  const bars = barsOf('aid1abc');
  assert.equal(bars.length, 6);
  assert.deepEqual(bars, barsOf('aid1abc'));
  assert.notDeepEqual(bars, barsOf('aid1abd'));
  assert.equal(shortAid('aid1abcdefghijklmnop'), 'aid1abcdefgh…');
});

test('draws traffic per minute as a line in its box and as a strip of cells', () => {
  const minutes = [0, 10, 30, 30].map((up, i) => ({ up, down: 0, isReady: i > 1 }));
  const line = lineOf(minutes, 'up', 100, 50);
  assert.equal(line, 'M0.0 48.0L33.3 33.3L66.7 4.0L100.0 4.0');
  assert.equal(lineOf(minutes, 'down', 100, 50), 'M0.0 48.0L33.3 48.0L66.7 48.0L100.0 48.0', 'on the same scale');
  assert.equal(lineOf(minutes.slice(0, 1), 'up', 100, 50), '');
  assert.match(areaOf(minutes, 'up', 100, 50), /Z$/);
  assert.deepEqual(availability(minutes, 96), ['bad', 'bad', 'good', 'good']);
  assert.deepEqual(availability(minutes, 3), ['bad', 'good']);
  assert.deepEqual(availability(minutes, 1), ['warn']);
});

test('each setting of the daemon has a field, and typed text is converted to its type', () => {
  const settings = settingsOf(JSON.parse(JSON.stringify(configSchema())));
  assert.deepEqual(
    settings.map(({ key }) => key),
    Object.keys(configSchema().properties),
  );
  assert.ok(new Set(settings.map(({ kind }) => kind)).size >= 4);
  for (const setting of settings) assert.notEqual(setting.description, '');
  const kinds = {
    number: ['1.5', 1.5],
    switch: ['true', true],
    list: ['a\n\n b ', ['a', 'b']],
    text: ['x', 'x'],
    json: ['[{"url": "turn:a:1"}]', [{ url: 'turn:a:1' }]],
  } as const;
  for (const [kind, [typed, value]] of Object.entries(kinds)) {
    const setting = settings.find((one) => one.kind === kind);
    assert.ok(setting !== undefined);
    assert.deepEqual(valueOf(setting, typed), value);
    if (kind === 'number' || kind === 'json') assert.equal(valueOf(setting, 'x'), undefined);
    assert.deepEqual(valueOf(setting, fieldText(value)), value);
  }
  assert.equal(tomlLine('files_root', '/a "b"'), 'files_root = "/a \\"b\\""');
  assert.equal(shownValue({ key: 'relay_bytes_per_second' }, 16_777_216, 'en'), '17 MB/s');
  assert.equal(shownValue({ key: 'relay_bytes_per_day' }, 68_719_476_736, 'en'), '69 GB');
  assert.equal(shownValue({ key: 'tls_sessions' }, 4096, 'en'), '4,096');
  assert.deepEqual(codeParts('Empty: `files`.'), ['Empty: ', 'files', '.']);
  assert.deepEqual(restartKeys({ restart_required: ['a'] }), ['a']);
  assert.deepEqual(listOf(' a, b  c'), ['a', 'b', 'c']);
});

test('a loopback address is not the public address of the node', () => {
  assert.equal(publicAddress([]), undefined);
  assert.equal(publicAddress(['127.0.0.1:2121', '[::1]:4121']), undefined);
  assert.equal(publicAddress(['127.0.0.1:4121', '192.0.2.1:4121']), '192.0.2.1:4121');
});
