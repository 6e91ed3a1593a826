/** Both sides of push notifications: the node of a called agent, and the node of the program with the webhook. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { StoreNotification, WebhookPost } from '../../../src/capabilities/push/types.ts';
import { WebhookUrls } from '../../../src/capabilities/push/webhook-urls.ts';
import { Webhooks } from '../../../src/capabilities/push/webhooks.ts';
import { decodeNotification, encodeNotification, offerNotification } from '../../../src/capabilities/push/wire.ts';
import type { AccessDecision } from '../../../src/foundation/domain/access.ts';
import {
  MAX_NOTIFICATION_BYTES,
  MAX_NOTIFICATION_HEADER_CHARS,
  MAX_NOTIFICATION_HEADERS,
  MAX_QUEUED_PER_WEBHOOK,
  NOTIFICATION_LIFE_MS,
  PUSH_BOX_RENEW_MS,
} from '../../../src/foundation/domain/push.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { OriginStore } from '../../../src/foundation/store/origins.ts';
import { WebhookUrlStore } from '../../../src/foundation/store/webhook-urls.ts';
import { type NewNotification, WebhookStore } from '../../../src/foundation/store/webhooks.ts';
import { asLink, localPair } from '../../../src/network/links/stream.ts';
import type { AccessRequest, LinkStream, Links, Purpose } from '../../../src/network/links/types.ts';
import { plainPath } from '../../../src/network/transport/path.ts';
import { storeWithAgents } from '../../foundation/store/store-with-agents.ts';
import { testAid } from '../../support/agents.ts';
import { eventually } from '../../support/eventually.ts';
import { testSecrets } from '../../support/stored-secrets.ts';
import { TestClock } from '../../support/test-clock.ts';

/** Lets the queues run until a condition is met. */
const until = <T>(clock: TestClock, what: string, check: () => T | undefined | false): Promise<T> =>
  eventually(what, async () => {
    await clock.run(0);
    return check();
  });

const [PROGRAM, SERVER, STRANGER] = [testAid(1), testAid(2), testAid(3)];
const ORIGIN = { id: 'origin', localAid: PROGRAM, remoteAid: SERVER };
const WEBHOOK = 'http://127.0.0.1:9000/hook';
const BODY = Buffer.from('{"done":true}');

interface Acceptor {
  readonly handler: (stream: LinkStream) => void;
  readonly check: (request: AccessRequest) => void;
}

/** Opens a link from one agent to another, whose node accepts it or not. */
function openTo(acceptors: ReadonlyMap<Purpose, Acceptor>, caller = PROGRAM, called = SERVER) {
  return async (purpose: Purpose): Promise<LinkStream> => {
    const acceptor = acceptors.get(purpose);
    assert.ok(acceptor);
    acceptor.check({ purpose, caller, called, accessToken: undefined, nodeKey: null, source: null });
    const [near, far] = localPair();
    near.on('error', () => {});
    const nodeKey = new Uint8Array(32);
    const names = { caller, called, purpose, accessToken: undefined, nodeKey } as const;
    const path = () => ({ ...plainPath('direct', { host: '192.0.2.1', port: 1 }), rttMs: 0 });
    acceptor.handler(asLink(far, names, path));
    return asLink(near, names, path);
  };
}

