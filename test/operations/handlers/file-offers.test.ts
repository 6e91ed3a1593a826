import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OfferReceiver } from '../../../src/capabilities/file-offers/file-offers.ts';
import type { RemoteObject } from '../../../src/capabilities/objects/remote-objects.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { fileOfferOperations } from '../../../src/operations/file-offers.ts';
import { fileOfferHandlers } from '../../../src/operations/handlers/file-offers.ts';
import { OBJECT, type OfferNode, offerNodes } from '../../support/offer-nodes.ts';
import { operationRunner } from '../../support/run-operation.ts';

/** The operations of a node, whose files arrive when the test resolves them. */
function surfaceOf(node: OfferNode) {
  const asked: string[] = [];
  /** Results of the next transfers, by destination. */
  const brings: (() => Promise<{ path: string }>)[] = [];
  const progress = new Map<string, number>();
  const taker = new OfferReceiver<RemoteObject>(node.offers, {
    get: async ({ dest }) => {
      asked.push(dest);
      return { objectId: OBJECT, ...((await brings.shift()?.()) ?? { path: `/root/${dest}` }) };
    },
    progress: (_aid, id) => progress.get(id) ?? null,
    read: () => assert.fail('unexpected read'),
    hashes: () => assert.fail('unexpected read'),
  });
  const run = operationRunner(fileOfferOperations, fileOfferHandlers({ offers: node.offers, taker }));
  return { run, asked, brings, progress };
}

/** An offer of `near` that `far` has received. */
async function offered(more: object = {}) {
  const [near, far] = offerNodes();
  const [sender, recipient] = [surfaceOf(near), surfaceOf(far)];
  const body = { recipient: far.aid, object_id: OBJECT, name: 'plan.pdf', ...more };
  const made = await sender.run('fileOffer', { params: { aid: near.aid }, body });
  assert.ok(typeof made === 'object' && made !== null && 'id' in made);
  near.deliver(far);
  return { near, far, sender, recipient, params: { aid: far.aid, id: String(made.id) } };
}

test('an offer is shown to both sides, and received below files_root with its progress', async () => {
  const { near, far, sender, recipient, params } = await offered({ message: 'hi' });
  const { id } = params;
  const common = { id, object_id: OBJECT, name: 'plan.pdf', size: 3, message: 'hi', state: 'open' };
  const [mine] = near.offers.list(near.aid, 'out', true);
  assert.ok(mine !== undefined);
  const seen = async (of: typeof sender, aid: string) =>
    JSON.parse(JSON.stringify(await of.run('fileOfferList', { params: { aid } }))).offers[0];
  const out = await seen(sender, near.aid);
  const { at, expires_at } = out;
  assert.deepEqual(out, { ...common, direction: 'out', peer: far.aid, at, expires_at, sent_bytes: 0 });
  assert.deepEqual([Date.parse(out.at), Date.parse(out.expires_at)], [mine.at, mine.expiresAt]);
  const before = await recipient.run('fileOfferGet', { params });
  assert.equal(Reflect.get(Object(before), 'received_bytes'), undefined);

  const { promise, resolve } = Promise.withResolvers<{ path: string }>();
  // The first name is in use, so the file gets a number.
  recipient.brings.push(
    () => Promise.reject(new SvcError('wrong_state')),
    () => promise,
  );
  const accepting = recipient.run('fileOfferAccept', { params });
  recipient.progress.set(id, 2);
  const during = await recipient.run('fileOfferGet', { params });
  assert.deepEqual([Reflect.get(Object(during), 'received_bytes'), Reflect.get(Object(during), 'state')], [2, 'open']);
  resolve({ path: '/root/received/plan (1).pdf' });
  assert.deepEqual(await accepting, { path: '/root/received/plan (1).pdf' });
  assert.deepEqual(recipient.asked, ['received/plan.pdf', 'received/plan (1).pdf']);
  const after = Object(await recipient.run('fileOfferGet', { params }));
  assert.deepEqual([Reflect.get(after, 'state'), Reflect.get(after, 'received_bytes')], ['taken', undefined]);
  await assert.rejects(recipient.run('fileOfferAccept', { params }), { code: 'wrong_state' });
});

test('an offer is declined or withdrawn once, and only by its own agents', async () => {
  const first = await offered();
  const declined = await first.recipient.run('fileOfferDecline', { params: first.params });
  assert.equal(Reflect.get(Object(declined), 'state'), 'declined');
  await assert.rejects(first.recipient.run('fileOfferDecline', { params: first.params }), { code: 'wrong_state' });
  await assert.rejects(first.recipient.run('fileOfferTaken', { params: first.params }), { code: 'wrong_state' });
  const second = await offered();
  const own = { ...second.params, aid: second.near.aid };
  const withdrawn = await second.sender.run('fileOfferWithdraw', { params: own });
  assert.equal(Reflect.get(Object(withdrawn), 'state'), 'withdrawn');
  await assert.rejects(second.recipient.run('fileOfferGet', { params: own }), { code: 'not_found' });
});

test('offering, receiving and confirming a file need the token; listing and declining do not', async () => {
  const { near, far, sender, recipient, params } = await offered();
  const denied = {
    requireToken: () => {
      throw new SvcError('unauthorized');
    },
  };
  const body = { recipient: far.aid, object_id: OBJECT, name: 'again' };
  await assert.rejects(sender.run('fileOffer', { params: { aid: near.aid }, body }, denied), { code: 'unauthorized' });
  await assert.rejects(recipient.run('fileOfferAccept', { params }, denied), { code: 'unauthorized' });
  await assert.rejects(recipient.run('fileOfferTaken', { params }, denied), { code: 'unauthorized' });
  assert.deepEqual(recipient.asked, []);
  assert.equal(near.offers.list(near.aid, 'out', true).length, 1);
  await recipient.run('fileOfferGet', { params }, denied);
  await recipient.run('fileOfferDecline', { params }, denied);
});

test('an offer whose response did not arrive is repeated by the next equal request', async () => {
  const [near, far] = offerNodes();
  const { run } = surfaceOf(near);
  const request = { params: { aid: near.aid }, body: { recipient: far.aid, object_id: OBJECT, name: 'plan.pdf' } };
  const answered = (arrived: boolean) => ({ onAnswered: (settled: (arrived: boolean) => void) => settled(arrived) });
  const id = async (arrived: boolean) => Reflect.get(Object(await run('fileOffer', request, answered(arrived))), 'id');
  const first = await id(false);
  assert.equal(await id(true), first);
  assert.notEqual(await id(true), first);
});
