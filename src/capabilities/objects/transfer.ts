/**
 * Downloads an object from its holders: continues interrupted downloads, hashes the bytes, and switches to the next
 * holder if one fails or sends wrong bytes.
 */
import type { Clock } from '../../foundation/clock.ts';
import { MAX_RANGE_ATTEMPTS, TRANSFER_SILENT_MS } from '../../foundation/domain/objects.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { awakeClock, SilenceWatch } from '../../foundation/stall.ts';
import type { PartFile } from './file-sink.ts';
import { tagOf } from './object-response.ts';
import type { RemoteObject, RemoteObjects, Resource } from './remote-objects.ts';

/** In this time, a holder must send `MIN_PROGRESS_BYTES` or the rest of the object, milliseconds. */
export const PROGRESS_MS = 30_000;
export const MIN_PROGRESS_BYTES = 64 * 1024;
/** Attempts without a byte. The time of all of them is that of `PROGRESS_MS`. */
const MAX_SILENT_ATTEMPTS: number = PROGRESS_MS / TRANSFER_SILENT_MS;
/** An interrupted holder is tried again this many times, if each attempt made progress. Long parts count anew. */
export const MAX_RESUMES = 8;

export interface TransferRequest {
  readonly local: Aid;
  readonly resource: Resource;
  /** Compares the bytes with the requested ones. */
  readonly check: BytesCheck;
  readonly holders: readonly Aid[];
  /** The required size, bytes, if known. */
  readonly size?: number | undefined;
  readonly accessToken?: string | undefined;
  readonly signal: AbortSignal;
}

/** Checks the bytes of a download. */
export interface BytesCheck {
  /**
   * Called while bytes arrive. It removes wrong ones from the file.
   * @throws SvcError `WrongRange`, and the errors of the sender
   */
  readonly arrived?: (part: PartFile) => Promise<void>;
  /** Ends `arrived`, which fails then. */
  readonly stop?: () => void;
  /** Whether the file is complete and right. */
  readonly isWhole: (part: PartFile) => boolean;
}

export interface Downloaded {
  readonly from: Aid;
  /** The name that the holder reports. */
  readonly name: string;
}

/** The error of each holder. */
export type Failures = Map<Aid, SvcError>;

/** Wrong bytes that may come from several holders. */
class MixedBytes extends SvcError {
  constructor() {
    super('protocol_error', { message: 'The parts of the download do not match the object ID.' });
  }
}

/** A range of the file has other bytes than its sender named. The file has its bytes up to this range. */
export class WrongRange extends SvcError {
  constructor() {
    super('protocol_error', { message: 'The sender sent other bytes than it offered.' });
  }
}

/** The holder has sent a part of its response, and nothing since. */
class SilentHolder extends SvcError {
  constructor() {
    super('timeout', { message: 'The holder is too slow.' });
  }
}

function interrupted(cause?: unknown): SvcError {
  return new SvcError('connect_failed', { message: 'The transfer was interrupted.', cause });
}

/** Whether the error is local, so that another holder would not help. */
function isLocalError(error: SvcError): boolean {
  return error.code === 'not_writable' || error.code === 'quota_exceeded' || error.code === 'cancelled';
}

export class Transfer {
  readonly #remote: RemoteObjects;
  readonly #clock: Clock;
  readonly #admit: (bytes: number) => Promise<void>;
  readonly #request: TransferRequest;
  readonly #part: PartFile;
  /** The file contains bytes of several holders or of an earlier download, so the source of wrong bytes is unknown. */
  #mixed: boolean;
  #last: Aid | null = null;

  /**
   * @param admit called with the number of missing bytes before the first one is accepted. If it throws, the transfer
   *   ends
   */
  constructor(
    remote: RemoteObjects,
    clock: Clock,
    admit: (bytes: number) => Promise<void>,
    request: TransferRequest,
    part: PartFile,
  ) {
    this.#remote = remote;
    this.#clock = clock;
    this.#admit = admit;
    this.#request = request;
    this.#part = part;
    this.#mixed = part.length > 0;
  }

  /** Tries one holder after the other. Returns null if all of them failed. */
  async run(failures: Failures): Promise<Downloaded | null> {
    // After wrong bytes of mixed origin, each holder starts from the beginning.
    let alone = false;
    for (let round = 0; round < 2; round++) {
      for (const holder of this.#request.holders) {
        if (failures.get(holder)?.code === 'protocol_error') continue;
        try {
          if (alone && this.#last !== holder) await this.#reset();
          return await this.#fromHolder(holder);
        } catch (error) {
          if (!(error instanceof SvcError) || isLocalError(error)) throw error;
          if (error instanceof MixedBytes) alone = true;
          else failures.set(holder, error);
        }
      }
      if (!alone) return null;
    }
    return null;
  }

  async #reset(): Promise<void> {
    await this.#part.reset();
    this.#mixed = false;
    this.#last = null;
  }

