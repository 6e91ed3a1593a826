/**
 * Updates svcd: checks for a newer release on request, and installs it if svcd runs as the installed system service. It
 * does neither on its own. See docs/update.md.
 */

import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import type { UpdateState } from '../../foundation/domain/updates.ts';
import { SvcError } from '../../foundation/errors.ts';
import { lazy } from '../../foundation/lazy.ts';
import type { Log } from '../../foundation/log.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import type { Installer } from './installer.ts';
import { isUpdate, type ReleaseSource } from './release-source.ts';
import type { Releases } from './releases.ts';
import type { Attempt, Release, Supervisor, UpdateStatus } from './types.ts';

/** Burst of registry lookups. */
const LOOKUP_BURST = 20;
/** Sustained rate of registry lookups, per second: one in ten seconds. */
const LOOKUPS_PER_S = 0.1;

export interface UpdaterOptions {
  readonly currentVersion: string;
  /** Why updates are disabled, for example in a checkout; empty if they are enabled. */
  readonly disabled: string;
}

export interface UpdaterDependencies extends NodeParts {
  readonly source: Pick<ReleaseSource, 'latest'>;
  readonly installer: Pick<Installer, 'install'>;
  readonly releases: Releases;
  /** Null if no supervisor can switch to the new version. */
  readonly supervisor: Supervisor | null;
  readonly store: UpdateStore;
}

function messageOf(error: unknown): string {
  return error instanceof SvcError ? error.message : 'The update failed. See the log of svcd.';
}

export class Updater {
  readonly #options: UpdaterOptions;
  readonly #deps: UpdaterDependencies;
  readonly #log: Log;
  readonly #journal: UpdateJournal;
  readonly #lookups: RateLimiter;
  readonly #stopped = new AbortController();
  #looking: Promise<Release | null> | null = null;
  #applying: Promise<void> | null = null;

  constructor(options: UpdaterOptions, dependencies: UpdaterDependencies) {
    const { clock, store, log } = dependencies;
    this.#options = options;
    this.#deps = dependencies;
    this.#log = log.child('update');
    this.#journal = new UpdateJournal(store);
    this.#lookups = new RateLimiter({ perSecond: LOOKUPS_PER_S, burst: LOOKUP_BURST, maxKeys: 1 }, { clock });
  }

