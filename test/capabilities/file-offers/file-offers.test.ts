/** Offers between two nodes. The test delivers the notes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { OfferReceiver, UPLOAD_START_MS } from '../../../src/capabilities/file-offers/file-offers.ts';
import type { OfferSource } from '../../../src/capabilities/file-offers/types.ts';
import { decodeEndNotice, encodeEndNotice } from '../../../src/capabilities/file-offers/wire.ts';
import {
  FILE_OFFER_LIFE_MS,
  MAX_OPEN_OFFERS,
  MAX_OPEN_OFFERS_MADE,
  MAX_OPEN_OFFERS_OF_STRANGERS,
  MAX_OPEN_OFFERS_PER_SENDER,
  MAX_SETTLED_OFFERS,
} from '../../../src/foundation/domain/file-offers.ts';
import { NOTE_TYPE } from '../../../src/foundation/domain/notes.ts';
import { REPEAT_MS } from '../../../src/foundation/domain/time.ts';
import { type ErrorCode, SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { PrefixHashes } from '../../../src/foundation/prefix-hashes.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { newIdentity } from '../../support/identities.ts';
import { OBJECT, OfferNode, offerNodes } from '../../support/offer-nodes.ts';

const OTHER = 'b2'.repeat(32);

function fails(code: ErrorCode) {
  return (error: unknown): boolean => error instanceof SvcError && error.code === code;
}

test('an offer is made and accepted, and both sides are notified', async (t) => {
  const [near, far] = offerNodes();
  const request = {
    recipient: far.aid,
    source: { objectId: OBJECT },
    name: '../.plan.pdf',
    message: 'hi',
    temporary: true,
  };
  const { offer, delivered } = await near.offer(near.aid, request);
  assert.deepEqual([offer.state, offer.direction, offer.name, delivered], ['open', 'out', 'plan.pdf', true]);
  near.deliver(far);
  assert.deepEqual(far.events, ['file.offered']);
  const [got] = far.offers.list(far.aid, 'in', true);
  assert.deepEqual(
    [got?.id, got?.peer, got?.name, got?.message, got?.size, got?.sentBytes],
    [offer.id, near.aid, 'plan.pdf', 'hi', 3, null],
  );
  near.offered.reading(
    { purpose: 'object', called: near.aid, caller: far.aid, accessToken: undefined, nodeKey: null, source: null },
    offer.id,
  )(2);
  assert.equal(near.offers.get(near.aid, offer.id).sentBytes, 2);
  await far.offers.start();
  await near.offers.start();
  t.after(() => Promise.all([far.offers.stop(), near.offers.stop()]));
  assert.equal(far.offers.taken(far.aid, offer.id).state, 'taken');
  await far.clock.run(0);
  far.deliver(near);
  await near.clock.run(0);
  assert.equal(near.offers.get(near.aid, offer.id).state, 'taken');
  assert.equal(near.offers.get(near.aid, offer.id).sentBytes, 3);
  assert.deepEqual(near.events, ['file.answered']);
  // The temporary object was deleted, its readers were checked again, and free space was reported.
  assert.equal(near.objects.has(OBJECT), false);
  assert.deepEqual(near.rechecked, [near.aid]);
  assert.equal(far.rooms, 1);
  assert.throws(() => far.offers.decline(far.aid, offer.id), fails('wrong_state'));
  assert.throws(() => near.offers.withdraw(near.aid, offer.id), fails('wrong_state'));
});

test('an open offer lets only its recipient read only its object', async () => {
  const [near, far] = offerNodes();
  const { offer } = await near.offer(near.aid, { recipient: far.aid, source: { objectId: OBJECT }, temporary: false });
  assert.ok(near.mayRead(far.aid, offer.id));
  assert.ok(near.mayRead(far.aid, null));
  assert.equal(near.mayRead(far.aid, OTHER), false);
  assert.equal(near.mayRead(newIdentity().aid, offer.id), false);
  assert.equal(near.mayRead(newIdentity().aid, null), false);
  for (const purpose of ['http', 'tcp', 'tcp-probe', 'chat', 'group', 'note', 'admin'] as const)
    assert.equal(near.mayRead(far.aid, offer.id, purpose), false, purpose);
  near.blocked.add(far.aid);
  assert.equal(near.mayRead(far.aid, offer.id), false);
  near.blocked.clear();
  // A received offer grants nothing in the other direction.
  near.deliver(far);
  assert.equal(far.mayRead(near.aid, offer.id), false);
  near.offers.withdraw(near.aid, offer.id);
  assert.equal(near.mayRead(far.aid, offer.id), false);
  assert.equal(near.mayRead(far.aid, null), false);
  await near.offer(near.aid, { recipient: far.aid, source: { objectId: OBJECT }, temporary: false });
  near.clock.advance(FILE_OFFER_LIFE_MS);
  assert.equal(near.mayRead(far.aid, offer.id), false);
});

test('only the sender can withdraw, only the recipient can accept, and other agents are ignored', async () => {
  const [near, far] = offerNodes();
  const { offer } = await near.offer(near.aid, { recipient: far.aid, source: { objectId: OBJECT }, temporary: true });
  near.deliver(far);
  const tell = (to: OfferNode, sender: Aid, end: 'taken' | 'declined' | 'withdrawn') =>
    to.take(sender, NOTE_TYPE.fileNews, encodeEndNotice({ id: offer.id, end }));
  tell(near, newIdentity().aid, 'taken');
  tell(near, far.aid, 'withdrawn');
  tell(far, near.aid, 'taken');
  tell(far, newIdentity().aid, 'withdrawn');
  assert.equal(near.offers.get(near.aid, offer.id).state, 'open');
  assert.equal(far.offers.get(far.aid, offer.id).state, 'open');
  assert.throws(() => near.offers.taken(near.aid, offer.id), fails('wrong_state'));
  assert.throws(() => far.offers.withdraw(far.aid, offer.id), fails('wrong_state'));
  tell(far, near.aid, 'withdrawn');
  assert.equal(far.offers.get(far.aid, offer.id).state, 'withdrawn');
});

test('an offer that arrives after its withdrawal is not open, and not listed', async () => {
  const [near, far] = offerNodes();
  const { offer } = await near.offer(near.aid, { recipient: far.aid, source: { objectId: OBJECT }, temporary: true });
  const tell = (sender: Aid) =>
    far.take(sender, NOTE_TYPE.fileNews, encodeEndNotice({ id: offer.id, end: 'withdrawn' }));
  far.blocked.add(near.aid);
  assert.equal(tell(near.aid), 'dropped');
  far.blocked.clear();
  assert.equal(tell(near.aid), 'kept');
  near.deliverAgain(far);
  assert.deepEqual(far.offers.list(far.aid, undefined, false), []);
  assert.throws(() => far.offers.taken(far.aid, offer.id), fails('wrong_state'));
  assert.deepEqual(far.events, []);
});

test('an ID that another agent has already used for an offer changes nothing', async () => {
  const world = new OfferNode();
  const [one, two] = [newIdentity().aid, newIdentity().aid];
  assert.equal(world.strange(one, 1), 'kept');
  assert.equal(world.strange(two, 1), 'dropped');
  assert.deepEqual(
    world.offers.list(world.aid, 'in', true).map(({ peer }) => peer),
    [one],
  );
  assert.equal(world.events.length, 1);
});

test('invalid offers and offers of blocked agents are dropped', () => {
  const world = new OfferNode();
  const sender = newIdentity().aid;
  assert.equal(world.take(sender, NOTE_TYPE.fileOffer, new Uint8Array(10)), 'dropped');
  assert.equal(world.take(sender, NOTE_TYPE.fileNews, new Uint8Array(10)), 'dropped');
  world.blocked.add(sender);
  assert.equal(world.strange(sender, 1), 'dropped');
  assert.deepEqual(world.offers.list(world.aid, undefined, false), []);
  assert.deepEqual(world.events, []);
});

test('an offer and its withdrawal by a stranger are events caused by strangers, offers of a known agent are not', () => {
  const world = new OfferNode();
  const [stranger, friend] = [newIdentity().aid, newIdentity().aid];
  world.known.add(friend);
  for (const [number, sender] of [stranger, friend].entries()) {
    assert.equal(world.strange(sender, number), 'kept');
    const id = number.toString(16).padStart(16, 'f');
    assert.equal(world.take(sender, NOTE_TYPE.fileNews, encodeEndNotice({ id, end: 'withdrawn' })), 'kept');
    assert.equal(world.take(sender, NOTE_TYPE.fileNews, encodeEndNotice({ id, end: 'withdrawn' })), 'dropped');
  }
  assert.deepEqual(world.strangeEvents, ['file.offered', 'file.answered']);
  assert.equal(world.events.length, 4);
});

test('a flood of offers is limited, and part of the quota is reserved for known agents', () => {
  const world = new OfferNode();
  const flood = newIdentity().aid;
  for (let i = 0; i < MAX_OPEN_OFFERS_PER_SENDER; i++) assert.equal(world.strange(flood, i), 'kept');
  assert.equal(world.strange(flood, 999), 'full');
  let strangers = MAX_OPEN_OFFERS_PER_SENDER;
  for (; strangers < MAX_OPEN_OFFERS_OF_STRANGERS; strangers++)
    assert.equal(world.strange(newIdentity().aid, 1000 + strangers), 'kept');
  assert.equal(world.strange(newIdentity().aid, 5000), 'full');
  const friends = Array.from({ length: 10 }, () => newIdentity().aid);
  for (const friend of friends) world.known.add(friend);
  let kept = 0;
  for (const [i, friend] of friends.entries())
    for (let n = 0; n < MAX_OPEN_OFFERS_PER_SENDER; n++)
      if (world.strange(friend, 10_000 + 100 * i + n) === 'kept') kept++;
  assert.equal(kept, MAX_OPEN_OFFERS - MAX_OPEN_OFFERS_OF_STRANGERS);
});

test('ended offers are stored up to a limit', () => {
  const world = new OfferNode();
  const friend = newIdentity().aid;
  for (let i = 0; i < MAX_SETTLED_OFFERS + 20; i++) {
    world.strange(friend, i);
    world.offers.decline(world.aid, i.toString(16).padStart(16, 'f'));
  }
  assert.equal(world.offers.list(world.aid, 'in', false).length, MAX_SETTLED_OFFERS);
});

test('offers of strangers, and many offers of one friend, do not evict the history with another friend', () => {
  const world = new OfferNode();
  const [friend, busy] = [newIdentity().aid, newIdentity().aid];
  for (const known of [friend, busy]) world.known.add(known);
  let number = 0;
  const over = (sender: Aid, count: number): void => {
    for (let i = 0; i < count; i++, number++) {
      world.strange(sender, number);
      const id = number.toString(16).padStart(16, 'f');
      world.take(sender, NOTE_TYPE.fileNews, encodeEndNotice({ id, end: 'withdrawn' }));
    }
  };
  const kept = (peer: Aid): number =>
    world.offers.list(world.aid, 'in', false).filter((one) => one.peer === peer).length;
  over(friend, 10);
  for (let stranger = 0; stranger < 2 * MAX_SETTLED_OFFERS; stranger++) over(newIdentity().aid, 1);
  assert.equal(kept(friend), 10);
  over(busy, 2 * MAX_SETTLED_OFFERS);
  assert.deepEqual([kept(friend), kept(busy)], [10, MAX_SETTLED_OFFERS - 10]);
});

test('invalid offers are rejected, and an offer whose note cannot be sent does not stay open', async () => {
  const [near, far] = offerNodes();
  const offer = (change: object = {}) =>
    near.offer(near.aid, { recipient: far.aid, source: { objectId: OBJECT }, temporary: true, ...change });
  await assert.rejects(offer({ recipient: near.aid }), fails('self'));
  await assert.rejects(offer({ source: { objectId: OTHER } }), fails('not_found'));
  await assert.rejects(offer({ message: '\ud800' }), fails('invalid_request'));
  await assert.rejects(
    near.offer(far.aid, { recipient: near.aid, source: { objectId: OBJECT }, temporary: false }),
    fails('not_found'),
  );
  near.blocked.add(far.aid);
  await assert.rejects(offer(), fails('access_denied'));
  near.blocked.clear();
  near.failure = new SvcError('resolve_failed');
  await assert.rejects(offer(), fails('resolve_failed'));
  assert.equal(near.mayRead(far.aid, null), false);
  assert.deepEqual(near.offers.list(near.aid, 'out', true), []);
  near.failure = null;
  for (let i = 0; i < MAX_OPEN_OFFERS_MADE; i++) await offer();
  await assert.rejects(offer(), fails('quota_exceeded'));
});

test('an object remains while an offer of it is open, or if it was stored separately', async (t) => {
  const [near, far] = offerNodes();
  await near.offers.start();
  t.after(() => near.offers.stop());
  const offer = async (temporary: boolean): Promise<string> =>
    (await near.offer(near.aid, { recipient: far.aid, source: { objectId: OBJECT }, temporary })).offer.id;
  const [first, second] = [await offer(true), await offer(false)];
  near.offers.withdraw(near.aid, first);
  await near.clock.run(0);
  assert.ok(near.objects.has(OBJECT));
  near.offers.withdraw(near.aid, second);
  await near.clock.run(0);
  assert.equal(near.objects.has(OBJECT), false);
  near.objects.set(OBJECT, { size: 3, name: 'plan.pdf' });
  const third = await offer(true);
  near.store.keepObject(near.aid, OBJECT);
  near.offers.withdraw(near.aid, third);
  await near.clock.run(0);
  assert.ok(near.objects.has(OBJECT));
});

test('offers expire, and the notification is repeated until the note is stored', async (t) => {
  const [near, far] = offerNodes();
  const { offer } = await near.offer(near.aid, { recipient: far.aid, source: { objectId: OBJECT }, temporary: true });
  near.deliver(far);
  far.failure = new SvcError('not_acknowledged');
  await far.offers.start();
  await near.offers.start();
  t.after(() => Promise.all([far.offers.stop(), near.offers.stop()]));
  far.offers.decline(far.aid, offer.id);
  await far.clock.run(0);
  assert.equal(far.sent.length, 0);
  far.failure = null;
  for (let i = 0; i < 10 && far.sent.length === 0; i++) {
    await far.clock.run(15_000);
  }
  const [news] = far.sent.splice(0);
  assert.deepEqual(decodeEndNotice(news?.body ?? new Uint8Array()), { id: offer.id, end: 'declined' });
  await far.clock.run(3600_000);
  assert.deepEqual(far.sent, []);
  near.clock.jump(FILE_OFFER_LIFE_MS);
  await near.clock.run(15_000);
  assert.equal(near.offers.get(near.aid, offer.id).state, 'expired');
  assert.equal(near.objects.has(OBJECT), false);
});

test('a repeated request to offer a file joins the first one', async () => {
  const [near, far] = offerNodes();
  const request = { recipient: far.aid, source: { objectId: OBJECT }, message: 'hi', temporary: false };
  const [first, second, other] = await Promise.all([
    near.offer(near.aid, request),
    near.offer(near.aid, { ...request }),
    near.offer(near.aid, { ...request, message: 'ho' }),
  ]);
  assert.equal(first.offer.id, second.offer.id);
  assert.notEqual(first.offer.id, other.offer.id);
  assert.equal(near.sent.length, 2);
  // After its result, an equal request is another offer.
  assert.notEqual((await near.offer(near.aid, request)).offer.id, first.offer.id);
});

test('a request whose result no client received repeats the same offer, for an hour', async () => {
  const [near, far] = offerNodes();
  const request = { recipient: far.aid, source: { objectId: OBJECT }, message: 'hi', temporary: false };
  const first = await near.offers.offer(near.aid, request);
  first.settle(false);
  near.deliver(far);
  const second = await near.offers.offer(near.aid, request);
  second.settle(false);
  assert.equal(second.offer.id, first.offer.id);
  near.deliverAgain(far);
  assert.equal(far.offers.list(far.aid, 'in', true).length, 1);
  assert.deepEqual(far.events, ['file.offered']);
  // Also if the file was received before the client asked again.
  far.offers.taken(far.aid, first.offer.id);
  near.take(far.aid, NOTE_TYPE.fileNews, encodeEndNotice({ id: first.offer.id, end: 'taken' }));
  const third = await near.offers.offer(near.aid, request);
  third.settle(true);
  assert.deepEqual([third.offer.id, third.offer.state, third.delivered], [first.offer.id, 'taken', true]);
  assert.deepEqual(near.sent, []);
  const fourth = await near.offers.offer(near.aid, request);
  fourth.settle(false);
  assert.notEqual(fourth.offer.id, first.offer.id);
  near.clock.advance(REPEAT_MS + 1);
  assert.notEqual((await near.offers.offer(near.aid, request)).offer.id, fourth.offer.id);
});

test('an object that is stored again for a repeated offer is deleted with that offer', async (t) => {
  const [near, far] = offerNodes();
  await near.offers.start();
  t.after(() => near.offers.stop());
  const request = { recipient: far.aid, source: { objectId: OBJECT }, temporary: true };
  const { offer } = await near.offers.offer(near.aid, request);
  near.take(far.aid, NOTE_TYPE.fileNews, encodeEndNotice({ id: offer.id, end: 'taken' }));
  await near.clock.run(0);
  assert.equal(near.objects.has(OBJECT), false);
  near.objects.set(OBJECT, { size: 3, name: 'plan.pdf' });
  near.store.keepObject(near.aid, OBJECT);
  assert.equal((await near.offers.offer(near.aid, request)).offer.id, offer.id);
  await near.clock.run(0);
  assert.equal(near.objects.has(OBJECT), false);
});

test('a repeated offer that fails is withdrawn, and its recipient is notified', async (t) => {
  const [near, far] = offerNodes();
  await near.offers.start();
  t.after(() => near.offers.stop());
  const request = { recipient: far.aid, source: { objectId: OBJECT }, temporary: false };
  (await near.offers.offer(near.aid, request)).settle(false);
  near.deliver(far);
  near.failure = new SvcError('resolve_failed');
  await assert.rejects(near.offers.offer(near.aid, request), fails('resolve_failed'));
  near.failure = null;
  await near.clock.run(15_000);
  near.deliver(far);
  assert.equal(far.offers.list(far.aid, 'in', false)[0]?.state, 'withdrawn');
});

test('a recipient that may have an offer whose sender got an error is notified of the withdrawal', async (t) => {
  const [near, far] = offerNodes();
  await near.offers.start();
  t.after(() => near.offers.stop());
  const offer = () => near.offer(near.aid, { recipient: far.aid, source: { objectId: OBJECT }, temporary: false });
  for (const code of ['not_acknowledged', 'timeout'] as const) {
    near.failure = new SvcError(code);
    await assert.rejects(offer(), fails(code));
    near.failure = null;
    await near.clock.run(15_000);
    const [news] = near.sent.splice(0);
    assert.equal(decodeEndNotice(news?.body ?? new Uint8Array())?.end, 'withdrawn', code);
  }
  near.failure = new SvcError('resolve_failed');
  await assert.rejects(offer(), fails('resolve_failed'));
  near.failure = null;
  await near.clock.run(15_000);
  assert.deepEqual(near.sent, []);
});

test('deleting an agent deletes its offers', () => {
  const world = new OfferNode();
  world.strange(newIdentity().aid, 1);
  new AgentStore(world.db).delete(world.aid);
  assert.deepEqual(world.store.list(world.aid, undefined, false), []);
});

/** Receives the offers of a node. Each source call takes the next prepared result. */
function receiverOf(node: OfferNode, hash = OBJECT) {
  const asked: string[] = [];
  const gets: (() => Promise<{ path: string; objectId?: string }>)[] = [];
  const responses: { status: number; size: number }[] = [];
  const destroyed: number[] = [];
  const headers: object[] = [];
  const receiver = new OfferReceiver(node.offers, {
    get: async ({ dest }) => {
      asked.push(dest);
      return { objectId: OBJECT, ...((await gets.shift()?.()) ?? { path: `/root/${dest}` }) };
    },
    progress: (aid) => (aid === node.aid ? 2 : null),
    read: async (request) => {
      headers.push({ ...request.headers, holder: request.holder, id: request.id });
      const response = responses.shift() ?? { status: 200, size: 3 };
      return { ...response, body: { destroy: () => destroyed.push(response.status) } };
    },
    hashes: ({ size }) =>
      new PrefixHashes(
        async () =>
          (async function* () {
            yield Buffer.from(hash, 'hex');
          })(),
        size,
      ),
  });
  return { receiver, asked, gets, responses, destroyed, headers };
}