  async #fromHolder(holder: Aid): Promise<Downloaded> {
    let resumes = 0;
    let silences = 0;
    let wrong = { at: -1, attempts: 0 };
    for (;;) {
      const before = this.#part.length;
      try {
        return await this.#once(holder);
      } catch (error) {
        const moved = this.#part.length - before;
        if (moved > 0) silences = 0;
        if (moved >= MIN_PROGRESS_BYTES) resumes = 0;
        if (error instanceof WrongRange) {
          // The file ends before the wrong range.
          const { length } = this.#part;
          wrong = { at: length, attempts: wrong.at === length ? wrong.attempts + 1 : 1 };
          if (wrong.attempts >= MAX_RANGE_ATTEMPTS) throw error;
          continue;
        }
        if (error instanceof SilentHolder) {
          if (++silences >= MAX_SILENT_ATTEMPTS) throw error;
          // Interrupted: tries the same holder again as long as it makes progress.
        } else if (!(error instanceof SvcError) || error.code !== 'connect_failed' || moved <= 0) throw error;
        if (moved > 0 && ++resumes > MAX_RESUMES) throw error;
      }
    }
  }

  async #once(holder: Aid): Promise<Downloaded> {
    const { local, resource, accessToken, signal } = this.#request;
    const stalled = new AbortController();
    const offset = this.#part.length;
    const headers = offset === 0 ? {} : { range: `bytes=${offset}-`, 'if-range': tagOf(resource.tag) };
    const watch = this.#watch(stalled);
    stalled.signal.addEventListener('abort', () => this.#request.check.stop?.(), { once: true });
    try {
      const answer = await this.#remote.read({
        local,
        holder,
        resource,
        method: 'GET',
        headers,
        accessToken,
        signal: AbortSignal.any([signal, stalled.signal]),
      });
      await this.#take(holder, answer);
      return { from: holder, name: answer.name };
    } catch (error) {
      if (signal.aborted) throw new SvcError('cancelled', { cause: error });
      if (stalled.signal.aborted) throw new SvcError('timeout', { message: 'The holder is too slow.', cause: error });
      throw error;
    } finally {
      watch.stop();
    }
  }

  /** Receives the response of a holder. Afterwards the file is the object. */
  async #take(holder: Aid, answer: RemoteObject): Promise<void> {
    const { status, size, start, body } = answer;
    try {
      if (this.#request.size !== undefined && size !== this.#request.size)
        throw new SvcError('protocol_error', { message: 'The size of the file differs from the offer.' });
      if (status === 200 && this.#part.length > 0) await this.#reset();
      else if (status === 416 && this.#part.length !== size) {
        // The file is longer than the object, so it cannot be its beginning.
        await this.#reset();
        throw new MixedBytes();
      } else if (status === 304 || (status === 206 && start !== this.#part.length))
        throw new SvcError('protocol_error', { message: 'The holder sent a different part than requested.' });
      if (this.#last !== null && this.#last !== holder) this.#mixed = true;
      this.#last = holder;
      await this.#admit(size - this.#part.length);
      await this.#copy(answer);
    } finally {
      body.destroy();
    }
    if (this.#request.check.isWhole(this.#part)) return;
    const mixed = this.#mixed;
    await this.#reset();
    throw mixed
      ? new MixedBytes()
      : new SvcError('protocol_error', { message: 'The bytes of the holder do not match the object ID.' });
  }

  async #copy({ body, size, release }: RemoteObject): Promise<void> {
    const { check } = this.#request;
    const source: AsyncIterator<Buffer> = body[Symbol.asyncIterator]();
    // Time in which the disk is written is no silence.
    let isWaiting = true;
    const watch = (): SilenceWatch =>
      new SilenceWatch(this.#clock, TRANSFER_SILENT_MS, () => {
        if (isWaiting) body.destroy(new SilentHolder());
        else silence = watch();
      });
    let silence = watch();
    try {
      for (;;) {
        isWaiting = true;
        const next = await source.next().catch((cause: unknown) => {
          throw cause instanceof SilentHolder ? cause : interrupted(cause);
        });
        isWaiting = false;
        silence.heard();
        if (next.done === true) break;
        if (this.#part.length + next.value.length > size)
          throw new SvcError('protocol_error', { message: 'The holder sent more bytes than announced.' });
        await this.#part.append(next.value, release);
        await check.arrived?.(this.#part);
        silence.heard();
      }
    } finally {
      silence.stop();
    }
    if (this.#part.length < size) throw interrupted();
    await check.arrived?.(this.#part);
  }

  /**
   * Drops a holder that makes almost no progress. Otherwise one byte from time to time would keep the download open
   * forever.
   */
  #watch(stalled: AbortController): RepeatingTask {
    let before = this.#part.length;
    const onError = (error: unknown): void => stalled.abort(error);
    return every(awakeClock(this.#clock), { periodMs: PROGRESS_MS, onError }, () => {
      if (this.#part.length - before < MIN_PROGRESS_BYTES) stalled.abort();
      before = this.#part.length;
    });
  }
}
