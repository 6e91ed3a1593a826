/** Rates of requests and withdrawals of strangers. Each one is written to disk and causes an event. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Couriers } from '../../../src/capabilities/chat/couriers.ts';
import { CHAT_VERSION, encodeFrame } from '../../../src/capabilities/chat/wire.ts';
import { type EventCause, STRANGERS } from '../../../src/foundation/events.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { ChatStore } from '../../../src/foundation/store/chat.ts';
import { ChatLog } from '../../../src/foundation/store/chat-log.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { asLink, localPair } from '../../../src/network/links/stream.ts';
import type { LinkPath, LinkStream } from '../../../src/network/links/types.ts';
import { testAid } from '../../support/agents.ts';
import { newIdentity } from '../../support/identities.ts';
import { idle } from '../../support/idle.ts';
import { TestClock } from '../../support/test-clock.ts';

const KNOWN = testAid(2);
const SOURCE = '192.0.2.1';

function setUp() {
  const db = Store.open(':memory:', MIGRATIONS);
  const store = new ChatStore(db);
  const { aid, delegation } = newIdentity();
  new AgentStore(db).put({ keyName: aid, delegation, serviceTcp: '', registeredAt: 0 });
  const handlers: ((link: LinkStream) => void)[] = [];
  const events: { readonly cause: EventCause | undefined }[] = [];
  const couriers = new Couriers(
    {
      store,
      entries: new ChatLog(db),
      events: { emit: (_aid, _type, _data, cause) => events.push({ cause }) },
      clock: new TestClock(),
      log: silentLog,
      links: { open: () => assert.fail(), accept: (_, handler) => void handlers.push(handler), reset: () => {} },
      random: () => 0.5,
      isKnown: (_, peer) => peer === KNOWN,
    },
    () => {},
  );
  const call = (caller: Aid, source = SOURCE) => {
    const [near, far] = localPair();
    near.resume();
    near.on('error', () => {});
    const names = {
      caller,
      called: aid,
      purpose: 'chat',
      accessToken: undefined,
      nodeKey: new Uint8Array(32),
    } as const;
    const path = (): LinkPath => ({ kind: 'direct', remote: null, source, rttMs: 1 });
    for (const handler of handlers) handler(asLink(far, names, path));
    near.write(Uint8Array.of(CHAT_VERSION));
    const stream = new Uint8Array(16).fill(1);
    return {
      far,
      ask: async () => {
        near.write(encodeFrame({ kind: 'request', n: 1, stream, note: '' }));
        near.write(encodeFrame({ kind: 'gone', n: 2, stream, re: null }));
        await idle();
      },
    };
  };
  return { aid, store, events, couriers, call };
}

test('a stranger that repeatedly requests and withdraws is disconnected and cannot fill the event log', async () => {
  const { store, aid, events, couriers, call } = setUp();
  for (let agent = 10; agent < 20; agent++) {
    const { far, ask } = call(testAid(agent));
    for (let n = 0; n < 100 && !far.destroyed; n++) await ask();
    assert.ok(far.destroyed, `agent ${agent}`);
  }
  assert.ok(events.length <= 300, `${events.length} events`);
  assert.ok(events.every(({ cause }) => cause === STRANGERS));
  const known = call(KNOWN);
  await known.ask();
  assert.equal(known.far.destroyed, false);
  assert.deepEqual(events.at(-1), { cause: KNOWN });
  assert.equal(store.count(aid, 'in_pending'), 0);
  await couriers.stop();
});

test('silent links of strangers at one source cannot exhaust the links of other sources and known agents', async () => {
  const { couriers, call } = setUp();
  const silent = Array.from({ length: 20 }, (_, n) => call(testAid(10 + n)).far);
  await idle();
  assert.equal(silent.filter(({ destroyed }) => !destroyed).length, 16);
  const many = Array.from({ length: 600 }, (_, n) => call(testAid(100 + n), `10.${n % 100}.${n % 7}.1`).far);
  await idle();
  assert.equal([...silent, ...many].filter(({ destroyed }) => !destroyed).length, 384);
  assert.equal(call(KNOWN).far.destroyed, false);
  await couriers.stop();
});