async function receivedOffer() {
  const [near, far] = offerNodes();
  const { offer } = await near.offer(near.aid, { recipient: far.aid, source: { objectId: OBJECT }, temporary: false });
  near.deliver(far);
  return { near, far, id: offer.id, ...receiverOf(far) };
}

test('an accepted file gets a free name, and the offer ends when the file is complete', async () => {
  const { far, id, receiver, asked, gets } = await receivedOffer();
  const taken = () => Promise.reject(new SvcError('wrong_state'));
  gets.push(taken, taken, () => {
    assert.equal(far.offers.get(far.aid, id).state, 'open');
    return Promise.resolve({ path: '/root/x' });
  });
  assert.equal(await receiver.accept(far.aid, id, new AbortController().signal), '/root/x');
  assert.deepEqual(asked, ['received/plan.pdf', 'received/plan (1).pdf', 'received/plan (2).pdf']);
  assert.equal(far.offers.get(far.aid, id).state, 'taken');
});

test('a repeated request waits for the first one, and no second copy is downloaded', async () => {
  const { far, id, receiver, asked, gets } = await receivedOffer();
  const accept = (signal = new AbortController().signal) => receiver.accept(far.aid, id, signal);
  const first = Promise.withResolvers<{ path: string }>();
  gets.push(() => first.promise);
  const gone = new AbortController();
  const canceled = accept(gone.signal);
  while (asked.length === 0) await turn();
  const again = accept();
  const third = assert.rejects(accept(), fails('wrong_state'));
  // The first client disconnects, so its download fails.
  gone.abort();
  first.reject(new SvcError('cancelled'));
  await assert.rejects(canceled, fails('cancelled'));
  assert.equal(await again, '/root/received/plan.pdf');
  await third;
  assert.deepEqual(asked, ['received/plan.pdf', 'received/plan.pdf']);
});

