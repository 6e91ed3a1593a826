import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { MAX_REQUESTS_PER_NODE, MAX_REQUESTS_PER_SOURCE } from '../../../src/network/links/node-requests.ts';
import type { Way } from '../../../src/network/transport/path.ts';
import { type LinkNode, LinkWorld, settle, withCode } from '../../support/link-world.ts';

/** Makes all dials of a node use another path instead of direct sockets. */
function lead(t: TestContext, node: LinkNode, way: Way): void {
  const dial = node.endpoint.dial.bind(node.endpoint);
  t.mock.method(node.endpoint, 'dial', (...[address, key, options]: Parameters<typeof dial>) =>
    dial(address, key, { ...options, way }),
  );
}

test('relayed nodes that connect from this machine share the slots of their source address', async (t) => {
  await using world = new LinkWorld();
  const b = await world.node();
  const answer = Promise.withResolvers<Uint8Array>();
  b.requests.onRequest('record', () => answer.promise);
  const at = { nodeKey: b.key.publicKey, address: b.endpoint.address };
  const ask = (node: LinkNode): Promise<Uint8Array> => node.requests.request('record', at, new Uint8Array(1));
  const asked: Promise<Uint8Array>[] = [];
  for (let i = 0; i < MAX_REQUESTS_PER_SOURCE / MAX_REQUESTS_PER_NODE; i++) {
    const relayed = await world.node();
    lead(t, relayed, { kind: 'relay', source: '192.0.2.7' });
    for (let n = 0; n < MAX_REQUESTS_PER_NODE; n++) asked.push(ask(relayed));
  }
  await settle();
  const [oneMore, unknown, local] = [await world.node(), await world.node(), await world.node()];
  lead(t, oneMore, { kind: 'relay', source: '192.0.2.7' });
  lead(t, unknown, { kind: 'relay' });
  await assert.rejects(ask(oneMore), withCode('rate_limited'));
  asked.push(ask(unknown), ask(local));
  answer.resolve(new Uint8Array(2));
  for (const one of await Promise.all(asked)) assert.equal(one.length, 2);
});

test('the authorization and the path of a link include the source of its connection', async (t) => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  lead(t, a, { kind: 'turn', remote: { host: '203.0.113.1', port: 3478 } });
  const [x, y] = [a.host(), b.host()];
  const links = b.inbox();
  const outgoing = await a.links.open(x.aid, y.aid, 'tcp');
  await settle();
  const source = `node ${Buffer.from(a.key.publicKey).toString('hex')}`;
  assert.deepEqual(
    b.authorized.map((request) => request.source),
    [source],
  );
  const [incoming] = links;
  assert.partialDeepStrictEqual(incoming?.path(), { kind: 'turn', source });
  const { kind, remote } = outgoing.path();
  assert.deepEqual({ kind, remote }, { kind: 'turn', remote: { host: '203.0.113.1', port: 3478 } });
});
