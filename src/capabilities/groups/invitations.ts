/** Invitations: notes of type 0x10, repeated for up to seven days until they are answered. */
import { type Backoff, backoff } from '../../foundation/backoff.ts';
import { toHex } from '../../foundation/bytes.ts';
import { asMap, decodeCbor, encodeCbor, isBytes } from '../../foundation/cbor.ts';
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
import { SvcError } from '../../foundation/errors.ts';
import { causeOf } from '../../foundation/events.ts';
import { type Aid, aidFromBytes, aidToBytes } from '../../foundation/identity/aid.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { GroupRow, InviteOut } from '../../foundation/store/groups.ts';
import { hashBytes } from './entry.ts';
import type { Replicas } from './replicas.ts';
import type { GroupsDependencies, InvitationNote } from './types.ts';
import type { GroupWriter } from './writer.ts';

const VERSION = 1;
const MAX_INVITATION_BYTES = 1024;
/**
 * Delay of the next attempt, milliseconds: after the first failure, at most after failures, and after a note was stored
 * in the network.
 */
const RETRY_MS = 30_000;
const MAX_RETRY_MS = 3600_000;
const RETRY: Backoff = { firstMs: RETRY_MS, maxMs: MAX_RETRY_MS };
const REPEAT_MS: number = 24 * 3600_000;
/** Invitations that are repeated in one step. */
const BATCH = 16;
/** Interval of the check for due invitations, milliseconds. */
const TICK_MS = 15_000;

type InvitationParts = Pick<GroupsDependencies, 'groups' | 'notes' | 'clock' | 'log' | 'isKnown' | 'events'>;

export class Invitations {
  readonly #deps: InvitationParts;
  readonly #replicas: Replicas;
  readonly #writer: GroupWriter;
  readonly #attempts = new WorkUnderWay();
  readonly #stop = new AbortController();
  #repeating: RepeatingTask | null = null;

  /** Registers the handler for notes of type 0x10. */
  constructor(dependencies: InvitationParts, replicas: Replicas, writer: GroupWriter) {
    this.#deps = dependencies;
    this.#replicas = replicas;
    this.#writer = writer;
    dependencies.notes.onNote(NOTE_TYPE.invitation, (recipient, note) => this.#received(recipient, note));
  }

  start(): void {
    const { clock, log } = this.#deps;
    const onError = (error: unknown): void => log.warn({ error }, 'invitations were not repeated');
    this.#repeating = every(clock, { periodMs: TICK_MS, firstMs: 0, onError }, () => this.#repeat());
  }

  /** Waits for attempts under way, which end now. They are repeated after the next start. */
  async stop(): Promise<void> {
    this.#repeating?.stop();
    this.#stop.abort(new SvcError('cancelled'));
    await Promise.all([this.#repeating?.idle(), this.#attempts.idle()]);
  }

  /** See `Groups.invite`. */
  async invite(aid: Aid, groupId: string, target: Aid): Promise<boolean> {
    const { clock } = this.#deps;
    if (target === aid) throw new SvcError('self');
    const row = this.#replicas.row(aid, groupId);
    const replica = this.#replicas.open(row);
    if (replica.role(target) !== null)
      throw new SvcError('wrong_state', { message: 'This agent is already a member of the group.' });
    if (replica.members().length >= MAX_MEMBERS)
      throw new SvcError('quota_exceeded', { message: `A group can have at most ${MAX_MEMBERS} members.` });
    if (!replica.control.isInvited(replica.control.everything(), target))
      this.#writer.appendAny(aid, groupId, { kind: 'invite', to: [target] });
    return this.#attempts.run(() =>
      this.#attempt(row, { target, until: clock.now() + INVITATION_LIFE_MS, attempts: 0 }),
    );
  }

  /** Repeats the due invitations. */
  async #repeat(): Promise<void> {
    const { groups, clock } = this.#deps;
    for (const out of groups.dueInvites(clock.now(), REPEAT_MS, BATCH)) {
      const group = groups.byRid(out.rid);
      if (group === null || group.state !== 'member' || out.until <= clock.now())
        groups.dropInviteOut(out.rid, out.target);
      else await this.#attempt(group, out);
    }
  }

  /** Returns true if the recipient has received the invitation. */
  async #attempt(group: GroupRow, before: Pick<InviteOut, 'target' | 'until' | 'attempts'>): Promise<boolean> {
    const { groups, notes, clock, log } = this.#deps;
    const { target } = before;
    // A clock that was ahead may have set it.
    const until = Math.min(before.until, clock.now() + INVITATION_LIFE_MS);
    const attempts = before.attempts + 1;
    const out = { rid: group.rid, target, until, attempts };
    // Stored before the note is sent, so that a crash in between cannot cause a flood of notes.
    groups.putInviteOut({ ...out, nextAt: clock.now() + backoff(RETRY, attempts) });
    try {
      const { delivered } = await notes.send(
        group.aid,
        target,
        NOTE_TYPE.invitation,
        encodeInvitation(group),
        this.#stop.signal,
      );
      if (groups.byRid(group.rid) !== null)
        groups.putInviteOut({ ...out, nextAt: delivered ? until : clock.now() + REPEAT_MS });
      return delivered;
    } catch (error) {
      log.debug({ aid: group.aid, error }, 'an invitation could not be sent, will retry');
      return false;
    }
  }

  #received(recipient: Aid, { sender, body }: InvitationNote): void {
    const invitation = decodeInvitation(body);
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

function encodeInvitation({ groupId, creator, title, secret }: GroupRow): Uint8Array {
  // protocol-groups.md, step 12
  return encodeCbor({ v: VERSION, g: hashBytes(groupId), c: aidToBytes(creator), t: title, s: secret ?? undefined });
}

function decodeInvitation(body: Uint8Array) {
  try {
    const map = asMap(decodeCbor(body, MAX_INVITATION_BYTES), ['v', 'g', 'c', 't'], ['s']);
    if (map === null || map['v'] !== VERSION) return null;
    const { g: group, c: creator, t: title, s: secret } = map;
    if (!isBytes(group, HASH_BYTES) || !isBytes(creator)) return null;
    if (typeof title !== 'string' || title.length > MAX_TITLE_CHARS) return null;
    if (secret !== undefined && !isBytes(secret, JOIN_SECRET_BYTES)) return null;
    return { groupId: toHex(group), creator: aidFromBytes(creator), title, secret: secret ?? null };
  } catch {
    // Strangers can send any body. An invalid invitation remains an ordinary note.
    return null;
  }
}