test('an offer stays open if its file cannot be downloaded, and names are tried up to a limit', async () => {
  const { far, id, receiver, asked, gets } = await receivedOffer();
  const accept = () => receiver.accept(far.aid, id, new AbortController().signal);
  gets.push(() => Promise.reject(new SvcError('connect_failed')));
  await assert.rejects(accept(), fails('connect_failed'));
  assert.equal(asked.length, 1);
  gets.push(...Array.from({ length: 101 }, () => () => Promise.reject(new SvcError('wrong_state'))));
  await assert.rejects(accept(), fails('wrong_state'));
  assert.equal(asked.length, 101);
  assert.equal(far.offers.get(far.aid, id).state, 'open');
});

test('progress is reported only for open offers to a local agent', async () => {
  const { near, far, id, receiver } = await receivedOffer();
  const offer = far.offers.get(far.aid, id);
  assert.equal(receiver.received(offer), 2);
  assert.equal(receiver.received(near.offers.get(near.aid, id)), null);
  assert.equal(receiver.received({ ...offer, state: 'taken' }), null);
});

test('the bytes of an offer are read from its sender, and a file of another size is rejected', async () => {
  const { near, far, id, receiver, responses, destroyed, headers } = await receivedOffer();
  const read = (range?: string) => receiver.read(far.aid, id, range, new AbortController().signal);
  assert.equal((await read()).size, 3);
  responses.push({ status: 206, size: 3 });
  await read('bytes=1-');
  assert.deepEqual(headers, [
    { holder: near.aid, id },
    { range: 'bytes=1-', holder: near.aid, id },
  ]);
  assert.deepEqual(destroyed, []);
  responses.push({ status: 200, size: 4 }, { status: 304, size: 3 });
  await assert.rejects(read(), fails('protocol_error'));
  await assert.rejects(read(), fails('protocol_error'));
  assert.deepEqual(destroyed, [200, 304]);
  far.offers.decline(far.aid, id);
  await assert.rejects(read(), fails('wrong_state'));
});

