/** The calling side of connections that outlive their links: finds them another one where theirs is lost or a better one stands. */
import type { Clock } from '../../../foundation/clock.ts';
import { abortable } from '../../../foundation/deadline.ts';
import { detach } from '../../../foundation/detached.ts';
import { isRelayed } from '../../../foundation/domain/tunnels.ts';
import { SvcError } from '../../../foundation/errors.ts';
import type { Aid } from '../../../foundation/identity/aid.ts';
import { awakeTimeout } from '../../../foundation/stall.ts';
import { Refusal, STATUS } from '../../../network/links/status.ts';
import type { LinkPath, LinkPaths, Links, OpenOptions } from '../../../network/links/types.ts';
import { readExactly } from '../../../network/links/wire.ts';
import { RESUME_MS, type Resumable } from './resumable.ts';

/** Time for the first try, milliseconds: it may have begun on a path that was just going; each later one has twice as long … */
const FIRST_TRY_MS = 2500;
/** … up to this. */
const TRY_MS = 10_000;
/** Pause after the first try that fails, milliseconds; each later one is twice as long … */
const FIRST_PAUSE_MS = 100;
/** … up to this. */
const MAX_PAUSE_MS = 2000;
/** Links that are opened at a time: thousands of connections may lose theirs at once. */
export const MAX_TRIES_AT_ONCE = 64;

/** How the other side of a connection is reached, and what names the connection there. */
export interface Anchor {
  readonly ticket: Uint8Array;
  readonly local: Aid;
  readonly remote: Aid;
  /** What links are opened with. */
  readonly terms: () => Pick<OpenOptions, 'accessToken' | 'disableRelay'>;
}

/** A connection, while it stands. */
interface Standing {
  readonly anchor: Anchor;
  readonly over: AbortController;
  /** When its link was lost, milliseconds; null while one is under it. */
  lostAt: number | null;
  /** Another link is being opened. */
  isBusy: boolean;
}

interface ResumerDependencies {
  readonly clock: Clock;
  readonly links: Links & LinkPaths;
}

/** So many connections go over to a quicker way on the same path: it has places for some hundred. */
const MAX_QUICKENED = 64;

/** Whether connections on a path should go over to another one, which new links to their node take. */
function isBetter(path: LinkPath, than: LinkPath): boolean {
  if (isRelayed(path.kind) !== isRelayed(than.kind)) return isRelayed(than.kind);
  return path.kind !== than.kind || path.remote?.host !== than.remote?.host || path.remote?.port !== than.remote?.port;
}

export class Resumer {
  readonly #deps: ResumerDependencies;
  readonly #standing = new Map<Resumable, Standing>();
  #tries = 0;
  readonly #queue: (() => void)[] = [];
  /** Connections that ended because no other link was found. */
  readonly #givenUp = new WeakSet<Resumable>();
  readonly #unhear: () => void;

  constructor(dependencies: ResumerDependencies) {
    this.#deps = dependencies;
    this.#unhear = dependencies.links.onPathChange(() => this.#look());
  }

  /** Connections that stand. */
  get size(): number {
    return this.#standing.size;
  }

  stop(): void {
    this.#unhear();
  }

  add(connection: Resumable, anchor: Anchor): void {
    this.#standing.set(connection, { anchor, over: new AbortController(), lostAt: null, isBusy: false });
  }

  /** A connection has ended. */
  delete(connection: Resumable): void {
    const standing = this.#standing.get(connection);
    this.#standing.delete(connection);
    // Most end without having been resumed, and an error is dear to make.
    if (standing?.isBusy === true) standing.over.abort(new SvcError('cancelled'));
  }