/** A program's node and a server's node. The test is the program's webhook and the server. */
async function setUp(t: TestContext) {
  const clock = new TestClock();
  const accepted = { program: new Map<Purpose, Acceptor>(), server: new Map<Purpose, Acceptor>() };
  const acceptInto = (acceptors: Map<Purpose, Acceptor>): Links['accept'] => {
    return (purpose, handler, check = () => {}) => void acceptors.set(purpose, { handler, check });
  };
  let ids = 0;
  const randomBytes = (length: number): Uint8Array => Buffer.from(`${ids++}`.padStart(length, '0')).subarray(-length);
  const state = { isDenied: false, decision: 'allow' as AccessDecision, isServedHere: true as boolean | null };
  const reach = { program: true, opened: 0 };
  const posts: WebhookPost[] = [];
  /** The results of the next requests to the webhook. */
  const results: (number | SvcError)[] = [];
  const programs = storeWithAgents(2).store;
  new OriginStore(programs, testSecrets()).save({ ...ORIGIN, accessToken: undefined, port: 4000, openedAt: 0 });
  const store = new WebhookStore(programs, testSecrets());
  const webhooks = new Webhooks({
    store,
    links: {
      open: async (_local, _remote, purpose) => {
        reach.opened++;
        return await openTo(accepted.server)(purpose);
      },
      accept: acceptInto(accepted.program),
    },
    post: async (post) => {
      posts.push(post);
      const result = results.shift() ?? 204;
      if (typeof result !== 'number') throw result;
      return result;
    },
    clock,
    log: silentLog,
    randomBytes,
    random: () => 0,
    isDenied: () => state.isDenied,
  });
  let leave: StoreNotification = () => 'unknown';
  const boxes = new WebhookUrlStore(storeWithAgents(2).store, testSecrets());
  const memory = new Map<string, unknown>();
  const listened: number[] = [];
  const urls = new WebhookUrls({
    store: boxes,
    links: {
      open: async (_local, _remote, purpose) => {
        if (!reach.program) throw new SvcError('connect_failed');
        return await openTo(accepted.program, SERVER, PROGRAM)(purpose);
      },
      accept: acceptInto(accepted.server),
    },
    memory: { get: (key) => memory.get(key), set: (key, value) => void memory.set(key, value) },
    serve: async (port, take) => {
      listened.push(port);
      leave = take;
      return { port: port === 0 ? 4500 : port, close: async () => {} };
    },
    clock,
    log: silentLog,
    secrets: testSecrets(),
    randomBytes,
    random: () => 0,
    newId: () => `box-${ids++}`,
    decide: () => state.decision,
    isNamed: () => false,
    isServedHere: () => state.isServedHere,
  });
  t.after(() => Promise.all([webhooks.stop(), urls.stop()]));
  const register = (address = WEBHOOK, purpose: string | null = null) =>
    webhooks.register(ORIGIN, address, purpose, new AbortController().signal);
  /** The server posts to a webhook URL. */
  const notify = (address: string, headers: readonly string[] = [], body: Uint8Array = BODY) => {
    const [, token = '', webhook = ''] = new URL(address).pathname.split('/');
    return leave(token, { webhook, headers, body });
  };
  const posted = (count: number) => until(clock, `${count} requests`, () => posts.length >= count && posts.length);
  /** Offers a notification to the program's node, as an agent. */
  const offer = async (notification: Partial<NewNotification>, caller = SERVER) => {
    const link = await openTo(accepted.program, caller, PROGRAM)('push');
    const whole = { webhook: '00'.repeat(8), id: '11'.repeat(16), headers: [], body: BODY, ...notification };
    return await offerNotification(link, whole, AbortSignal.timeout(60_000));
  };
  return {
    clock,
    state,
    reach,
    posts,
    results,
    store,
    boxes,
    webhooks,
    urls,
    listened,
    memory,
    accepted,
    register,
    notify,
    posted,
    offer,
  };
}

/** A setup with one registered webhook. */
/** @param started the parts that run */
async function registered(t: TestContext, started: readonly ('webhooks' | 'urls')[] = ['webhooks', 'urls']) {
  const world = await setUp(t);
  const made = await world.register();
  assert.ok(made);
  for (const part of started) await world[part].start();
  return { ...world, ...made };
}

