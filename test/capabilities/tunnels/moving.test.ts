/** The tunnels of an agent that moves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportTunnels, importTunnels } from '../../../src/capabilities/tunnels/moving.ts';
import type { TunnelsPart } from '../../../src/foundation/moving/agent-document.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { TunnelStore } from '../../../src/foundation/store/tunnels.ts';
import { testAid } from '../../support/agents.ts';
import { testSecrets } from '../../support/stored-secrets.ts';

const [AGENT, REMOTE] = [testAid(1), testAid(2)];
const PART: TunnelsPart = [
  { remote_aid: REMOTE, local_port: 4001, idle_timeout_sec: 60, disable_relay: true, access_token: 'sesame' },
  { remote_aid: REMOTE, local_port: 4002, idle_timeout_sec: -1, disable_relay: false },
];

test('exported tunnels are imported unchanged, for their agent only', () => {
  const store = new TunnelStore(Store.open(':memory:', MIGRATIONS), testSecrets());
  const keep = importTunnels(store, AGENT, PART);
  assert.deepEqual(store.list(), []);
  assert.deepEqual(keep(), []);
  assert.deepEqual(exportTunnels(store, AGENT), PART);
  assert.deepEqual(exportTunnels(store, testAid(3)), []);
});

test('a tunnel whose port is another one here is passed over, and its port said', () => {
  const store = new TunnelStore(Store.open(':memory:', MIGRATIONS), testSecrets());
  importTunnels(store, testAid(3), PART.slice(0, 1))();
  assert.deepEqual(importTunnels(store, AGENT, PART)(), [4001]);
  assert.deepEqual(exportTunnels(store, AGENT), PART.slice(1));
  assert.deepEqual(exportTunnels(store, testAid(3)), PART.slice(0, 1));
});

test('tunnels without an agent, or two on one port, are refused with their place', () => {
  const store = new TunnelStore(Store.open(':memory:', MIGRATIONS), testSecrets());
  const [first, second] = PART;
  assert.ok(first && second);
  const take = (part: TunnelsPart) => () => importTunnels(store, AGENT, part);
  assert.throws(take([first, { ...second, remote_aid: 'aid1nonsense' }]), {
    code: 'bad_file',
    message: /\/tunnels\/1\/remote_aid/,
  });
  assert.throws(take([first, { ...second, local_port: 4001 }]), { code: 'bad_file' });
});
