/** A caller and a called node without helpers, over an in-memory record network. The lab tests TURN itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { toHex } from '../../../src/foundation/bytes.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { turnRendezvousKey } from '../../../src/foundation/records/keys.ts';
import type { TurnRendezvous } from '../../../src/foundation/records/payloads.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { UNHELPED } from '../../../src/network/peers/dial.ts';
import { ATTEMPT_BYTES } from '../../../src/network/reachability/signals.ts';
import { TurnServers } from '../../../src/network/reachability/turn/turn-servers.ts';
import {
  encodeRendezvousRequest,
  RENDEZVOUS_POLL_MS,
  type RendezvousRequest,
  sealRendezvousMessage,
  TurnRendezvousClient,
  TurnRendezvousServer,
  UNHELPED_POLLS,
} from '../../../src/network/reachability/turn-rendezvous.ts';
import { eventually } from '../../support/eventually.ts';
import { MemoryRecordHub, MemoryRecordNetwork } from '../../support/memory-records.ts';
import { TestClock } from '../../support/test-clock.ts';

const CALLER = new Uint8Array(32).fill(1);
const CALLED = new Uint8Array(32).fill(2);
const CALLER_HOST = '203.0.113.7';
const CALLED_HOST = '198.51.100.8';
const AT_SERVER: Address = { host: '192.0.2.20', port: 50_000 };

async function world(
  meet: (rendezvousRequest: RendezvousRequest, ownHost: string) => Promise<Address | null> = async () => AT_SERVER,
) {
  const clock = new TestClock();
  const hub = new MemoryRecordHub(clock);
  const records = new MemoryRecordNetwork(hub);
  await records.start();
  const state = { isNeeded: true, seenHost: CALLED_HOST, looks: 0 };
  const places: (TurnRendezvous | null)[] = [];
  const met: RendezvousRequest[] = [];
  const server = new TurnRendezvousServer({
    clock,
    log: silentLog,
    nodeKey: CALLED,
    records: {
      put: (key, record, options) => records.put(key, record, options),
      list: (key, types, options) => {
        state.looks++;
        return records.list(key, types, options);
      },
    },
    seenHost: () => state.seenHost,
    isNeeded: () => state.isNeeded,
    onRendezvous: (place) => places.push(place),
    meet: async (rendezvousRequest, ownHost) => {
      met.push(rendezvousRequest);
      return await meet(rendezvousRequest, ownHost);
    },
  });
  const dialed: Address[] = [];
  const failed = new SvcError('connect_failed', { message: 'end of this test' });
  const client = new TurnRendezvousClient({
    clock,
    nodeKey: CALLER,
    records,
    seenHost: () => CALLER_HOST,
    turn: new TurnServers([], clock, silentLog),
    dial: (address) => {
      dialed.push(address);
      return Promise.reject(failed);
    },
  });
  await server.start();
  const look = async (times = 1) => {
    for (let i = 0; i < times; i++) await clock.run(RENDEZVOUS_POLL_MS);
  };
  return { clock, records, state, places, met, server, client, dialed, failed, look };
}

type World = Awaited<ReturnType<typeof world>>;

/** The rendezvous, once it is published. */
async function published({ look, places }: World): Promise<TurnRendezvous> {
  await look(UNHELPED_POLLS);
  const place = places.at(-1);
  assert.ok(place);
  return place;
}

async function put({ records, clock }: World, message: Uint8Array, { publicKey }: TurnRendezvous): Promise<void> {
  await records.put(turnRendezvousKey(publicKey), sealRendezvousMessage(message, publicKey, clock));
}

const rendezvousRequest = (more: Partial<RendezvousRequest> = {}): Uint8Array =>
  encodeRendezvousRequest({
    caller: CALLER,
    attempt: new Uint8Array(ATTEMPT_BYTES).fill(3),
    answerTo: new Uint8Array(32).fill(9),
    host: CALLER_HOST,
    listensAt: AT_SERVER,
    ...more,
  });

test("a caller without a TURN server receives the other node's address at its server", async () => {
  const all = await world();
  const { client, dialed, failed, met, clock } = all;
  const rendezvous = await published(all);
  assert.equal(rendezvous.host, CALLED_HOST);
  const place = { nodeKey: CALLED, addresses: [], ...UNHELPED, meeting: rendezvous, hasTurn: true } as const;
  assert.equal(client.mayLead(place), true);
  const ended = assert.rejects(client.meet(place, new AbortController().signal), failed);
  await eventually('the address is dialed', async () => {
    await clock.run(RENDEZVOUS_POLL_MS);
    return dialed.length > 0;
  });
  await ended;
  assert.deepEqual(dialed, [AT_SERVER]);
  assert.deepEqual([met.length, met[0]?.host, met[0]?.listensAt], [1, CALLER_HOST, null]);
  assert.deepEqual(met[0]?.caller, CALLER);
});

test('a rendezvous needs a TURN server on one side and a published rendezvous on the other', async () => {
  const { client } = await world();
  const rendezvous = { publicKey: CALLED, host: CALLED_HOST };
  const place = { nodeKey: CALLED, addresses: [], ...UNHELPED };
  assert.deepEqual(
    [client.mayLead({ ...place, meeting: rendezvous }), client.mayLead({ ...place, hasTurn: true })],
    [false, false],
  );
});

test('the rendezvous is published after helpers were missing for a while, and withdrawn when they return', async () => {
  const all = await world();
  const { look, places, state } = all;
  await look(UNHELPED_POLLS - 1);
  assert.equal(places.length, 0);
  await look();
  const [first] = places;
  assert.ok(first);
  state.seenHost = '198.51.100.9';
  await look();
  assert.deepEqual(places.at(-1), { ...first, host: '198.51.100.9' });
  state.isNeeded = false;
  await look(2);
  assert.deepEqual([places.length, places.at(-1)], [3, null]);
});

test('with helpers, no requests are read', async () => {
  const all = await world();
  await published(all);
  const { looks } = all.state;
  assert.ok(looks > 0);
  all.state.isNeeded = false;
  await all.look(2);
  assert.equal(all.state.looks, looks);
});

test('each request is answered once. Invalid requests and requests of this node are ignored', async () => {
  const all = await world(() => Promise.reject(new SvcError('rate_limited')));
  const { look, met } = all;
  const place = await published(all);
  await put(all, Uint8Array.of(1, 2, 3), place);
  await put(all, rendezvousRequest({ caller: CALLED }), place);
  await put(all, rendezvousRequest(), place);
  await eventually('the request arrives', async () => {
    await look();
    return met.length > 0;
  });
  const { looks } = all.state;
  await eventually('the requests are read again', async () => {
    await look();
    return all.state.looks >= looks + 2;
  });
  assert.deepEqual(
    met.map(({ caller }) => toHex(caller)),
    [toHex(CALLER)],
  );
});

test('the record of a request reveals neither the caller nor its address', async () => {
  const all = await world();
  const place = await published(all);
  await put(all, rendezvousRequest(), place);
  const [record] = await all.records.list(turnRendezvousKey(place.publicKey), [RECORD.note]);
  assert.ok(record);
  const encoded = Buffer.from(record.encoded);
  for (const secret of [Buffer.from(CALLER), Buffer.from(CALLER_HOST), Buffer.from(AT_SERVER.host)])
    assert.equal(encoded.includes(secret), false);
});