test('a notification for a webhook URL is posted to the webhook once', async (t) => {
  const { webhooks, urls, posts, posted, notify, address, name, isNew, register, clock, boxes } = await registered(t);
  assert.match(address, /^http:\/\/127\.0\.0\.1:4500\/[\w-]+\/[0-9a-f]{16}$/);
  assert.equal(isNew, true);
  assert.equal(notify(address, ['X-Task', '7']), 'kept');
  await posted(1);
  const [post] = posts;
  assert.equal(post?.url.href, WEBHOOK);
  assert.deepEqual(post.headers.slice(0, 6), ['X-Task', '7', 'Svc-Caller-Aid', SERVER, 'Svc-Local-Aid', PROGRAM]);
  assert.deepEqual(post.headers.slice(6, 7), ['Svc-Notification-Id']);
  assert.match(post.headers[7] ?? '', /^[0-9a-f]{32}$/);
  assert.deepEqual(Buffer.from(post.body), BODY);
  await until(clock, 'delivered', () => webhooks.list()[0]?.taken === 1);
  assert.deepEqual(webhooks.list()[0]?.lastTry, { at: clock.now(), error: null });
  await until(clock, 'removed from the queue', () => urls.list()[0]?.waiting === 0);
  assert.equal(webhooks.list()[0]?.waiting, 0);
  assert.equal(boxes.list().length, 1);
  const again = await register();
  assert.equal(posts.length, 1);
  assert.notEqual(again?.name, name, 'without a purpose, each registration is a new webhook');
});

test('a webhook with the same purpose keeps its URL, and only its local address knows it', async (t) => {
  const { webhooks, register } = await setUp(t);
  const [first, second] = [await register(WEBHOOK, 'task 1'), await register(WEBHOOK, 'task 1')];
  assert.ok(first && second);
  assert.deepEqual([second.name, second.isNew], [first.name, false]);
  assert.equal(webhooks.findByUrl(ORIGIN.id, first.address)?.url, WEBHOOK);
  assert.equal(webhooks.findByUrl('other', first.address), null);
  assert.equal(webhooks.findByUrl(ORIGIN.id, first.address.replace('127.0.0.1', '127.0.0.2')), null);
  assert.equal(webhooks.has(first.name), true);
  webhooks.remove(first.name);
  assert.equal(webhooks.has(first.name), false);
  assert.throws(() => webhooks.remove(first.name), { code: 'not_found' });
  assert.equal(await register('https://example.com/hook'), null, 'the server can call a public webhook itself');
});

test('a webhook that does not respond is called again; after a refusal the next notification follows', async (t) => {
  const { clock, webhooks, posts, results, posted, notify, address } = await registered(t);
  results.push(new SvcError('connect_failed', { message: 'down' }), 503, 425, 429, 408, 404);
  notify(address);
  await posted(1);
  assert.equal(webhooks.list()[0]?.lastTry?.error, 'down');
  notify(address, [], Buffer.from('2'));
  for (let attempt = 2; attempt <= 6; attempt++) {
    await clock.run(60_000);
    await posted(attempt);
    assert.deepEqual(Buffer.from(posts[attempt - 1]?.body ?? []), BODY, 'the order is kept');
  }
  await posted(7);
  assert.equal(Buffer.from(posts[6]?.body ?? []).toString(), '2');
  await until(clock, 'both are settled', () => webhooks.list()[0]?.waiting === 0);
  assert.equal(webhooks.list()[0]?.taken, 1, 'a refused notification was not taken');
});

test('a webhook is not called with a notification that is too old', async (t) => {
  const { clock, webhooks, posts, results, posted, notify, address } = await registered(t);
  results.push(500);
  notify(address);
  await posted(1);
  clock.jump(NOTIFICATION_LIFE_MS);
  await clock.run(60_000);
  await until(clock, 'discarded', () => webhooks.list()[0]?.waiting === 0);
  assert.deepEqual([posts.length, webhooks.list()[0]?.taken], [1, 0]);
});

test('queued notifications of an agent that the owner then denies are deleted', async (t) => {
  const { clock, webhooks, posts, results, posted, notify, state, address } = await registered(t);
  results.push(500);
  notify(address);
  await posted(1);
  state.isDenied = true;
  await clock.run(60_000);
  await until(clock, 'deleted', () => webhooks.list().length === 0);
  assert.equal(posts.length, 1);
});

