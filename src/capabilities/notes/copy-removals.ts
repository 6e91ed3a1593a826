/**
 * Removes the copies of notes that their reader has taken from the record network. Copies of a note that came straight
 * follow it a moment later: those of one that was taken sooner are removed when they are there.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Log } from '../../foundation/log.ts';
import { mailboxKey } from '../../foundation/records/keys.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { StoredNote } from '../../foundation/store/notes.ts';
import type { MailNetwork } from './types.ts';

/** Milliseconds after a note came in which its copies are there. */
export const COPIES_FOLLOW_MS = 10_000;
/** Removals that wait for that; more are not waited for: what comes later is removed when it is found. */
const MAX_WAITING = 10_000;

interface CopyRemovalsDependencies {
  readonly network: Pick<MailNetwork, 'removeNotes'>;
  readonly clock: Clock;
  readonly log: Log;
}

interface Waiting {
  readonly aid: Aid;
  readonly note: Pick<StoredNote, 'digest' | 'token'>;
  /** Unix milliseconds. */
  readonly at: number;
}

export class CopyRemovals {
  readonly #deps: CopyRemovalsDependencies;
  readonly #turns: RepeatingTask;
  #waiting: Waiting[] = [];

  constructor(dependencies: CopyRemovalsDependencies) {
    this.#deps = dependencies;
    const onError = (error: unknown): void => dependencies.log.error({ error }, 'copies of notes could not be removed');
    this.#turns = every(dependencies.clock, { periodMs: UNTIL_REQUESTED, onError }, () => this.#turn());
  }

  stop(): void {
    this.#turns.stop();
  }

  /** The reader of these notes has taken them. */
  add(aid: Aid, notes: readonly StoredNote[]): void {
    const now = this.#deps.clock.now();
    const isYoung = ({ receivedAt }: StoredNote): boolean => receivedAt + COPIES_FOLLOW_MS > now && receivedAt <= now;
    const room = MAX_WAITING - this.#waiting.length;
    const young = notes.filter(isYoung).slice(0, room);
    for (const note of young) this.#waiting.push({ aid, note, at: note.receivedAt + COPIES_FOLLOW_MS });
    const others = notes.filter((note) => !young.includes(note));
    if (others.length > 0) this.#remove(aid, others);
    if (young.length > 0) this.#turns.soon(COPIES_FOLLOW_MS);
  }

  /** Removes those that are due; the milliseconds until others are. */
  #turn(): number {
    const now = this.#deps.clock.now();
    const due = this.#waiting.filter(({ at }) => at <= now);
    this.#waiting = this.#waiting.filter(({ at }) => at > now);
    for (const [aid, all] of Map.groupBy(due, (one) => one.aid))
      this.#remove(
        aid,
        all.map(({ note }) => note),
      );
    return Math.max(0, Math.min(...this.#waiting.map(({ at }) => at)) - now);
  }

  #remove(aid: Aid, notes: readonly Waiting['note'][]): void {
    // protocol-notes.md, step 13
    const { network, log } = this.#deps;
    network
      .removeNotes(mailboxKey(aid), notes)
      .catch((error: unknown) => log.debug({ aid, error }, 'the copies of notes were not removed; they expire'));
  }
}
