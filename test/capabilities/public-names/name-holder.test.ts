/** An agent holds a public name at an entry, over links of the in-memory network. The entry is a stub. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { NameHolder, type PublicConnection } from '../../../src/capabilities/public-names/name-holder.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import {
  decodeConnection,
  decodeNameAnswer,
  decodeNameRequest,
  encodeConnection,
  encodeNameAnswer,
  encodeNameRequest,
  type NameRequest,
  type NameVerdict,
} from '../../../src/foundation/public-name-messages.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { MetaStore } from '../../../src/foundation/store/meta.ts';
import { PublicNameStore } from '../../../src/foundation/store/public-names.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { readFrame } from '../../../src/network/peers/wire.ts';
import { eventually } from '../../support/eventually.ts';
import { LinkWorld, readAll, withCode } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const NAME = 'demo.vps.example.org';
const CLIENT = { name: NAME, clientAddress: '203.0.113.9', clientPort: 4711 };

async function frame(link: LinkStream): Promise<Uint8Array> {
  return await readFrame(link, 512, new AbortController().signal);
}

async function worldOf(t: TestContext) {
  const world = new LinkWorld();
  t.after(() => world[Symbol.asyncDispose]());
  const [home, vps] = [await world.node(), await world.node()];
  const [agent, entry] = [home.host(), vps.hostNode()];
  const store = Store.open(':memory:', MIGRATIONS);
  new AgentStore(store).put({ keyName: 'key', delegation: agent.delegation, serviceTcp: '', registeredAt: 0 });
  const clock = new TestClock();
  const kept: string[] = [];
  const network = { ready: true, changed: (): void => {} };
  const holderOf = () =>
    new NameHolder({
      clock,
      log: silentLog,
      random: () => 0,
      store: new PublicNameStore(store),
      links: home.links,
      network: {
        reachability: () => network,
        onReachability: (handler) => {
          network.changed = handler;
          return () => {};
        },
      },
      keep: (nodeKey) => {
        kept.push(Buffer.from(nodeKey).toString('hex'));
        return () => void kept.pop();
      },
      memory: new MetaStore(store),
      isLocal: (aid) => home.agents.has(aid),
    });
  const holder = holderOf();
  /** Requests that the entry received, with the verdict of the next ones. */
  const requests: (NameRequest & { readonly aid: Aid })[] = [];
  const verdict: { next: NameVerdict } = { next: 'ok' };
  vps.links.accept('entry', (link) => {
    void frame(link).then((bytes) => {
      const request = decodeNameRequest(bytes);
      assert.ok(request !== null);
      requests.push({ ...request, aid: link.caller });
      const name = request.name.includes('.') ? request.name : `${request.name}.vps.example.org`;
      link.end(encodeNameAnswer({ verdict: verdict.next, name, leaseDays: 30 }));
      link.resume();
    });
  });
  t.after(() => holder.stop());
  return { home, vps, aid: agent.aid, entry: entry.aid, store, clock, kept, network, holder, requests, verdict };
}

test('a label becomes a whole name, which is confirmed each hour', async (t) => {
  const { aid, entry, holder, requests, clock, kept, vps } = await worldOf(t);
  await holder.start();
  const { state, error, ...held } = await holder.claim(aid, 'demo', entry);
  assert.deepEqual([held.name, held.aid, held.entry, state, error], [NAME, aid, entry, 'held', null]);
  assert.deepEqual(holder.list(), [{ ...held, state, error }]);
  assert.deepEqual(kept, [Buffer.from(vps.key.publicKey).toString('hex')]);
  await eventually('a second claim', async () => {
    await clock.run(60 * 60_000);
    return requests.length > 1;
  });
  assert.deepEqual(requests[1], { aid, action: 'claim', name: NAME, token: null });
});

test('each refusal has its own code, and stores nothing', async (t) => {
  const { aid, entry, holder, verdict } = await worldOf(t);
  const codes = {
    taken: 'name_taken',
    not_below: 'name_not_allowed',
    invalid: 'bad_public_name',
    denied: 'entry_denied',
    full: 'quota_exceeded',
  } as const;
  for (const [next, code] of Object.entries(codes)) {
    verdict.next = next as NameVerdict;
    await assert.rejects(holder.claim(aid, 'demo', entry), withCode(code));
  }
  for (const name of ['www', 'Demo', 'xn--bcher-kva', 'a_b', '-a', 'd\u0435mo', '', 'demo.', 'localhost.example.org'])
    await assert.rejects(holder.claim(aid, name, entry), withCode('bad_public_name'));
  assert.deepEqual(holder.list(), []);
});

