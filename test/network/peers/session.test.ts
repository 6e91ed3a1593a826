import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UNHELPED } from '../../../src/network/peers/dial.ts';
import { LinkWorld } from '../../support/link-world.ts';

test('a stream that breaks without a listener is harmless', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const place = { nodeKey: b.key.publicKey, addresses: [b.endpoint.address], ...UNHELPED };
  const session = await a.pool.connect(place, new AbortController().signal);
  const stream = await session.connection.openStream();
  // The listeners of the test network.
  stream.removeAllListeners('error');
  session.adopt(stream);
  assert.equal(stream.emit('error', new Error('reset')), true);
  stream.destroy();
});