  /** The link of a connection was lost. */
  lost(connection: Resumable): boolean {
    const standing = this.#standing.get(connection);
    if (standing === undefined) return false;
    if (!standing.isBusy) detach(this.#resume(connection, standing));
    return true;
  }

  /** When the link of a connection was lost that waits for another one, milliseconds; null if it does not wait. */
  lostAt(connection: Resumable): number | null {
    return connection.isCarried ? null : (this.#standing.get(connection)?.lostAt ?? null);
  }

  /** True if a connection ended because no other link was found. */
  isGivenUp(connection: Resumable): boolean {
    return this.#givenUp.has(connection);
  }

  #giveUp(connection: Resumable): void {
    this.#givenUp.add(connection);
    connection.destroy();
  }

  /** Moves what goes a worse way than new links would. */
  #look(): void {
    let quickened = 0;
    for (const [connection, standing] of this.#standing) {
      if (standing.isBusy || !connection.isCarried || !connection.mayMove) continue;
      const { remote, terms } = standing.anchor;
      const path = this.#deps.links.path(remote, terms().disableRelay === true);
      if (path === null) continue;
      const now = connection.path();
      const isQuicker = path.isUpgraded === true && now.isUpgraded !== true && quickened < MAX_QUICKENED;
      if (isQuicker) quickened++;
      if (isQuicker || isBetter(path, now)) detach(this.#move(connection, standing));
    }
  }

  async #move(connection: Resumable, standing: Standing): Promise<void> {
    standing.isBusy = true;
    try {
      await this.#try(connection, standing, TRY_MS);
    } catch {
      // It stays where it is, unless that was lost meanwhile.
    }
    standing.isBusy = false;
    if (!connection.isCarried && !connection.destroyed) this.lost(connection);
  }

  async #resume(connection: Resumable, standing: Standing): Promise<void> {
    // protocol-tunnels.md, steps 9 and 11
    const { clock } = this.#deps;
    standing.lostAt = clock.now();
    const until = standing.lostAt + RESUME_MS;
    standing.isBusy = true;
    let tryMs = FIRST_TRY_MS;
    for (let pause = FIRST_PAUSE_MS; !connection.destroyed; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
      try {
        await this.#try(connection, standing, tryMs);
        break;
      } catch (error) {
        if (isFinal(error) || clock.now() >= until) this.#giveUp(connection);
      }
      tryMs = Math.min(2 * tryMs, TRY_MS);
      await this.#pause(pause, standing.over.signal);
    }
    standing.isBusy = false;
    if (!connection.isCarried && !connection.destroyed) this.lost(connection);
  }

  async #try(connection: Resumable, { anchor, over }: Standing, ms: number): Promise<void> {
    await this.#turn();
    try {
      if (over.signal.aborted) return;
      using limit = awakeTimeout(this.#deps.clock, ms, over.signal);
      const options = { ...anchor.terms(), timeoutMs: ms, signal: limit.signal };
      const link = await this.#deps.links.open(anchor.local, anchor.remote, 'tcp-resume', options);
      link.on('error', () => {});
      try {
        link.write(anchor.ticket);
        await readExactly(link, 1, limit.signal);
      } catch (error) {
        link.destroy();
        throw error;
      }
      connection.attach(link);
    } finally {
      this.#tries--;
      this.#queue.shift()?.();
    }
  }

  /** Waits until another link may be opened. */
  async #turn(): Promise<void> {
    if (this.#tries >= MAX_TRIES_AT_ONCE) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#queue.push(resolve);
      await promise;
    }
    this.#tries++;
  }

  async #pause(ms: number, over: AbortSignal): Promise<void> {
    if (over.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#deps.clock.after(ms, resolve);
    await abortable(promise, over).catch(() => {});
    timer.cancel();
  }
}

/** True where no later try can succeed: the other side does not know the connection, or lets us in no more. */
function isFinal(error: unknown): boolean {
  if (error instanceof Refusal && error.refusal === STATUS.proofNeeded) return false;
  if (error instanceof Refusal) return error.code !== 'rate_limited' && error.code !== 'resolve_failed';
  return error instanceof SvcError && (error.code === 'protocol_error' || error.code === 'not_found');
}
