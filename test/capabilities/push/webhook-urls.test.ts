/** Webhook URLs of strangers leave room for callers allowed by name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StoreNotification } from '../../../src/capabilities/push/types.ts';
import { WebhookUrls } from '../../../src/capabilities/push/webhook-urls.ts';
import { requestWebhookUrl } from '../../../src/capabilities/push/wire.ts';
import {
  MAX_NOTIFICATION_BYTES,
  MAX_PUSH_BOXES_OF_STRANGERS,
  MAX_PUSH_BOXES_PER_SOURCE,
  MAX_QUEUED_NOTIFICATION_BYTES,
  NETWORK_WAITING_PART,
  SOURCE_WAITING_PART,
  STRANGERS_WAITING_PART,
} from '../../../src/foundation/domain/push.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { lentSource } from '../../../src/foundation/quota.ts';
import { sha256Hex } from '../../../src/foundation/store/store.ts';
import { WebhookUrlStore } from '../../../src/foundation/store/webhook-urls.ts';
import { asLink, localPair } from '../../../src/network/links/stream.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { plainPath } from '../../../src/network/transport/path.ts';
import { storeWithAgents } from '../../foundation/store/store-with-agents.ts';
import { testAid } from '../../support/agents.ts';
import { testSecrets } from '../../support/stored-secrets.ts';
import { TestClock } from '../../support/test-clock.ts';

const FRIEND = testAid(2);
const STRANGER = 10;

function setUp() {
  const { store, aids } = storeWithAgents(1);
  const [called] = aids;
  assert.ok(called !== undefined);
  const boxes = new WebhookUrlStore(store, testSecrets());
  let serve: (link: LinkStream) => void = () => {};
  let leaveAt: StoreNotification = () => 'unknown';
  let ids = 0;
  const mailboxes = new WebhookUrls({
    store: boxes,
    links: {
      open: async () => await new Promise<never>(() => {}),
      accept: (_purpose, handler) => void (serve = handler),
    },
    memory: { get: () => undefined, set: () => {} },
    serve: async (_port, leave) => {
      leaveAt = leave;
      return { port: 4500, close: async () => {} };
    },
    clock: new TestClock(),
    log: silentLog,
    secrets: testSecrets(),
    randomBytes: (length) => Buffer.alloc(length, `${ids++}.`),
    random: () => 0,
    newId: () => `box-${ids++}`,
    decide: () => 'allow',
    isNamed: (_called, caller) => caller === FRIEND,
    isServedHere: () => true,
  });
  assert.ok(mailboxes);
  const tokens = new Map<number, string>();
  /** The response to a request for a webhook URL from an address. */
  const ask = async (caller: number, host: string) => {
    const [near, far] = localPair();
    const nodeKey = new Uint8Array(32).fill(caller % 251);
    const names = { caller: testAid(caller), called, purpose: 'push-box', accessToken: undefined, nodeKey } as const;
    const path = () => ({ ...plainPath('direct', { host, port: 1 }), rttMs: 0 });
    serve(asLink(far, names, path));
    const answer = await requestWebhookUrl(asLink(near, names, path), AbortSignal.timeout(60_000));
    if (typeof answer === 'object' && answer !== null) tokens.set(caller, new URL(answer.url).pathname.slice(1));
    return answer;
  };
  const countOf = (host: string): number => boxes.list().filter(({ box }) => box.source === host).length;
  /** Queues notifications for a caller until the quota is full. Returns their bytes. */
  const fill = (caller: number): number => {
    const token = tokens.get(caller) ?? '';
    const body = Buffer.alloc(MAX_NOTIFICATION_BYTES);
    for (let bytes = 0; ; bytes += body.length)
      if (leaveAt(token, { webhook: '00'.repeat(8), headers: [], body }) !== 'kept') return bytes;
  };
  return { boxes, ask, called, countOf, fill };
}

const isOpen = (answer: unknown): boolean => typeof answer === 'object' && answer !== null;

test('strangers of one source get a few webhook URLs; callers allowed by name and other sources still get theirs', async () => {
  const { boxes, ask, countOf } = setUp();
  let caller = STRANGER;
  for (let i = 0; i < 2 * MAX_PUSH_BOXES_PER_SOURCE; i++) await ask(caller++, '192.0.2.1');
  assert.equal(countOf('192.0.2.1'), MAX_PUSH_BOXES_PER_SOURCE);
  for (let i = 0; i < MAX_PUSH_BOXES_OF_STRANGERS; i++) await ask(caller++, `10.${i >> 4}.0.${i & 15}`);
  assert.equal(boxes.list().length, MAX_PUSH_BOXES_OF_STRANGERS);
  assert.equal(isOpen(await ask(2, '192.0.2.1')), true);
  assert.equal(isOpen(await ask(caller, '198.51.100.1')), true, 'a URL of the largest source is evicted');
  assert.ok(countOf('192.0.2.1') < MAX_PUSH_BOXES_PER_SOURCE);
});

test('a caller whose webhook URL another node key made gets one that works', async () => {
  const { boxes, ask, called } = setUp();
  const row = { id: 'b', called, caller: FRIEND, tokenHash: sha256Hex('lost'), openedAt: 0, node: 'n', source: null };
  boxes.open(row);
  const answer = await ask(2, '192.0.2.1');
  assert.ok(typeof answer === 'object' && answer !== null);
  assert.equal(boxes.byToken(new URL(answer.url).pathname.slice(1))?.id, 'b');
});

test('queued notifications of strangers leave room for callers allowed by name', async () => {
  const { ask, fill } = setUp();
  await ask(2, '192.0.2.1');
  const sums: number[] = [];
  for (let source = 1; source <= 6; source++) {
    let sum = 0;
    for (let i = 0; i < 3; i++) {
      const caller = STRANGER + 3 * source + i;
      await ask(caller, `10.${source}.0.1`);
      sum += fill(caller);
    }
    sums.push(sum);
  }
  assert.equal(sums[0], SOURCE_WAITING_PART * MAX_QUEUED_NOTIFICATION_BYTES);
  assert.equal(
    sums.reduce((all, sum) => all + sum, 0),
    STRANGERS_WAITING_PART * MAX_QUEUED_NOTIFICATION_BYTES,
  );
  assert.ok(fill(2) > 0);
});

test('notifications of one network, and of lent ports, leave room for strangers of others', async () => {
  for (const hostOf of [(n: number) => `192.0.2.${n}`, (n: number) => lentSource(`10.${n}.0.1`)]) {
    const { ask, fill } = setUp();
    let sum = 0;
    for (let n = 1; n <= 4; n++)
      for (let i = 0; i < 3; i++) {
        await ask(STRANGER + 3 * n + i, hostOf(n));
        sum += fill(STRANGER + 3 * n + i);
      }
    assert.equal(sum, NETWORK_WAITING_PART * MAX_QUEUED_NOTIFICATION_BYTES);
    await ask(STRANGER, '198.51.100.1');
    assert.ok(fill(STRANGER) > 0);
  }
});
