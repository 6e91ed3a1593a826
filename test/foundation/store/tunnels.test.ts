import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { type SavedTunnel, TunnelStore } from '../../../src/foundation/store/tunnels.ts';
import { testAid } from '../../support/agents.ts';
import { testSecrets } from '../../support/stored-secrets.ts';

function tunnel(id: string, localPort: number, more: Partial<SavedTunnel> = {}): SavedTunnel {
  const agents = { localAid: testAid(1), remoteAid: testAid(2) };
  return { id, ...agents, accessToken: undefined, localPort, idleTimeoutSec: -1, disableRelay: false, ...more };
}

test('tunnels are read as they were stored, ordered by port', () => {
  const tunnels = new TunnelStore(Store.open(':memory:', MIGRATIONS), testSecrets());
  const second = tunnel('a', 9002, { accessToken: 'token', idleTimeoutSec: 60, disableRelay: true });
  tunnels.save(second);
  tunnels.save(tunnel('b', 9001));
  assert.deepEqual(tunnels.list(), [tunnel('b', 9001), second]);
  tunnels.save(tunnel('a', 9000));
  assert.deepEqual(tunnels.list(), [tunnel('a', 9000), tunnel('b', 9001)]);
  tunnels.delete('a');
  assert.deepEqual(tunnels.list(), [tunnel('b', 9001)]);
});
