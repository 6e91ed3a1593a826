/** Invitations: notes of type 0x10, repeated for up to seven days until they are answered. */
import { backoff, type JitteredBackoff } from '../../foundation/backoff.ts';
import {
  bytes,
  bytesUpTo,
  CborMap,
  converted,
  fromBytes,
  hex,
  nullable,
  text,
  toBytes,
} from '../../foundation/cbor-map.ts';
import { WorkUnderWay } from '../../foundation/concurrency.ts';
import {
  HASH_BYTES,
  INVITATION_LIFE_MS,
  JOIN_SECRET_BYTES,
  MAX_INVITATIONS,
  MAX_MEMBERS,
  MAX_TITLE_CHARS,
} from '../../foundation/domain/groups.ts';
import { NOTE_TYPE } from '../../foundation/domain/notes.ts';
import { DueQueue } from '../../foundation/due-queue.ts';
import { SvcError } from '../../foundation/errors.ts';
import { causeOf } from '../../foundation/events.ts';
import { type Aid, aidFromBytes, aidToBytes } from '../../foundation/identity/aid.ts';
import type { GroupRow, InviteOut } from '../../foundation/store/groups.ts';
import type { Replicas } from './replicas.ts';
import type { GroupsDependencies, InvitationNote } from './types.ts';
import type { GroupWriter } from './writer.ts';

const MAX_INVITATION_BYTES = 1024;
/** Format: protocol-groups.md, step 12. Strangers can send any body: an invalid invitation remains an ordinary note. */
const INVITATION = new CborMap(
  {
    groupId: ['g', hex(HASH_BYTES)],
    creator: ['c', converted(bytesUpTo(MAX_INVITATION_BYTES), aidFromBytes, aidToBytes)],
    title: ['t', text((title) => title.length <= MAX_TITLE_CHARS)],
    secret: ['s', nullable(bytes(JOIN_SECRET_BYTES))],
  },
  { version: 1 },
);
/** Milliseconds until a failed attempt is repeated. */
const RETRY: JitteredBackoff = { firstMs: 30_000, maxMs: 3600_000, jitter: 0.3 };
/** Milliseconds until an invitation that the recipient has not received, but the network stores, is repeated. */
const REPEAT_MS: number = 24 * 3600_000;
/** Invitations that are sent concurrently. */
const AT_ONCE = { total: 4, perKey: 1 } as const;

type InvitationParts = Pick<
  GroupsDependencies,
  'groups' | 'notes' | 'network' | 'clock' | 'log' | 'random' | 'isKnown' | 'events'
>;

export class Invitations {
  readonly #deps: InvitationParts;
  readonly #replicas: Replicas;
  readonly #writer: GroupWriter;
  readonly #attempts = new WorkUnderWay();
  readonly #stop = new AbortController();
  readonly #queue: DueQueue<InviteOut>;

  /** Registers the handler for notes of type 0x10. */
  constructor(dependencies: InvitationParts, replicas: Replicas, writer: GroupWriter) {
    this.#deps = dependencies;
    this.#replicas = replicas;
    this.#writer = writer;
    this.#queue = new DueQueue(
      { name: 'invitations', retry: RETRY, maxWaitMs: REPEAT_MS, atOnce: AT_ONCE },
      {
        ...dependencies,
        table: dependencies.groups.invites,
        random: () => dependencies.random(),
        work: (out, signal) => this.#repeat(out, signal),
      },
    );
    dependencies.notes.onNote(NOTE_TYPE.invitation, (recipient, note) => this.#received(recipient, note));
  }

  start(): void {
    this.#queue.start();
  }

  /** Ends attempts under way, and waits for them. They are repeated after the next start. */
  async stop(): Promise<void> {
    this.#stop.abort(new SvcError('cancelled'));
    await Promise.all([this.#queue.stop(), this.#attempts.idle()]);
  }

  /** Sends due invitations now: an agent moved here with its groups. */
  soon(): void {
    this.#queue.soon();
  }

  /** See `Groups.invite`. */
  async invite(aid: Aid, groupId: string, target: Aid): Promise<boolean> {
    const { groups, clock, log } = this.#deps;
    if (target === aid) throw new SvcError('self');
    const row = this.#replicas.row(aid, groupId);
    const replica = this.#replicas.open(row);
    if (replica.role(target) !== null)
      throw new SvcError('wrong_state', { message: 'This agent is already a member of the group.' });
    if (replica.members().length >= MAX_MEMBERS)
      throw new SvcError('quota_exceeded', { message: `A group can have at most ${MAX_MEMBERS} members.` });
    if (!replica.control.isInvited(replica.control.everything(), target))
      this.#writer.appendAny(aid, groupId, { kind: 'invite', to: [target] });
    const now = clock.now();
    const nextAt = now + backoff(RETRY, 1, this.#deps.random());
    const out = { rid: row.rid, target, nextAt, until: now + INVITATION_LIFE_MS, attempts: 1 };
    groups.putInviteOut(out);
    try {
      return await this.#attempts.run(() => this.#send(row, out, this.#stop.signal));
    } catch (error) {
      log.debug({ aid, error }, 'an invitation could not be sent, will retry');
      return false;
    } finally {
      this.#queue.soon();
    }
  }

  /** Repeats an invitation. */
  async #repeat(out: InviteOut, signal: AbortSignal): Promise<void> {
    const { groups, clock } = this.#deps;
    const group = groups.byRid(out.rid);
    if (group === null || group.state !== 'member' || out.until <= clock.now())
      return groups.dropInviteOut(out.rid, out.target);
    // A clock that was ahead may have set it.
    await this.#send(group, { ...out, until: Math.min(out.until, clock.now() + INVITATION_LIFE_MS) }, signal);
  }

  /** Returns true if the recipient has received the invitation. @throws the errors of sending a note */
  async #send(group: GroupRow, out: InviteOut, signal: AbortSignal): Promise<boolean> {
    const { groups, notes, clock } = this.#deps;
    const body = toBytes(INVITATION, group);
    const { delivered } = await notes.send(group.aid, out.target, NOTE_TYPE.invitation, body, signal);
    if (groups.byRid(out.rid) !== null)
      groups.putInviteOut({ ...out, nextAt: delivered ? out.until : clock.now() + REPEAT_MS });
    return delivered;
  }

  #received(recipient: Aid, { sender, body }: InvitationNote): void {
    const invitation = fromBytes(INVITATION, body, MAX_INVITATION_BYTES);
    if (invitation === null) return;
    const { groups, clock, isKnown, events } = this.#deps;
    const { groupId } = invitation;
    const isNew = groups.inviteIn(recipient, groupId) === null;
    const known = isKnown(recipient, sender);
    const received = { aid: recipient, inviter: sender, at: clock.now(), ...invitation };
    groups.putInviteIn(received, MAX_INVITATIONS, known);
    if (isNew && groups.inviteIn(recipient, groupId) !== null)
      events.emit(recipient, 'group.invited', { group_id: groupId, from: sender }, causeOf(sender, known));
  }
}