test('only a recipient can accept, and not after the end of the offer', async () => {
  const { near, far, id } = await receivedOffer();
  assert.throws(() => near.offers.acceptable(near.aid, id), fails('wrong_state'));
  assert.equal(far.offers.acceptable(far.aid, id).id, id);
  far.clock.advance(FILE_OFFER_LIFE_MS);
  assert.throws(() => far.offers.acceptable(far.aid, id), fails('wrong_state'));
});

test('the end of an offer is reported although its retry was set by a clock that was ahead', async (t) => {
  const { far, id } = await receivedOffer();
  far.failure = new SvcError('not_acknowledged');
  await far.offers.start();
  t.after(() => far.offers.stop());
  far.clock.jump(24 * 3600_000);
  far.offers.decline(far.aid, id);
  await far.clock.run(0);
  far.clock.jump(-24 * 3600_000);
  far.failure = null;
  await far.clock.run(60_000);
  assert.equal(far.sent.length, 1);
});

test('no notification is sent for an offer that has expired meanwhile', async (t) => {
  const { far, id } = await receivedOffer();
  far.failure = new SvcError('not_acknowledged');
  await far.offers.start();
  t.after(() => far.offers.stop());
  far.offers.decline(far.aid, id);
  await far.clock.run(0);
  far.failure = null;
  far.clock.jump(FILE_OFFER_LIFE_MS);
  await far.clock.run(3600_000);
  assert.deepEqual(far.sent, []);
});

