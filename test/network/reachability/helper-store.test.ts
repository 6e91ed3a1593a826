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
});

test('helpers are stored in their order, up to the target number', () => {
  const kept = memory();
  const before = new HelperStore('net', kept);
  assert.deepEqual(before.all, []);
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
