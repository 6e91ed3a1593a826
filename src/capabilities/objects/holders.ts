/** Finds the holders of an object. */
import type { Clock } from '../../foundation/clock.ts';
import { type HolderStatus, MAX_HOLDERS_PER_OBJECT } from '../../foundation/domain/objects.ts';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { ObjectRepository } from '../../foundation/store/objects.ts';
import type { RemoteObjects } from './remote-objects.ts';
import type { ObjectInfo } from './types.ts';

/** Timeout for one holder, milliseconds. */
export const ASK_TIMEOUT_MS = 10_000;

export interface HolderView {
  readonly aid: Aid;
  readonly status: HolderStatus;
  /** The size that the holder reports. Absent if it does not have the object. */
  readonly size?: number;
  readonly name?: string;
}

export interface HolderDependencies {
  readonly repository: ObjectRepository;
  readonly remote: RemoteObjects;
  readonly objects: { stat(aid: Aid, objectId: string): ObjectInfo | null };
  readonly clock: Clock;
}

const STATUS_OF: Partial<Record<ErrorCode, HolderStatus>> = {
  access_denied: 'denied',
  not_found: 'not_found',
  gone: 'gone',
};

export class Holders {
  readonly #deps: HolderDependencies;

  constructor(dependencies: HolderDependencies) {
    this.#deps = dependencies;
  }

  /** Agents that may have an object, most likely first: the hint, earlier holders, other local agents. */
  candidates(aid: Aid, objectId: string, hint?: Aid): readonly Aid[] {
    const { repository } = this.#deps;
    const all = [
      ...(hint === undefined ? [] : [hint]),
      ...repository.holders(objectId),
      ...repository.agentsWith(objectId, MAX_HOLDERS_PER_OBJECT),
    ];
    return [...new Set(all)].filter((one) => one !== aid).slice(0, MAX_HOLDERS_PER_OBJECT);
  }

  /** Stores whether an agent has the object. */
  learn(objectId: string, holder: Aid, has: boolean): void {
    const { repository, clock } = this.#deps;
    if (has) repository.addHolder(objectId, holder, clock.now());
    else repository.removeHolder(objectId, holder);
  }

  /**
   * Queries all candidates concurrently, without reading the object.
   * @returns the agent's own object, and the answers
   */
  async locate(aid: Aid, objectId: string, hint: Aid | undefined, signal: AbortSignal) {
    const asked = this.candidates(aid, objectId, hint).map((holder) => this.#ask(aid, holder, objectId, signal));
    return { local: this.#deps.objects.stat(aid, objectId), holders: await Promise.all(asked) };
  }

  async #ask(local: Aid, holder: Aid, objectId: string, outer: AbortSignal): Promise<HolderView> {
    using limit = awakeTimeout(this.#deps.clock, ASK_TIMEOUT_MS, outer);
    try {
      const request = { local, holder, objectId, method: 'HEAD', headers: {}, signal: limit.signal } as const;
      const { body, size, name } = await this.#deps.remote.read(request);
      body.resume();
      this.learn(objectId, holder, true);
      return { aid: holder, status: 'available', size, name };
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      if (error.code === 'not_found' || error.code === 'gone') this.learn(objectId, holder, false);
      return { aid: holder, status: STATUS_OF[error.code] ?? 'unreachable' };
    }
  }
}
