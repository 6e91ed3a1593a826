/** What every QUIC endpoint must do, whatever carries its bytes. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { OPEN_STREAM_TIMEOUT_MS } from '../../../../src/network/transport/quic/native-connection.ts';
import type { Stream } from '../../../../src/network/transport/types.ts';
import { LeapClock } from '../../../support/leap-clock.ts';
import { streamCompliance } from './stream-compliance.ts';
import { connect, connectedPair, failure, type Harness, openPair, readAll, startNode } from './world.ts';

export function quicCompliance(name: string, harness: Harness): void {
  streamCompliance(name, (t) => connectedPair(t, harness));

  describe(`${name}: QUIC endpoint`, () => {
    test('both sides see the proven key of the other', async (t) => {
      const [a, b] = await Promise.all([startNode(t, harness), startNode(t, harness)]);
      const { client, server } = await connect(a, b);
      assert.deepEqual(Buffer.from(client.remoteKey), Buffer.from(b.key.publicKey));
      assert.deepEqual(Buffer.from(server.remoteKey), Buffer.from(a.key.publicKey));
      assert.deepEqual(client.path.remote, b.endpoint.address);
      assert.equal(server.path.remote.host, '127.0.0.1');
      assert.equal(client.outbound, true);
      assert.equal(server.outbound, false);
      assert.ok(client.rtt() >= 0);
    });

    test('streams go both ways on one connection', async (t) => {
      const { client, server, incoming } = await connectedPair(t, harness);
      const fromServer = new Promise<Stream>((resolve) => client.onStream(resolve));
      const a = await client.openStream();
      a.end('from the client');
      const b = await server.openStream();
      b.end('from the server');
      assert.equal(String(await readAll(await incoming())), 'from the client');
      assert.equal(String(await readAll(await fromServer)), 'from the server');
      assert.equal(a.connection, client);
      assert.equal(b.connection, server);
    });

    test('streams that arrive before their handler is set are kept', async (t) => {
      const [a, b] = await Promise.all([startNode(t, harness), startNode(t, harness)]);
      const [client, server] = await Promise.all([a.endpoint.dial(b.endpoint.address, b.key.publicKey), b.accepted()]);
      for (const text of ['one', 'two', 'three']) (await client.openStream()).end(text);
      const seen = new Promise<string[]>((resolve) => {
        const texts: string[] = [];
        server.onStream((stream) => {
          void readAll(stream).then((text) => {
            texts.push(String(text));
            if (texts.length === 3) resolve(texts.sort());
          });
        });
      });
      assert.deepEqual(await seen, ['one', 'three', 'two']);
    });

    test('over the stream limit, openStream waits for a free place, then gives up', async (t) => {
      const clock = new LeapClock();
      const pair = await connectedPair(t, harness, { streamsPerConnection: 2, clock });
      const first = await openPair(pair);
      await openPair(pair);
      const late = assert.rejects(pair.client.openStream(), { code: 'timeout' });
      clock.pass(OPEN_STREAM_TIMEOUT_MS);
      await late;
      const third = pair.client.openStream();
      first.ours.end();
      first.theirs.end();
      await Promise.all([readAll(first.ours), readAll(first.theirs)]);
      (await third).end('there is room again');
      assert.equal(String(await readAll(await pair.incoming())), 'there is room again');
    });

    test('a connection that was closed ends on both sides and opens no streams', async (t) => {
      const pair = await connectedPair(t, harness);
      const { ours } = await openPair(pair);
      const seen = failure(ours);
      pair.client.close();
      await Promise.all([pair.client.closed, pair.server.closed]);
      assert.equal(await seen, 'connection_lost');
      await assert.rejects(pair.client.openStream(), { code: 'connect_failed' });
      await assert.rejects(pair.server.openStream(), { code: 'connect_failed' });
      pair.client.close();
    });

    test('a node with another key than expected is refused', async (t) => {
      const [a, b] = await Promise.all([startNode(t, harness), startNode(t, harness)]);
      const stranger = KeyPair.generate().publicKey;
      await assert.rejects(a.endpoint.dial(b.endpoint.address, stranger), { code: 'connect_failed' });
      await (await b.accepted()).closed;
    });

    test('a dial that is not answered times out', async (t) => {
      const a = await startNode(t, harness);
      const address = await harness.silentAddress(t);
      const dial = a.endpoint.dial(address, a.key.publicKey, { timeoutMs: 100 });
      await assert.rejects(dial, { name: 'SvcError', code: 'timeout' });
    });

    test('a dial can be cancelled, before and while it runs', async (t) => {
      const a = await startNode(t, harness);
      const address = await harness.silentAddress(t);
      const cancel = new AbortController();
      const dial = a.endpoint.dial(address, a.key.publicKey, { signal: cancel.signal });
      cancel.abort();
      await assert.rejects(dial, { code: 'cancelled' });
      await assert.rejects(a.endpoint.dial(address, a.key.publicKey, { signal: cancel.signal }), { code: 'cancelled' });
    });

    test('stop ends dials and connections, and the address is free again', async (t) => {
      const [a, b] = await Promise.all([startNode(t, harness), startNode(t, harness)]);
      const { client, server } = await connect(a, b);
      const address = await harness.silentAddress(t);
      const dial = assert.rejects(a.endpoint.dial(address, a.key.publicKey), { code: 'cancelled' });
      await a.stop();
      await Promise.all([dial, client.closed, server.closed]);
      await assert.rejects(a.endpoint.dial(b.endpoint.address, b.key.publicKey), { code: 'connect_failed' });
    });

    test('connections over the total are refused, and room returns when one ends', async (t) => {
      const server = await startNode(t, harness, { limits: { connections: 2 } });
      const [a, b, c] = await Promise.all([startNode(t, harness), startNode(t, harness), startNode(t, harness)]);
      const first = await connect(a, server);
      await connect(b, server);
      const refused = await c.endpoint.dial(server.endpoint.address, server.key.publicKey);
      await refused.closed;
      first.client.close();
      await first.server.closed;
      await connect(c, server);
    });

    test('connections over the number for one address are refused', async (t) => {
      const server = await startNode(t, harness, { limits: { connectionsPerSource: 1, countLoopback: true } });
      const [a, b] = await Promise.all([startNode(t, harness), startNode(t, harness)]);
      await connect(a, server);
      const refused = await b.endpoint.dial(server.endpoint.address, server.key.publicKey);
      await refused.closed;
    });

    test('a key over its number of connections loses its oldest one', async (t) => {
      const server = await startNode(t, harness, { limits: { connectionsPerKey: 2 } });
      const a = await startNode(t, harness);
      const oldest = await connect(a, server);
      const pairs = [await connect(a, server), await connect(a, server)];
      await oldest.client.closed;
      for (const pair of pairs) {
        const { ours } = await openPair(pair);
        ours.destroy();
      }
    });
  });
}
