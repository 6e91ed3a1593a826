import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HelperStore, MAX_STORED_HELPERS } from '../../../src/network/reachability/helper-store.ts';

function memory(value?: unknown) {
  const state = { value };
  return { state, get: () => state.value, set: (_key: string, kept: unknown) => void (state.value = kept) };
}

const helper = (n: number) => ({
  host: `192.0.2.${n}`,
  port: 4121,
  at: { nodeKey: new Uint8Array(32).fill(n), address: { host: `192.0.2.${n}`, port: 4122 } },
  tlsPorts: n === 3 ? [443, 4121] : [],
});

test('helpers are stored in their order, up to the target number', () => {
  const kept = memory();
  const before = new HelperStore('net', kept);
  assert.deepEqual(before.all, []);
  before.noteTlsPorts(helper(3).at.nodeKey, [443, 4121]);
  before.keep([4, 2, 3, 1].map(helper));
  const written: unknown = JSON.parse(JSON.stringify(kept.state.value));
  assert.deepEqual(new HelperStore('net', memory(written)).all, [4, 2, 3].map(helper));
  assert.deepEqual(new HelperStore('other', memory(written)).all, [], 'another network has other helpers');
  before.keep([]);
  assert.deepEqual(before.all, []);
});

test('invalid entries are ignored', () => {
  const good = { network: '', node_key: 'ab'.repeat(32), dht: '192.0.2.1:4121', quic: '192.0.2.1:4122' };
  const bad: unknown[] = [
    null,
    7,
    {},
    { ...good, network: 'x' },
    { ...good, node_key: 'ab' },
    { ...good, node_key: 7 },
    { ...good, dht: 'example.org:4121' },
    { ...good, quic: '192.0.2.1' },
    { ...good, quic: null },
  ];
  assert.equal(new HelperStore('', memory([...bad, good])).all.length, 1);
  for (const value of [undefined, null, 'x', {}, bad]) assert.deepEqual(new HelperStore('', memory(value)).all, []);
  const many = Array.from({ length: 10 }, () => good);
  assert.equal(new HelperStore('', memory(many)).all.length, MAX_STORED_HELPERS);
});

test('the TLS ports of a helper follow its hellos, and are kept when helpers change after a restart', () => {
  const kept = memory();
  const store = new HelperStore('', kept);
  store.keep([helper(1), helper(2)]);
  store.noteTlsPorts(helper(1).at.nodeKey, [8443]);
  store.noteTlsPorts(helper(9).at.nodeKey, [443]);
  assert.deepEqual(
    store.all.map(({ tlsPorts }) => tlsPorts),
    [[8443], []],
  );
  const later = new HelperStore('', kept);
  later.keep([helper(2), helper(1)]);
  assert.deepEqual(
    later.all.map(({ tlsPorts }) => tlsPorts),
    [[], [8443]],
  );
  later.noteTlsPorts(helper(1).at.nodeKey, []);
  assert.deepEqual(later.all[1]?.tlsPorts, []);
});

test('invalid TLS ports are ignored', () => {
  const row = { network: '', node_key: 'ab'.repeat(32), dht: '192.0.2.1:4121', quic: '192.0.2.1:4122' };
  for (const tls of [7, 'x', {}, [0, -1, 65_536, 1.5, '443', null]])
    assert.deepEqual(new HelperStore('', memory([{ ...row, tls }])).all[0]?.tlsPorts, []);
  const many = { ...row, tls: [1, 2, 3, 4, 5, 6] };
  assert.deepEqual(new HelperStore('', memory([many])).all[0]?.tlsPorts, [1, 2, 3, 4]);
});