test('only the agent with the webhook can deliver, and not after the owner denies it', async (t) => {
  const { name, offer, state, posted } = await registered(t);
  await assert.rejects(offer({ webhook: name }, STRANGER), { code: 'access_denied' });
  assert.equal(await offer({}), 'gone');
  assert.equal(await offer({ webhook: name }), 'kept');
  assert.equal(await offer({ webhook: name }), 'kept', 'a repeated notification is acknowledged again');
  const posts = await posted(1);
  state.isDenied = true;
  await assert.rejects(offer({ webhook: name, id: '22'.repeat(16) }), { code: 'access_denied' });
  assert.equal(posts, 1);
});

test('a denial between the check of a link and its notification counts', async (t) => {
  const { name, accepted, state, posts } = await registered(t);
  const link = await openTo(accepted.program, SERVER, PROGRAM)('push');
  state.isDenied = true;
  const notification = { webhook: name, id: '33'.repeat(16), headers: [], body: BODY };
  assert.equal(await offerNotification(link, notification, AbortSignal.timeout(60_000)), 'gone');
  assert.deepEqual(posts, []);
});

test('links of one agent are limited, and silent links end', async (t) => {
  const { clock, accepted, offer, name } = await registered(t);
  const open = openTo(accepted.program, SERVER, PROGRAM);
  const links = await Promise.all(Array.from({ length: 8 }, () => open('push')));
  await assert.rejects(open('push'), { code: 'rate_limited' });
  await clock.run(31_000);
  await until(clock, 'closed', () => links.every((link) => link.destroyed));
  assert.equal(await offer({ webhook: name }), 'kept');
});

test('a full queue is reported, and the rest waits at the sender', async (t) => {
  const { webhooks, urls, store, name, offer, results, notify, address, clock } = await registered(t);
  results.push(...Array.from({ length: 10 }, () => 500));
  for (let i = 0; i < MAX_QUEUED_PER_WEBHOOK; i++)
    store.addNotification(
      { webhook: name, id: i.toString(16).padStart(32, '0'), headers: [], body: BODY },
      clock.now(),
    );
  assert.equal(await offer({ webhook: name }), 'full');
  assert.equal(notify(address), 'kept');
  await clock.run(0);
  assert.equal(urls.list()[0]?.waiting, 1);
  webhooks.remove(name);
  await clock.run(300_000);
  await until(clock, 'dropped for a removed webhook', () => urls.list()[0]?.waiting === 0);
});

test('invalid notifications are refused', async (t) => {
  const { name, offer } = await registered(t);
  assert.equal(await offer({ webhook: name, headers: ['Cookie', 'a=b'] }), 'refused');
  assert.equal(await offer({ webhook: name, body: new Uint8Array(MAX_NOTIFICATION_BYTES + 1) }), 'refused');
});

test('a notification waits while the program is unreachable, until it is too old', async (t) => {
  const { clock, reach, urls, posts, posted, notify, address } = await registered(t);
  reach.program = false;
  notify(address);
  await clock.run(5_000);
  assert.deepEqual([posts.length, urls.list()[0]?.waiting], [0, 1]);
  reach.program = true;
  await clock.run(300_000);
  await posted(1);
  await until(clock, 'delivered', () => urls.list()[0]?.waiting === 0);
  reach.program = false;
  notify(address);
  await clock.run(0);
  clock.jump(NOTIFICATION_LIFE_MS);
  reach.program = true;
  await clock.run(300_000);
  await until(clock, 'discarded', () => urls.list()[0]?.waiting === 0);
  assert.equal(posts.length, 1);
});

test('a program that is back tells the server, which delivers immediately', async (t) => {
  const { clock, reach, webhooks, posts, posted, notify, address } = await registered(t, ['urls']);
  reach.program = false;
  notify(address);
  for (let i = 0; i < 12; i++) await clock.run(60_000);
  assert.equal(posts.length, 0);
  reach.program = true;
  const before = reach.opened;
  await webhooks.start();
  await clock.run(0);
  await posted(1);
  assert.equal(reach.opened, before + 1);
  await clock.run(PUSH_BOX_RENEW_MS);
  await until(clock, 'renewed each day', () => reach.opened === before + 2);
});