test('ends of more offers than one batch are all reported, and retries back off', async (t) => {
  const [near, far] = offerNodes();
  for (let i = 0; i < 20; i++)
    await near.offer(near.aid, { recipient: far.aid, source: { objectId: OBJECT }, temporary: false });
  near.deliver(far);
  for (const { id } of far.offers.list(far.aid, 'in', true)) far.offers.decline(far.aid, id);
  await far.offers.start();
  t.after(() => far.offers.stop());
  await far.clock.run(0);
  assert.equal(far.sent.length, 20);

  const [again] = near.offers.list(near.aid, 'out', true);
  assert.ok(again);
  near.failure = new SvcError('not_acknowledged');
  await near.offers.start();
  t.after(() => near.offers.stop());
  near.offers.withdraw(near.aid, again.id);
  await near.clock.run(0);
  near.failure = null;
  await near.clock.run(20_000);
  assert.equal(near.sent.length, 0, 'the retry waits for its delay');
  await near.clock.run(40_000);
  assert.equal(near.sent.length, 1);
});

test('a stop ends notes about offers before the store closes', async () => {
  const [near, far] = offerNodes();
  const { offer } = await near.offer(near.aid, { recipient: far.aid, source: { objectId: OBJECT }, temporary: false });
  near.offers.withdraw(near.aid, offer.id);
  near.hangs = true;
  await near.offers.start();
  await near.clock.run(1);
  const offering = near.offer(near.aid, { recipient: far.aid, source: { objectId: OBJECT }, temporary: false });
  const failed = assert.rejects(offering, fails('cancelled'));
  await near.offers.stop();
  assert.deepEqual(
    near.offers.list(near.aid, 'out', false).map(({ state }) => state),
    ['withdrawn', 'withdrawn'],
  );
  near.db.close();
  await failed;
});

