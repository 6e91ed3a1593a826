/** Group links of members, invited agents and strangers, and invitations. */
import { decodeEntry } from '../../../src/capabilities/groups/entry.ts';
import { Groups } from '../../../src/capabilities/groups/groups.ts';
import { Replica } from '../../../src/capabilities/groups/replica.ts';
import type { InvitationNote } from '../../../src/capabilities/groups/types.ts';
import { toHex } from '../../../src/foundation/bytes.ts';
import { type Aid, parseAid } from '../../../src/foundation/identity/aid.ts';
import { decodeDelegation } from '../../../src/foundation/identity/delegation.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { GroupEntryStore } from '../../../src/foundation/store/group-entries.ts';
import { GroupStore } from '../../../src/foundation/store/groups.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { TestClock } from '../../support/test-clock.ts';
import { testAgent } from '../engine/agents.ts';
import { violation } from '../engine/properties.ts';
import { vectorBytes, vectorTexts } from '../engine/seeds.ts';
import { IncomingOnly } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';
import { editGroup, groupSeeds } from './groups.ts';

const CREATOR = parseAid(vectorTexts('group', 'creator')[0] ?? '');
const GROUP = vectorTexts('group', 'group_id')[0] ?? '';
const MEMBERS = vectorTexts('group', 'members.*.aid').map(parseAid);
const CALLERS: readonly Aid[] = [...MEMBERS.filter((aid) => aid !== CREATOR), testAgent(3).aid];
const NOW = 1_760_000_000_000 + 3_600_000;
/** Number of inputs until the group of the vectors is restored. */
const RESTORE_AFTER = 100;
/** Milliseconds between two links. */
const PAUSE_MS = 1000;

class GroupHost {
  readonly clock = new TestClock(NOW);
  readonly links = new IncomingOnly();
  readonly store = Store.open(':memory:', MIGRATIONS);
  readonly table = new GroupStore(this.store);
  readonly groups: Groups;
  readonly failures: unknown[] = [];
  note: (recipient: Aid, note: InvitationNote) => void = () => {};

  constructor() {
    const [proof = new Uint8Array()] = vectorBytes('delegation', 'valid.*.proof_hex');
    const [seed = new Uint8Array()] = vectorBytes('delegation', 'operational_seed_hex');
    const key = KeyPair.fromSeed(seed);
    const identity = { aid: CREATOR, delegation: decodeDelegation(proof), sign: (text: Uint8Array) => key.sign(text) };
    const entries = new GroupEntryStore(this.store);
    const keep = (fields: object): void => void this.failures.push(fields);
    this.groups = new Groups({
      isKnown: () => false,
      groups: this.table,
      entries,
      links: this.links,
      notes: {
        send: async () => ({ delivered: false }),
        onNote: (_type, handler) => {
          this.note = handler;
        },
      },
      delegations: new DelegationVerifier(),
      events: { emit: () => 0 },
      clock: this.clock,
      log: { ...silentLog, error: keep, child: () => ({ ...silentLog, error: keep }) },
      identity: (aid) => (aid === CREATOR ? identity : null),
      random: () => 0.5,
    });
    const rid = this.table.add({
      aid: CREATOR,
      groupId: GROUP,
      creator: CREATOR,
      title: '',
      state: 'member',
      secret: null,
      hints: [],
      epoch: new Uint8Array(8).fill(1),
      lastAt: 0,
    });
    const row = this.table.byRid(rid);
    const replica = row === null ? null : new Replica(row, { groups: this.table, entries });
    for (const entry of vectorBytes('group', 'entries.*.entry_hex'))
      replica?.admit([decodeEntry(entry)], NOW, () => {});
  }

  async stop(): Promise<void> {
    await this.groups.stop();
    this.store.close();
  }

  /** Summary of the group after all its entries were read. */
  summary(): string {
    const head = this.groups.head(CREATOR, GROUP);
    for (let afterSeq = 0; ; ) {
      const page = this.groups.read(CREATOR, GROUP, { afterSeq, limit: 50 });
      afterSeq = page.scannedToSeq;
      if (!page.hasMore) break;
    }
    const creator = head.members.find(({ aid }) => aid === CREATOR);
    if (creator?.role !== 'creator') throw violation('the creator is no member of its group', head.members);
    return `${head.maxSeq} ${head.members.length}`;
  }
}

/** The first byte selects the caller. */
const groupLink: FuzzTarget = {
  name: 'group-talk',
  inputs: 200,
  maxBytes: 16 * 1024,
  edit: (input, random) => {
    if (random.chance(0.1)) return Buffer.concat([Uint8Array.of(random.below(CALLERS.length)), input.subarray(1)]);
    return Buffer.concat([Uint8Array.of(input[0] ?? 0), editGroup(input.subarray(1), random) ?? input.subarray(1)]);
  },
  prepare: () => {
    let host = new GroupHost();
    let lived = 0;
    if (
      !host
        .summary()
        .startsWith(String(vectorTexts('group', 'entries.*.verdict').filter((v) => v !== 'refused').length))
    )
      throw violation('the group of the vectors is incomplete', host.summary());
    return {
      seeds: groupSeeds().flatMap((seed) => CALLERS.map((_, i) => Uint8Array.of(i, ...seed))),
      run: async (input) => {
        if (++lived % RESTORE_AFTER === 0) {
          await host.stop();
          host = new GroupHost();
        }
        const caller = CALLERS[(input[0] ?? 0) % CALLERS.length] ?? CREATOR;
        host.clock.advance(PAUSE_MS);
        const answer = await host.links.call('group', { caller, called: CREATOR }, input.subarray(1));
        if (host.failures.length > 0) throw violation('the log has an error', JSON.stringify(host.failures));
        return `${answer.length} ${host.summary()}`;
      },
      close: () => host.stop(),
    };
  },
};

const invitation: FuzzTarget = {
  name: 'group-invitation',
  inputs: 400,
  prepare: () => {
    const host = new GroupHost();
    return {
      seeds: vectorBytes('group', 'invitation.body_hex'),
      run: (input) => {
        const before = host.table.invitesIn(CREATOR);
        host.store.transaction(() => host.note(CREATOR, { sender: testAgent(3).aid, body: input }));
        const after = host.table.invitesIn(CREATOR);
        for (const { groupId, title } of after)
          if (!/^[0-9a-f]{64}$/.test(groupId) || title.length > 200)
            throw violation('an invitation over its limits', input);
        const fresh = after.find(({ groupId }) => !before.some((known) => known.groupId === groupId));
        for (const { groupId } of after.slice(0, -3)) host.table.dropInviteIn(CREATOR, groupId);
        return `${fresh === undefined} ${fresh?.secret?.length} ${toHex(input.subarray(0, 1))}`;
      },
      close: () => host.stop(),
    };
  },
};

export const groupLinkTargets: readonly FuzzTarget[] = [groupLink, invitation];
