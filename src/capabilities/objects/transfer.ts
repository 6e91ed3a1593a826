/**
 * Brings an object here from whoever has it: resumed where it broke off, hashed as it goes, and
 * taken up by the next holder where one fails or lies.
 */
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { awakeClock } from '../../foundation/stall.ts';
import type { PartFile } from './part-file.ts';
import type { RemoteObject, RemoteObjects } from './remote-objects.ts';

/** A holder has to bring `MIN_PROGRESS_BYTES` within this time, or the rest of the object: milliseconds. */
export const PROGRESS_MS = 30_000;
export const MIN_PROGRESS_BYTES = 64 * 1024;
/** How often one holder is asked again after it broke off, as long as each time brought something. */
export const MAX_RESUMES = 8;

export interface TransferDependencies {
  readonly remote: RemoteObjects;
  readonly clock: Clock;
  /** Told the size before the first byte is taken; what it throws ends the transfer. */
  readonly admit: (bytes: number) => Promise<void>;
}

export interface TransferRequest {
  readonly local: Aid;
  readonly objectId: string;
  readonly holders: readonly Aid[];
  /** What it must be long, bytes, where that is known. */
  readonly size?: number | undefined;
  readonly accessToken?: string | undefined;
  readonly signal: AbortSignal;
}

export interface Brought {
  readonly from: Aid;
  /** What the holder calls it. */
  readonly name: string;
}

/** Why each of the holders failed. */
export type Failures = Map<Aid, SvcError>;

/** Wrong bytes that cannot be laid at one holder's door. */
class MixedBytes extends SvcError {
  constructor() {
    super('protocol_error', { message: 'What was downloaded in parts is not the object.' });
  }
}

/** A fault of this side: asking another holder would not help. */
function isOurs(error: SvcError): boolean {
  return error.code === 'not_writable' || error.code === 'quota_exceeded' || error.code === 'cancelled';
}

export class Transfer {
  readonly #deps: TransferDependencies;
  readonly #request: TransferRequest;
  readonly #part: PartFile;
  /** Bytes of several holders, or of an earlier day, are in the part: which of them are wrong could not be told. */
  #mixed: boolean;
  #last: Aid | null = null;

  constructor(dependencies: TransferDependencies, request: TransferRequest, part: PartFile) {
    this.#deps = dependencies;
    this.#request = request;
    this.#part = part;
    this.#mixed = part.length > 0;
  }

  /** Tries one holder after the other; null where all of them failed. */
  async run(failures: Failures): Promise<Brought | null> {
    // Bytes that turned out wrong and were not of one holder alone: from then on each begins anew.
    let alone = false;
    for (let round = 0; round < 2; round++) {
      for (const holder of this.#request.holders) {
        if (failures.get(holder)?.code === 'protocol_error') continue;
        try {
          if (alone && this.#last !== holder) await this.#reset();
          return await this.#fromHolder(holder);
        } catch (error) {
          if (!(error instanceof SvcError) || isOurs(error)) throw error;
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

  async #fromHolder(holder: Aid): Promise<Brought> {
    for (let resumes = 0; ; resumes++) {
      const before = this.#part.length;
      try {
        return await this.#once(holder);
      } catch (error) {
        if (!(error instanceof SvcError) || error.code !== 'connect_failed') throw error;
        // Broken off on the way: the same holder again, as long as that brings something.
        if (this.#part.length <= before || resumes === MAX_RESUMES) throw error;
      }
    }
  }

  async #once(holder: Aid): Promise<Brought> {
    const { local, objectId, accessToken, signal } = this.#request;
    const stalled = new AbortController();
    const offset = this.#part.length;
    const headers = offset === 0 ? {} : { range: `bytes=${offset}-`, 'if-range': `"${objectId}"` };
    const watch = this.#watch(stalled);
    try {
      const answer = await this.#deps.remote.read({
        local,
        holder,
        objectId,
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

  /** Takes what a holder sends; afterwards the part is the object. */
  async #take(holder: Aid, answer: RemoteObject): Promise<void> {
    const { status, size, start, body } = answer;
    try {
      if (this.#request.size !== undefined && size !== this.#request.size)
        throw new SvcError('protocol_error', { message: 'The file has another size than was said of it.' });
      if (status === 200 && this.#part.length > 0) await this.#reset();
      else if (status === 416 && this.#part.length !== size) {
        // What is here is longer than the object: it is not its beginning.
        await this.#reset();
        throw new MixedBytes();
      } else if (status === 304 || (status === 206 && start !== this.#part.length))
        throw new SvcError('protocol_error', { message: 'The holder sent another part than it was asked for.' });
      if (this.#last !== null && this.#last !== holder) this.#mixed = true;
      this.#last = holder;
      await this.#deps.admit(size - this.#part.length);
      await this.#copy(answer);
    } finally {
      body.destroy();
    }
    if (this.#part.is(this.#request.objectId)) return;
    const mixed = this.#mixed;
    await this.#reset();
    throw mixed
      ? new MixedBytes()
      : new SvcError('protocol_error', { message: 'The holder sent other bytes than the object has.' });
  }

  async #copy({ body, size, release }: RemoteObject): Promise<void> {
    const source: AsyncIterator<Buffer> = body[Symbol.asyncIterator]();
    for (;;) {
      const next = await source.next().catch((cause: unknown) => {
        throw new SvcError('connect_failed', { message: 'The transfer broke off.', cause });
      });
      if (next.done === true) break;
      if (this.#part.length + next.value.length > size)
        throw new SvcError('protocol_error', { message: 'The holder sent more than it had said.' });
      await this.#part.append(next.value, release);
    }
    if (this.#part.length < size) throw new SvcError('connect_failed', { message: 'The transfer broke off.' });
  }

  /** Gives up a holder that brings next to nothing: one byte now and then would hold us for ever. */
  #watch(stalled: AbortController): RepeatingTask {
    let before = this.#part.length;
    const onError = (error: unknown): void => stalled.abort(error);
    return every(awakeClock(this.#deps.clock), { periodMs: PROGRESS_MS, onError }, () => {
      if (this.#part.length - before < MIN_PROGRESS_BYTES) stalled.abort();
      before = this.#part.length;
    });
  }
}