test('a webhook URL ends when the owner of the agent denies the caller, or removes it', async (t) => {
  const { state, urls, notify, address, register } = await registered(t);
  assert.equal(notify(address.replace(/\/[^/]+$/, '/nonsense')), 'unknown');
  assert.equal(notify('http://127.0.0.1:4500/other/0000000000000000'), 'unknown');
  state.decision = 'deny';
  assert.equal(notify(address), 'unknown');
  assert.deepEqual(urls.list(), []);
  state.decision = 'allow';
  assert.equal(notify(address), 'unknown');
  await register();
  const [box] = urls.list();
  assert.ok(box);
  urls.remove(box.id);
  assert.throws(() => urls.remove(box.id), { code: 'not_found' });
});

test('a webhook URL is denied without a service, and if the service runs on a different machine', async (t) => {
  const { state, register } = await setUp(t);
  state.isServedHere = false;
  await assert.rejects(register(), { code: 'inbound_unreachable' });
  state.isServedHere = null;
  await assert.rejects(register(), { code: 'no_inbound' });
});

test('webhook URLs keep their port, and one caller keeps its URL', async (t) => {
  const { urls, listened, memory, address, register } = await registered(t);
  assert.deepEqual([listened, urls.port, memory.get('push_port')], [[0], 4500, 4500]);
  const again = await register('http://127.0.0.1:9000/other');
  assert.equal(again?.address.split('/')[3], address.split('/')[3]);
  assert.deepEqual(listened, [0]);
});

test('the port of stored webhook URLs is opened at the start, and queued notifications are delivered', async (t) => {
  const first = await setUp(t);
  await first.urls.start();
  assert.deepEqual(first.listened, [], 'no webhook URL needs the port');
  const { reach, notify, address, urls, posted, clock, listened } = await registered(t, ['webhooks']);
  reach.program = false;
  notify(address);
  await clock.run(0);
  reach.program = true;
  await urls.start();
  assert.deepEqual(listened, [0]);
  await clock.run(300_000);
  await posted(1);
});

test('a notification has limits for its headers and its body', () => {
  const valid: NewNotification = { webhook: '0a'.repeat(8), id: '0b'.repeat(16), headers: ['A', 'b'], body: BODY };
  const decoded = (change: Partial<NewNotification>) => decodeNotification(encodeNotification({ ...valid, ...change }));
  assert.deepEqual({ ...decoded({}), body: BODY }, valid);
  const many = (count: number) => Array.from({ length: count }, () => ['A', 'b']).flat();
  assert.ok(decoded({ headers: many(MAX_NOTIFICATION_HEADERS) }));
  assert.equal(decoded({ headers: many(MAX_NOTIFICATION_HEADERS + 1) }), null);
  assert.equal(decoded({ headers: ['A'] }), null);
  assert.ok(decoded({ headers: ['A', 'x'.repeat(MAX_NOTIFICATION_HEADER_CHARS - 1)] }));
  assert.equal(decoded({ headers: ['A', 'x'.repeat(MAX_NOTIFICATION_HEADER_CHARS)] }), null);
  for (const headers of [
    ['a b', 'c'],
    ['A', 'b\r\nc'],
    ['Host', 'x'],
    ['Svc-Caller-Aid', 'x'],
    ['x_forwarded_for', '1'],
  ])
    assert.equal(decoded({ headers }), null, headers.join());
  assert.ok(decoded({ body: new Uint8Array(MAX_NOTIFICATION_BYTES) }));
  assert.equal(decoded({ body: new Uint8Array(MAX_NOTIFICATION_BYTES + 1) }), null);
  assert.equal(decoded({ webhook: '0a'.repeat(7) }), null);
  assert.equal(decoded({ webhook: 'G'.repeat(16) }), null);
  assert.equal(decoded({ id: '0b' }), null);
  assert.equal(decodeNotification(Buffer.from('nonsense')), null);
});
