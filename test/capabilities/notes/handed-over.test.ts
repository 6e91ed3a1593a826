/** How a recipient checks the record of a note that arrives over a link. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import {
  decodeRecord,
  type RecordContent,
  type SignedRecord,
  signRecord,
} from '../../../src/foundation/records/record.ts';
import { withCode } from '../../support/link-world.ts';
import { MailWorld } from '../../support/mail-world.ts';

/** Bytes before the record in a request. */
const REQUEST_HEAD = 3;

/** Two agents without a network. The sender's notes are in records that were changed. */
async function tamperedWorld(change: (record: SignedRecord) => Partial<RecordContent>) {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  await world.during(a.notes.send(alice.aid, bob.aid, 1, new Uint8Array(1)));
  b.poll(bob.aid);
  a.records.unreachable = true;
  const open = a.links.open.bind(a.links);
  a.links.open = (local, remote, purpose, options) => {
    const bytes: NonNullable<typeof options>['first'] = {
      bytes: (place) => {
        const record = decodeRecord(options?.first?.bytes(place).subarray(REQUEST_HEAD) ?? new Uint8Array());
        // Not signed by the identity that its delegation names.
        const { encoded } = signRecord({ ...record, ...change(record) }, KeyPair.generate());
        return Buffer.concat([Uint8Array.of(1, encoded.length >> 8, encoded.length & 0xff), encoded]);
      },
    };
    return open(local, remote, purpose, { ...options, first: bytes });
  };
  const send = () => world.during(a.notes.send(alice.aid, bob.aid, 1, new Uint8Array(2)));
  return { world, b, bob, send };
}

test('the signer of the record does not matter: the letter inside proves its sender', async () => {
  const { b, bob, send } = await tamperedWorld(() => ({}));
  const { delivered, messageId } = await send();
  assert.ok(delivered);
  assert.deepEqual(b.waiting(bob.aid), [messageId]);
});

test('a record from the future, or one that has expired, is refused', async () => {
  const HOUR_S = 3600;
  for (const change of [
    ({ timestamp }: SignedRecord) => ({ timestamp: timestamp + HOUR_S }),
    ({ timestamp }: SignedRecord) => ({ timestamp: timestamp - HOUR_S, ttl: HOUR_S - 1 }),
  ]) {
    const { b, bob, send } = await tamperedWorld(change);
    await assert.rejects(send(), withCode('not_acknowledged'));
    assert.deepEqual(b.waiting(bob.aid), []);
  }
});