/** An offer of a file that is not hashed yet. */
async function earlyOffer(source: OfferSource = { size: 3 }, temporary = true) {
  const [near, far] = offerNodes();
  near.files.set('plan.pdf', { size: 3, name: 'plan.pdf', objectId: null });
  await near.offers.start();
  const request = { recipient: far.aid, source, name: 'plan.pdf', temporary };
  const { id } = (await near.offer(near.aid, request)).offer;
  near.deliver(far);
  const hashed = (objectId: string, isNew = true): void => near.hashing.get(id)?.resolve({ objectId, isNew });
  return { near, far, id, hashed };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

test('a file is offered with its size, and its hash is stored when the client has sent it', async (t) => {
  const { near, far, id, hashed } = await earlyOffer();
  t.after(() => near.offers.stop());
  const [got] = far.offers.list(far.aid, 'in', true);
  assert.deepEqual([got?.size, got?.objectId, got?.hashedBytes], [3, null, null]);
  assert.deepEqual([near.offers.get(near.aid, id).objectId, near.offers.get(near.aid, id).hashedBytes], [null, 1]);
  const sending = near.offers.upload(near.aid, id, nothing());
  await assert.rejects(near.offers.upload(near.aid, id, nothing()), fails('wrong_state'));
  near.clock.advance(UPLOAD_START_MS);
  const reader = { purpose: 'object', called: near.aid, caller: far.aid, accessToken: undefined } as const;
  near.offered.reading({ ...reader, nodeKey: null, source: null }, id)(2);
  hashed(OBJECT);
  const offer = await sending;
  await near.clock.run(0);
  assert.equal(near.offers.get(near.aid, id).sentBytes, 2, 'the progress of the recipient is kept');
  assert.deepEqual([offer.state, offer.objectId, offer.hashedBytes, offer.temporary], ['open', OBJECT, null, true]);
  await assert.rejects(near.offers.upload(near.aid, id, nothing()), fails('wrong_state'));
  await assert.rejects(far.offers.upload(far.aid, id, nothing()), fails('wrong_state'));
});

test('a file below files_root is offered before it is hashed, or by its object if that is known', async (t) => {
  const { near, far, id, hashed } = await earlyOffer({ path: 'plan.pdf' });
  t.after(() => near.offers.stop());
  assert.equal(near.offers.get(near.aid, id).objectId, null);
  hashed(OBJECT);
  await turn();
  assert.equal(near.offers.get(near.aid, id).objectId, OBJECT);
  near.files.set('plan.pdf', { size: 3, name: 'plan.pdf', objectId: OBJECT });
  const request = { recipient: far.aid, source: { path: 'plan.pdf' }, temporary: false };
  assert.equal((await near.offer(near.aid, request)).offer.objectId, OBJECT);
});

test('an offer whose file changes, or is not sent, is withdrawn with this cause', async (t) => {
  const message = 'The file changed while it was read. Try again.';
  const changing = await earlyOffer({ path: 'plan.pdf' });
  t.after(() => changing.near.offers.stop());
  changing.near.hashing.get(changing.id)?.reject(new SvcError('wrong_state', { message }));
  await turn();
  const late = await earlyOffer();
  t.after(() => late.near.offers.stop());
  await late.near.clock.run(UPLOAD_START_MS);
  const causes = [message, 'The file was not sent completely. Send it again.'];
  for (const [i, { near, far, id }] of [changing, late].entries()) {
    assert.deepEqual(
      [near.offers.get(near.aid, id).state, near.offers.get(near.aid, id).problem],
      ['withdrawn', causes[i]],
    );
    await near.clock.run(15_000);
    near.deliver(far);
    assert.equal(far.offers.get(far.aid, id).state, 'withdrawn');
    assert.equal(near.mayRead(far.aid, id), false);
  }
});

test('the end of an offer stops hashing its file', async (t) => {
  const { near, far, id } = await earlyOffer();
  t.after(() => near.offers.stop());
  const sending = assert.rejects(near.offers.upload(near.aid, id, nothing()), { message: /The offer is declined\./ });
  near.take(far.aid, NOTE_TYPE.fileNews, encodeEndNotice({ id, end: 'declined' }));
  await sending;
  const { state, problem } = near.offers.get(near.aid, id);
  assert.deepEqual([state, problem], ['declined', null]);
});

test('after a restart or an interruption, the client can send the file again; otherwise the offer is withdrawn', async (t) => {
  const { near, id, hashed } = await earlyOffer();
  const interrupted = assert.rejects(near.offers.upload(near.aid, id, nothing()), fails('cancelled'));
  near.hashing.get(id)?.reject(new SvcError('cancelled'));
  await interrupted;
  const stopped = assert.rejects(near.offers.upload(near.aid, id, nothing()));
  await near.offers.stop();
  await stopped;
  assert.equal(near.offers.get(near.aid, id).state, 'open');

  const restarted = near.restarted();
  await restarted.start();
  t.after(() => restarted.stop());
  const sending = restarted.upload(near.aid, id, nothing());
  hashed(OBJECT);
  assert.equal((await sending).objectId, OBJECT);
});

test('an offer whose file was not hashed before a restart, and is not sent again, is withdrawn', async (t) => {
  const { near, id } = await earlyOffer({ path: 'plan.pdf' });
  await near.offers.stop();
  const restarted = near.restarted();
  await restarted.start();
  t.after(() => restarted.stop());
  await near.clock.run(UPLOAD_START_MS);
  const { state, problem } = restarted.get(near.aid, id);
  assert.deepEqual([state, problem], ['withdrawn', 'svcd stopped while it read the file. Send it again.']);
});

test('an object that existed before the offer of its file remains when the offer ends', async (t) => {
  for (const isNew of [true, false]) {
    const { near, id, hashed } = await earlyOffer();
    t.after(() => near.offers.stop());
    const sending = near.offers.upload(near.aid, id, nothing());
    hashed(OBJECT, isNew);
    await sending;
    near.offers.withdraw(near.aid, id);
    await near.clock.run(0);
    assert.equal(near.objects.has(OBJECT), !isNew);
  }
});

test('an equal request repeats an early offer whose result no client received', async () => {
  const [near, far] = offerNodes();
  const request = { recipient: far.aid, source: { size: 3 }, name: 'plan.pdf', temporary: true };
  const first = await near.offers.offer(near.aid, request);
  first.settle(false);
  const second = await near.offers.offer(near.aid, request);
  assert.equal(second.offer.id, first.offer.id);
  assert.notEqual((await near.offers.offer(near.aid, { ...request, source: { size: 4 } })).offer.id, first.offer.id);
  await assert.rejects(near.offers.offer(near.aid, { ...request, name: undefined }), fails('invalid_request'));
  await near.offers.stop();
});

test('the recipient learns the hash of a file once', async () => {
  const { far, id } = await earlyOffer();
  const hashes = receiverOf(far).receiver.hashes(far.aid, id, new AbortController().signal);
  assert.equal((await hashes.at(0)).toString('hex'), OBJECT);
  assert.equal(far.offers.get(far.aid, id).objectId, OBJECT);
  const others = receiverOf(far, OTHER).receiver.hashes(far.aid, id, new AbortController().signal);
  await assert.rejects(others.at(0), fails('protocol_error'));
});