  /** Completes or fails what an earlier process left unfinished. */
  async start(): Promise<void> {
    this.#deps.releases.unstage();
    const begun = this.#started();
    if (begun === null || this.#deps.releases.read().trial?.to === begun.version) return;
    this.#fail(begun.version, 'svcd stopped while it was preparing the update.');
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.allSettled([this.#looking, this.#applying]);
  }

  /** Why updates are disabled; empty if they are enabled. */
  get disabled(): string {
    return this.#options.disabled;
  }

  status(): UpdateStatus {
    const { currentVersion, disabled } = this.#options;
    const { checkedAt, latest } = this.#journal.get();
    return {
      currentVersion,
      latestVersion: latest,
      updateAvailable: latest !== null && isUpdate(latest, currentVersion),
      lastCheckAt: checkedAt,
      managed: this.#deps.supervisor !== null && disabled === '',
      ...this.#state(),
    };
  }

  /**
   * Checks the registry for a newer release. The status then holds the result, even after a failure.
   * @throws SvcError `rate_limited`
   */
  async check(): Promise<void> {
    if (this.#options.disabled === '') await this.#lookUp().catch(() => {});
  }

  /**
   * Checks for a newer release and installs it if svcd runs as a system service. The work continues after this returns;
   * the status reports the result.
   * @throws SvcError `rate_limited`
   */
  apply(): void {
    if (this.#options.disabled !== '' || this.#applying !== null || this.#started() !== null) return;
    this.#applying = this.#apply(this.#lookUp()).finally(() => {
      this.#applying = null;
    });
  }

  async #apply(looking: Promise<Release | null>): Promise<void> {
    const release = await looking.catch(() => null);
    const { supervisor, installer, clock } = this.#deps;
    if (release === null || supervisor === null) return;
    const { version } = release;
    try {
      this.#journal.set({ begun: { version, at: clock.now() } });
      this.#log.info({ version }, 'installing a newer release');
      await installer.install(release, this.#stopped.signal);
      supervisor.switchTo(version);
    } catch (error) {
      this.#log.warn({ version, err: error }, 'the update failed');
      this.#fail(version, messageOf(error));
    }
  }

  /** Concurrent callers share one lookup. */
  #lookUp(): Promise<Release | null> {
    if (this.#looking !== null) return this.#looking;
    if (!this.#lookups.take('')) {
      const retry_after_s = Math.ceil(this.#lookups.retryAfterMs('') / 1000);
      throw new SvcError('rate_limited', { details: { retry_after_s } });
    }
    this.#looking = this.#ask().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #ask(): Promise<Release | null> {
    const { source, clock } = this.#deps;
    try {
      const { version, release } = await source.latest(this.#options.currentVersion, this.#stopped.signal);
      this.#journal.set({ checkedAt: clock.now(), latest: version, checkError: '' });
      return release;
    } catch (error) {
      if (!this.#stopped.signal.aborted) {
        this.#log.warn({ err: error }, 'cannot check the registry for a newer release');
        this.#journal.set({ checkedAt: clock.now(), latest: null, checkError: messageOf(error) });
      }
      throw error;
    }
  }

  /** No caller waits for this. If the failure cannot be stored, it is logged. */
  #fail(version: string, error: string): void {
    try {
      this.#journal.set({ begun: null, failed: { version, error, at: this.#deps.clock.now() } });
    } catch (err) {
      this.#log.error({ version, error, err }, 'cannot store the result of the update');
    }
  }

  /** The started update without a result. After a switch, the supervisor reports the result. */
  #started(): { readonly version: string; readonly at: number } | null {
    const { begun } = this.#journal.get();
    const { last } = this.#deps.releases.read();
    return begun === null || (last?.version === begun.version && last.at >= begun.at) ? null : begun;
  }

  /** The running step, or the result of the last update. A failed check does not change it. */
  get updateState(): UpdateState {
    const newest = this.#newest();
    const { state } = this.#state();
    if (state !== 'failed' || newest === null) return state === 'failed' ? 'idle' : state;
    // A failed update no longer matters if svcd was updated in another way.
    return isUpdate(newest.version, this.#options.currentVersion) ? newest.outcome : 'idle';
  }

  /** The last attempted update. */
  #newest(): Attempt | null {
    const { last } = this.#deps.releases.read();
    const { failed } = this.#journal.get();
    return failed !== null && (last === null || failed.at > last.at) ? { ...failed, outcome: 'failed' } : last;
  }

  #state(): Pick<UpdateStatus, 'state' | 'lastError'> {
    const { checkedAt, checkError } = this.#journal.get();
    if (this.#deps.releases.read().trial !== null || this.#started() !== null)
      return { state: 'applying', lastError: '' };
    if (this.#looking !== null) return { state: 'checking', lastError: '' };
    const newest = this.#newest();
    if (checkError !== '' && (newest === null || (checkedAt ?? 0) > newest.at))
      return { state: 'failed', lastError: checkError };
    return newest === null ? { state: 'idle', lastError: '' } : { state: newest.outcome, lastError: newest.error };
  }
}

// State of the updater that survives restarts: the last check, and the last attempt that failed before a switch.

const KEY = 'update';

const Shape = Type.Object({
  /** Time of the last check in Unix milliseconds; null before the first. */
  checkedAt: Type.Union([Type.Number(), Type.Null()]),
  /** The latest version according to the registry; null if not known. */
  latest: Type.Union([Type.String(), Type.Null()]),
  /** Why the last check failed; empty if it succeeded. */
  checkError: Type.String(),
  /** A started update. Its result is in `failed` or comes from the supervisor. */
  begun: Type.Union([Type.Object({ version: Type.String(), at: Type.Number() }), Type.Null()]),
  /** An update that failed before the switch. */
  failed: Type.Union([Type.Object({ version: Type.String(), error: Type.String(), at: Type.Number() }), Type.Null()]),
});
type JournalState = Static<typeof Shape>;

const EMPTY: JournalState = { checkedAt: null, latest: null, checkError: '', begun: null, failed: null };
const check = lazy(() => Compile(Shape));

/** Storage of the state. */
interface UpdateStore {
  get(key: string): unknown;
  set(key: string, value: JournalState): void;
}

export class UpdateJournal {
  readonly #store: UpdateStore;
  /** Cached, because the status is read every second. */
  #state: JournalState | null = null;

  constructor(store: UpdateStore) {
    this.#store = store;
  }

  get(): JournalState {
    this.#state ??= this.#read();
    return this.#state;
  }

  #read(): JournalState {
    const stored = this.#store.get(KEY);
    // Compiling the schema would take longer than the rest of this function.
    if (stored === null || stored === undefined) return EMPTY;
    return check().Check(stored) ? stored : EMPTY;
  }

  /** Changes some fields. */
  set(changes: Partial<JournalState>): void {
    const state = { ...this.get(), ...changes };
    this.#store.set(KEY, state);
    this.#state = state;
  }
}
