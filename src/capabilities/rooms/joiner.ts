/** How an agent comes into a room: it finds a member that gives it the log, then writes that it joins. */
import { MAX_HINTS } from '../../foundation/domain/rooms.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Log } from '../../foundation/log.ts';
import type { RoomRow, RoomStore } from '../../foundation/store/rooms.ts';
import type { AntiEntropy } from './anti-entropy.ts';
import { type JoinRequest, type Way, wayOf } from './joining.ts';
import type { Replica } from './replica.ts';
import type { Replicas } from './replicas.ts';
import type { RoomWriter } from './writer.ts';

/** Peers that a joiner tries before it says that joining goes on. */
const MAX_TRIED = 4;

export interface JoinerDependencies {
  readonly rooms: RoomStore;
  readonly replicas: Replicas;
  readonly writer: Pick<RoomWriter, 'write'>;
  readonly spread: Pick<AntiEntropy, 'soon' | 'syncNow'>;
  readonly log: Log;
}

export class Joiner {
  readonly #deps: JoinerDependencies;

  constructor(dependencies: JoinerDependencies) {
    this.#deps = dependencies;
  }

  /** As `Rooms.join`. */
  async join(aid: Aid, request: JoinRequest): Promise<{ groupId: string; joined: boolean; title: string }> {
    const { rooms, replicas, spread } = this.#deps;
    replicas.mustBeHere(aid);
    // A member needs no invitation, and anybody may have written one.
    const inviteTo = (groupId: string) =>
      rooms.find(aid, groupId)?.state === 'member' ? null : rooms.inviteIn(aid, groupId);
    const way = wayOf(aid, request, inviteTo);
    const { groupId } = way;
    const known = rooms.find(aid, groupId);
    if (known === null) replicas.add({ ...way, aid, state: 'joining' });
    else this.#joinAnew(known, way);
    await this.#tryToEnter(replicas.open(replicas.row(aid, groupId)));
    const row = replicas.row(aid, groupId);
    if (row.state === 'joining' || known !== null) spread.soon(row.rid);
    return { groupId, joined: row.state === 'member', title: row.title };
  }

  /** To be called after a comparison: a joiner that has the room writes its entry. */
  synced(replica: Replica): void {
    const { rooms, replicas, writer, log } = this.#deps;
    const row = rooms.byRid(replica.rid);
    const identity = replicas.identity(replica.aid);
    if (row?.state !== 'joining' || identity === null || replica.maxSeq === 0) return;
    if (replica.role(replica.aid) !== null) return rooms.setState(row.rid, 'member');
    const view = replica.control.everything();
    const proof = replica.control.isInvited(view, replica.aid) ? undefined : replicas.proof(replica);
    try {
      writer.write(replica, identity, { kind: 'join', ...(proof === undefined ? {} : { proof }) });
    } catch (error) {
      log.debug({ aid: replica.aid, error }, 'the room does not let this agent in');
    }
  }

  /** What was said of the way before may have been wrong, as in a false invitation. */
  #joinAnew(known: RoomRow, { creator, hints, secret }: Way): void {
    const { rooms, replicas } = this.#deps;
    const { rid, maxSeq, state } = known;
    if (state === 'left' || state === 'removed') replicas.checkCount(known.aid);
    const all = [...new Set([...hints, ...known.hints])].slice(0, MAX_HINTS);
    // Once an entry is here it is certain who made the room.
    const maker = maxSeq === 0 ? creator : known.creator;
    rooms.transaction(() => {
      rooms.setWay(rid, { creator: maker, hints: all }, secret);
      if (state !== 'member') rooms.setState(rid, 'joining');
    });
    if (maker !== known.creator) replicas.reopen(rid);
  }

  async #tryToEnter(replica: Replica): Promise<void> {
    const { rooms, replicas, spread, log } = this.#deps;
    for (const peer of replicas.peers(replica).slice(0, MAX_TRIED)) {
      if (rooms.byRid(replica.rid)?.state !== 'joining') return;
      try {
        await spread.syncNow(replica, peer);
      } catch (error) {
        log.debug({ aid: replica.aid, peer, error }, 'a room was not joined through this agent');
      }
    }
  }
}
