/** SIGKILL at random moments of writing in, joining and leaving a group, on real daemons and real disks. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { killSome, Mortal } from '../support/mortal.ts';
import { Random } from '../support/random.ts';

const KILLS = 8;

interface Entry {
  readonly entry_id: string;
  readonly kind: string;
  readonly author: string;
  readonly retracted: boolean;
}

/** A member, and the responses that it received. */
class Member {
  readonly mortal: Mortal;
  readonly aid: string;
  readonly random: Random;
  readonly written = new Set<string>();
  /** Own entries: retraction requested, and retraction acknowledged. */
  readonly asked = new Set<string>();
  readonly retracted = new Set<string>();
  left = 0;
  inside = false;

  constructor(mortal: Mortal, aid: string, random: Random) {
    this.mortal = mortal;
    this.aid = aid;
    this.random = random;
  }

  async enter(joinBy: object): Promise<void> {
    const answer = await this.mortal.tool<{ state: string }>('group_join', { aid: this.aid, ...joinBy });
    if (answer?.state === 'joined') this.inside = true;
  }

  async write(group: string): Promise<void> {
    const body = Buffer.from(`${this.written.size}`).toString('base64');
    const answer = await this.mortal.tool<{ entry_id: string }>('group_append', {
      aid: this.aid,
      group_id: group,
      body,
    });
    if (answer !== null) this.written.add(answer.entry_id);
    // It may have left although the response was lost.
    else this.inside = false;
  }

  async retract(group: string): Promise<void> {
    if (this.written.size === 0) return;
    const entry_id = this.random.pick([...this.written]);
    this.asked.add(entry_id);
    const answer = await this.mortal.tool('group_retract', { aid: this.aid, group_id: group, entry_id });
    if (answer !== null) this.retracted.add(entry_id);
  }

  async leave(group: string): Promise<void> {
    this.inside = false;
    if ((await this.mortal.ask('POST', `/agents/${this.aid}/groups/${group}/leave`, {})) !== null) this.left++;
  }

  /** All entries that this member sees, or null if its daemon does not answer. */
  async read(group: string): Promise<Entry[] | null> {
    const all: Entry[] = [];
    for (let after_seq = 0; ; ) {
      const page = await this.mortal.tool<{ entries: Entry[]; scanned_to_seq: number; has_more: boolean }>(
        'group_read',
        { aid: this.aid, group_id: group, after_seq, limit: 50 },
      );
      if (page === null) return null;
      all.push(...page.entries);
      if (!page.has_more) return all;
      after_seq = page.scanned_to_seq;
    }
  }

  /** The rows of its copy, while its daemon is stopped. */
  rows(): unknown {
    const store = Store.open(join(this.mortal.daemon.dataDir, 'svcd.db'), MIGRATIONS);
    try {
      assert.equal(store.one('PRAGMA integrity_check')?.['integrity_check'], 'ok');
      const sql =
        'SELECT hex(bytes) AS bytes, void FROM group_entries WHERE lid = (SELECT lid FROM groups WHERE aid = ?) ORDER BY entry_id';
      return store.all(sql, this.aid);
    } finally {
      store.close();
    }
  }
}

/** Does random operations until it is aborted. */
async function randomOperations(member: Member, group: string, joinBy: object, over: AbortSignal): Promise<void> {
  const { random } = member;
  while (!over.aborted) {
    if (!member.inside) {
      await member.enter(joinBy);
      if (!member.inside) await delay(20);
    } else if (random.chance(0.15)) await member.retract(group);
    else if (member.written.size > 3 && random.chance(0.1) && 'link' in joinBy) await member.leave(group);
    else await member.write(group);
  }
}

function idsOf(entries: readonly Entry[]): string {
  return entries
    .map(({ entry_id, retracted }) => `${entry_id} ${retracted}`)
    .sort()
    .join('\n');
}

test('groups: acknowledged changes are in every copy, and all copies are equal byte for byte', async () => {
  await using root = await TestDaemon.start();
  const random = new Random(11);
  const mortals = await Promise.all([0, 1, 2].map(() => Mortal.start(root.dhtAddress)));
  const over = new AbortController();
  try {
    const members = await Promise.all(mortals.map(async (m) => new Member(m, await m.publishedAgent(), random)));
    const [alice, bob, carol] = members;
    assert.ok(alice !== undefined && bob !== undefined && carol !== undefined);
    const created = await alice.mortal.tool<{ group_id: string; link: string }>('group_create', { aid: alice.aid });
    assert.ok(created !== null);
    const { group_id: group, link } = created;
    alice.inside = true;
    const invitation = { aid: alice.aid, group_id: group, target_aid: bob.aid };
    await eventually('the invitation', async () => (await alice.mortal.tool('group_invite', invitation)) !== null);
    const back = { group_id: group, creator_aid: alice.aid };
    const lives = [
      randomOperations(alice, group, back, over.signal),
      randomOperations(bob, group, back, over.signal),
      randomOperations(carol, group, { link }, over.signal),
    ];
    await killSome(mortals, KILLS, random);
    await eventually(
      'enough operations succeeded',
      () => alice.written.size > 5 && bob.written.size > 5 && carol.left > 0,
    );
    over.abort();
    await Promise.all(lives);

    await eventually('carol is a member', async () => {
      if (!carol.inside) await carol.enter({ link });
      return carol.inside;
    });
    const copies = await eventually('equal copies', async () => {
      for (const { mortal, aid } of [bob, carol])
        await mortal.tool('group_sync', { aid, group_id: group, peer_aid: alice.aid });
      const read = await Promise.all(members.map((member) => member.read(group)));
      const all = read.filter((copy) => copy !== null);
      return all.length === members.length && new Set(all.map(idsOf)).size === 1 && all;
    });
    const [entries = []] = copies;
    const shown = new Map(entries.map((entry) => [entry.entry_id, entry]));
    for (const member of members) {
      for (const id of member.written) assert.equal(shown.get(id)?.author, member.aid, 'an entry is lost');
      for (const id of member.retracted) assert.equal(shown.get(id)?.retracted, true, 'a retraction is lost');
    }
    const asked = new Set(members.flatMap((member) => [...member.asked]));
    for (const { entry_id, retracted } of entries)
      assert.ok(!retracted || asked.has(entry_id), 'the retraction was not requested');
    const count = (kind: string): number =>
      entries.filter((entry) => entry.kind === kind && entry.author === carol.aid).length;
    assert.ok(count('leave') >= carol.left, 'a departure is lost');
    // One join before each departure, and the last one. If a response was lost, Carol may have asked while still a member.
    assert.ok(count('join') > carol.left, 'a join is lost');

    for (const mortal of mortals) await mortal.rest();
    const [rows, ...others] = members.map((member) => member.rows());
    for (const other of others) assert.deepEqual(other, rows);
  } finally {
    over.abort();
    for (const mortal of mortals) await mortal.stop();
  }
});