test('a node that is no entry is one without permission', async (t) => {
  const { aid, holder, home } = await worldOf(t);
  const other = home.host();
  await assert.rejects(holder.claim(aid, 'demo', other.aid), withCode('entry_denied'));
  await assert.rejects(holder.claim(other.aid, 'demo', other.aid), withCode('entry_denied'));
});

test('a lost name shows the reason, and returns', async (t) => {
  const { aid, entry, holder, verdict, network, clock, vps } = await worldOf(t);
  await holder.start();
  await holder.claim(aid, 'demo', entry);
  verdict.next = 'taken';
  holder.onLost(vps.key.publicKey);
  await eventually('the refusal', async () => {
    await clock.run(1000);
    return holder.list()[0]?.state === 'failed';
  });
  assert.equal(holder.list()[0]?.error?.code, 'name_taken');
  verdict.next = 'ok';
  network.changed();
  await eventually('the name', async () => {
    await clock.run(10 * 60_000);
    return holder.list()[0]?.state === 'held';
  });
});

test('connections of the entry of a name arrive with the address of the client, others do not', async (t) => {
  const { aid, entry, holder, vps, home } = await worldOf(t);
  const connections: PublicConnection[] = [];
  const open = async (from = entry, name = NAME) => {
    const first = Buffer.concat([encodeConnection({ ...CLIENT, name }), Buffer.from('hello')]);
    return await vps.links.open(from, aid, 'public', { first: { bytes: () => first } });
  };
  await assert.rejects(open(), withCode('access_denied'));
  await holder.claim(aid, 'demo', entry);
  holder.onConnection((connection, stream) => {
    connections.push(connection);
    stream.pipe(stream);
  });
  const link = await open();
  link.end(' world');
  assert.equal(String(await readAll(link)), 'hello world');
  assert.deepEqual(connections, [{ ...CLIENT, aid, entry }]);
  assert.equal(home.authorized.length, 2);

  await assert.rejects(open(vps.host().aid), withCode('access_denied'));
  const wrong = await open(entry, 'other.vps.example.org');
  await assert.rejects(readAll(wrong));
  assert.equal(connections.length, 1);
});

test('a released name closes its connections', async (t) => {
  const { aid, entry, holder, vps, requests, kept } = await worldOf(t);
  await holder.claim(aid, 'demo', entry);
  let received = 0;
  holder.onConnection(() => received++);
  const link = await vps.links.open(entry, aid, 'public', { first: { bytes: () => encodeConnection(CLIENT) } });
  link.on('error', () => {});
  await eventually('the connection', () => received === 1);
  await assert.rejects(holder.release(entry, NAME), withCode('not_found'));
  await holder.release(aid, NAME);
  await eventually('the end', () => link.destroyed || undefined);
  assert.deepEqual(requests.at(-1), { aid, action: 'release', name: NAME, token: null });
  assert.deepEqual([holder.list(), kept], [[], []]);
});

test('messages have one form', () => {
  const body = (framed: Uint8Array): Uint8Array => framed.subarray(2);
  const request = { action: 'release', name: NAME, token: 'a'.repeat(22) } as const;
  assert.deepEqual(decodeNameRequest(body(encodeNameRequest(request))), request);
  const answer = { verdict: 'full', name: NAME, leaseDays: 30 } as const;
  assert.deepEqual(decodeNameAnswer(body(encodeNameAnswer(answer))), answer);
  assert.deepEqual(decodeConnection(body(encodeConnection(CLIENT))), CLIENT);
  const bad = { name: 'www.example.org', clientAddress: '203.0.113.9', clientPort: 1 };
  assert.equal(decodeConnection(body(encodeConnection(bad))), null);
  assert.equal(decodeConnection(body(encodeConnection({ ...CLIENT, clientAddress: '203.0.113.09' }))), null);
});
