import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Entry, signEntry } from '../../../src/capabilities/groups/entry.ts';
import { Replica } from '../../../src/capabilities/groups/replica.ts';
import { GroupParts } from '../../support/group-parts.ts';
import { localIdentity, newIdentity } from '../../support/identities.ts';

/** A group of one agent, and a function that writes entries with given parents. */
function setUp() {
  const parts = new GroupParts();
  const identity = newIdentity();
  const aid = parts.agent(identity);
  const { groupId } = parts.writer.create(aid, 'Plans');
  const replica = new Replica(parts.replicas.row(aid, groupId), parts);
  const entry = (body: string, parents: readonly string[] = [], depth?: number): Entry => {
    const content = replica.compose({ kind: 'msg', body: Buffer.from(body) }, parts.clock.now());
    const own = parents.length === 0 ? {} : { parents, depth: depth ?? content.depth };
    return signEntry({ ...content, ...own }, localIdentity(identity));
  };
  const offer = (...entries: readonly Entry[]): string[] =>
    replica.admit(entries, parts.clock.now(), () => {}).added.map(({ id }) => id);
  return { entry, offer };
}

test('256 entries wait for their parents, and the oldest one is dropped for another one', () => {
  const { entry, offer } = setUp();
  const orphans = (count: number): Entry[] =>
    Array.from({ length: count }, (_, n) => entry('orphan', [(n + 1).toString(16).padStart(64, '0')]));
  for (const [others, isKept] of [
    [255, true],
    [256, false],
  ] as const) {
    const parent = entry(`parent with ${others}`);
    const child = entry(`child with ${others}`, [parent.id], parent.depth + 1);
    assert.deepEqual(offer(child, ...orphans(others)), []);
    assert.deepEqual(offer(parent), isKept ? [parent.id, child.id] : [parent.id]);
  }
});
