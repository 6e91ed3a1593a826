/** Notifies the other side of the end of an offer, and retries until the note is stored or the offer has expired. */
import { type Backoff, backoff } from '../../foundation/backoff.ts';
import type { Clock } from '../../foundation/clock.ts';
import { NOTE_TYPE } from '../../foundation/domain/notes.ts';
import type { Log } from '../../foundation/log.ts';
import type { FileOfferRow, FileOfferStore } from '../../foundation/store/file-offers.ts';
import type { OfferNotes } from './types.ts';
import { encodeEndNotice } from './wire.ts';

/** Delay of the next attempt, milliseconds: after the first failure, and at most. */
const RETRY: Backoff = { firstMs: 30_000, maxMs: 3600_000 };
/** Notes that are sent concurrently. */
const BATCH = 8;

export interface OfferEndNotifierDependencies {
  readonly store: Pick<FileOfferStore, 'dueNotifications' | 'scheduleNotification'>;
  readonly notes: Pick<OfferNotes, 'send'>;
  readonly clock: Clock;
  readonly log: Log;
}

export class OfferEndNotifier {
  readonly #deps: OfferEndNotifierDependencies;

  constructor(dependencies: OfferEndNotifierDependencies) {
    this.#deps = dependencies;
  }

  /** Sends all due notifications. */
  async sendDue(): Promise<void> {
    const { store, clock } = this.#deps;
    for (;;) {
      const due = store.dueNotifications(clock.now(), BATCH);
      await Promise.all(due.map((row) => this.#notify(row)));
      if (due.length < BATCH) return;
    }
  }

  async #notify({ aid, id, peer, state, expiresAt, attempts }: FileOfferRow): Promise<void> {
    const { store, notes, clock, log } = this.#deps;
    if (state === 'open' || state === 'expired' || expiresAt <= clock.now())
      return store.scheduleNotification(aid, id, null);
    // Stored before the note is sent, so that a crash in between cannot cause a flood of notes.
    store.scheduleNotification(aid, id, clock.now() + backoff(RETRY, attempts + 1));
    try {
      await notes.send(aid, peer, NOTE_TYPE.fileNews, encodeEndNotice({ id, end: state }));
      store.scheduleNotification(aid, id, null);
    } catch (error) {
      log.debug({ aid, error }, 'the end of a file offer could not be reported, will retry');
    }
  }
}
