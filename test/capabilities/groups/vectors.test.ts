/** Checks the test vectors of groups, test/vectors/group.json, which other implementations can use. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  decodeEntry,
  type Entry,
  groupIdOf,
  joinKey,
  proveSecret,
  provesSecret,
  verifyEntry,
} from '../../../src/capabilities/groups/entry.ts';
import { Replica } from '../../../src/capabilities/groups/replica.ts';
import { groupLinkText, parseGroupLink } from '../../../src/capabilities/groups/views.ts';
import { toHex } from '../../../src/foundation/bytes.ts';
import { parseAid } from '../../../src/foundation/identity/aid.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { verifySignature } from '../../../src/foundation/identity/keys.ts';
import { GroupEntryStore } from '../../../src/foundation/store/group-entries.ts';
import { GroupStore } from '../../../src/foundation/store/groups.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { groupVectors } from '../../../tools/vectors/group.ts';
import { GroupWorld } from '../../support/group-world.ts';
import { newIdentity } from '../../support/identities.ts';
import { hex, readVectors } from '../../support/vectors.ts';

interface EntryVector {
  readonly name: string;
  readonly verdict: 'admitted' | 'set aside' | 'refused';
  readonly entry_id: string;
  readonly author: string;
  readonly parents: readonly string[];
  readonly depth: number;
  readonly at_ms: number;
  readonly kind: string;
  readonly body_hex?: string;
  readonly ref?: string;
  readonly reply_to?: string;
  readonly to?: readonly string[];
  readonly proof_hex?: string;
  readonly signing_input_hex: string;
  readonly signature_hex: string;
  readonly entry_hex: string;
}
interface GroupVectors {
  readonly now: number;
  readonly creator: string;
  readonly nonce_hex: string;
  readonly group_id: string;
  readonly join: {
    readonly secret_hex: string;
    readonly key_seed_hex: string;
    readonly public_key_hex: string;
    readonly joiner: string;
    readonly proof_hex: string;
    readonly link: string;
  };
  readonly invitation: { readonly title: string; readonly body_hex: string };
  readonly entries: readonly EntryVector[];
  readonly members: readonly { readonly aid: string; readonly role: string }[];
  readonly title: string;
  readonly malformed: readonly { readonly why: string; readonly entry_hex: string }[];
}

const vectors = readVectors('group') as GroupVectors;
const CREATOR = parseAid(vectors.creator);

test('the file equals the output of the tool', () => {
  assert.deepEqual(JSON.parse(JSON.stringify(groupVectors())), vectors);
});

test('IDs, the join secret and the link', () => {
  assert.equal(groupIdOf(CREATOR, hex(vectors.nonce_hex)), vectors.group_id);
  const { secret_hex, key_seed_hex, public_key_hex, joiner, proof_hex, link } = vectors.join;
  const secret = hex(secret_hex);
  assert.equal(toHex(joinKey(secret).seed), key_seed_hex);
  assert.equal(toHex(joinKey(secret).publicKey), public_key_hex);
  assert.equal(toHex(proveSecret(secret, vectors.group_id, parseAid(joiner))), proof_hex);
  assert.ok(provesSecret(hex(public_key_hex), vectors.group_id, parseAid(joiner), hex(proof_hex)));
  assert.ok(!provesSecret(hex(public_key_hex), vectors.group_id, CREATOR, hex(proof_hex)));
  const named = { creator: CREATOR, groupId: vectors.group_id, secret };
  assert.equal(groupLinkText(named), link);
  assert.deepEqual(parseGroupLink(link), named);
});

test('an invitation is read from the body of a note', async () => {
  const world = new GroupWorld();
  const node = await world.node();
  const inviter = newIdentity().aid;
  assert.ok(world.deliver(node.aid, { sender: inviter, body: hex(vectors.invitation.body_hex) }));
  const { title, creator, secret } = node.table.inviteIn(node.aid, vectors.group_id) ?? assert.fail();
  assert.deepEqual([title, creator], [vectors.invitation.title, CREATOR]);
  assert.equal(toHex(secret ?? new Uint8Array()), vectors.join.secret_hex);
  await world.stop();
});

for (const vector of vectors.entries)
  test(`the bytes of an entry: ${vector.name}`, async () => {
    const entry = decodeEntry(hex(vector.entry_hex));
    await verifyEntry(entry, new DelegationVerifier());
    assert.equal(entry.id, vector.entry_id);
    assert.equal(entry.groupId, vectors.group_id);
    const { author, parents, depth, at, kind, ref, replyTo, to } = entry;
    assert.deepEqual(
      [author, parents, depth, at, kind, ref, replyTo, to],
      [vector.author, vector.parents, vector.depth, vector.at_ms, vector.kind, vector.ref, vector.reply_to, vector.to],
    );
    assert.equal(entry.body === undefined ? undefined : toHex(entry.body), vector.body_hex);
    assert.equal(entry.proof === undefined ? undefined : toHex(entry.proof), vector.proof_hex);
    assert.equal(toHex(entry.signature), vector.signature_hex);
    const { operationalKey } = entry.delegation;
    assert.ok(verifySignature(operationalKey, hex(vector.signing_input_hex), entry.signature));
  });

for (const { why, entry_hex } of vectors.malformed)
  test(`rejected at any position: ${why}`, async () => {
    await assert.rejects(async () => verifyEntry(decodeEntry(hex(entry_hex)), new DelegationVerifier()), {
      code: /^bad_(record|delegation)$/,
    });
  });

/** A replica of an agent that only reads. It receives the entries in this order. */
function replay(entries: readonly Entry[]) {
  const db = Store.open(':memory:', MIGRATIONS);
  const [groups, rows] = [new GroupStore(db), new GroupEntryStore(db)];
  const rid = groups.add({
    aid: newIdentity().aid,
    groupId: vectors.group_id,
    creator: CREATOR,
    title: '',
    state: 'joining',
    secret: null,
    hints: [],
    epoch: new Uint8Array(16),
    lastAt: 0,
  });
  const group = (): NonNullable<ReturnType<GroupStore['byRid']>> => groups.byRid(rid) ?? assert.fail();
  const replica = new Replica(group(), { groups, entries: rows });
  const later = (vectors.now + 3600) * 1000;
  for (const entry of entries) replica.admit([entry], later, () => {});
  const verdict = ({ id }: Entry): string => {
    if (!replica.has(id)) return 'refused';
    const row = db.one('SELECT void FROM group_entries WHERE lid = ? AND entry_id = ?', rid, hex(id));
    return row?.['void'] === 1 ? 'set aside' : 'admitted';
  };
  return { verdict, members: replica.members(), title: group().title };
}

for (const [order, arrange] of Object.entries({
  'parents first': (entries: readonly Entry[]) => entries,
  'children first': (entries: readonly Entry[]) => entries.toReversed(),
}))
  test(`membership and admitted entries, in the order ${order}`, () => {
    const entries = vectors.entries.map(({ entry_hex }) => decodeEntry(hex(entry_hex)));
    const { verdict, members, title } = replay(arrange(entries));
    assert.deepEqual(
      entries.map((entry, i) => [vectors.entries[i]?.name, verdict(entry)]),
      vectors.entries.map((vector) => [vector.name, vector.verdict]),
    );
    const sorted = (all: readonly { aid: string; role: string }[]) =>
      all.map(({ aid, role }) => `${aid} ${role}`).sort();
    assert.deepEqual(sorted(members), sorted(vectors.members));
    assert.equal(title, vectors.title);
  });
