/**
 * The process that the service manager starts. It runs the daemon, and replaces it with a newer release on request. The
 * new release is on trial; if it fails, the previous release returns. Each step is recorded before it is executed, so
 * that a crash or power failure at any moment leaves a working state.
 */

import { isUpdate } from '../../capabilities/update/release-source.ts';
import type { Releases } from '../../capabilities/update/releases.ts';
import type { Clock } from '../../foundation/clock.ts';
import { readDaemonInfo } from '../../foundation/data-dir/daemon-info.ts';
import { detach } from '../../foundation/detached.ts';
import { type ChildOptions, DaemonChild } from './child.ts';
import type { DatabaseSnapshot } from './snapshot.ts';

/** Time limit for a release on trial to become ready, in milliseconds. It may have to upgrade a database. */
const START_LIMIT_MS = 90_000;
/** How long the release must then respond, in milliseconds. */
const TRIAL_MS = 10_000;
/** Interval of health checks, in milliseconds. */
const PROBE_EVERY_MS = 1_000;
/** Consecutive health checks that may fail. */
const MAX_FAILED_PROBES = 3;

/** A version of the daemon and the path of its program. */
export interface Installed {
  readonly version: string;
  readonly program: string;
}

export interface SupervisorOptions extends Omit<ChildOptions, 'program'> {
  readonly dataDir: string;
  /** The version with which the service was installed. */
  readonly installed: Installed;
  /** Only run the installed version: a single file cannot run releases of the package. */
  readonly alone?: boolean;
  readonly startLimitMs?: number;
  readonly probationMs?: number;
  readonly probeEveryMs?: number;
}

export interface SupervisorDependencies {
  readonly releases: Releases;
  readonly snapshot: DatabaseSnapshot;
  readonly clock: Clock;
  /** Writes a line to the log of the service. */
  readonly say: (line: string) => void;
}

export class ServiceSupervisor {
  readonly #options: SupervisorOptions;
  readonly #deps: SupervisorDependencies;
  #child: DaemonChild | null = null;
  #stopping = false;

  constructor(options: SupervisorOptions, dependencies: SupervisorDependencies) {
    this.#options = options;
    this.#deps = dependencies;
  }

  /**
   * Runs the daemon until it exits. The service manager restarts it.
   * @returns the exit code of the daemon
   */
  async run(): Promise<number> {
    const { trial } = this.#deps.releases.read();
    if (trial !== null) this.#rollBack(trial.to, 'svcd stopped before the trial of the release was complete.');
    let running = this.#newest();
    let child = this.#start(running);
    for (;;) {
      const wanted = await Promise.race([child.asked, child.ended]);
      if (typeof wanted === 'number') return wanted;
      if (wanted === null) {
        await child.stop();
        if (this.#stopping) return 0;
        child = this.#start(running);
        continue;
      }
      const next = this.#release(wanted, running.version);
      if (next === null) {
        this.#note(wanted, 'rolled_back', 'The release is missing, or it is not newer.');
        return child.ended;
      }
      await child.stop();
      if (this.#stopping) return 0;
      const kept = await this.#try(next, running);
      if (kept === null) return 0;
      ({ child, running } = kept);
    }
  }

  /** Stops the daemon, which ends `run`. */
  stop(): void {
    this.#stopping = true;
    detach(this.#child?.stop());
  }

  /** Runs a release on trial. Returns null if `stop` was called meanwhile. */
  async #try(next: Installed, before: Installed): Promise<{ child: DaemonChild; running: Installed } | null> {
    const { releases, snapshot, say } = this.#deps;
    say(`trying ${next.version} in place of ${before.version}`);
    const problem = await this.#runTrial(next);
    const child = this.#child;
    if (problem === null && child !== null) {
      const { current } = releases.read();
      releases.write({
        current: next.version,
        previous: current,
        trial: null,
        last: this.#ending(next.version, 'ok', ''),
      });
      snapshot.remove();
      releases.keepOnly([next.version, current]);
      say(`${next.version} runs`);
      return { child, running: next };
    }
    await child?.stop();
    say(`rolling back ${next.version}: ${problem}`);
    this.#rollBack(next.version, problem ?? '');
    return this.#stopping ? null : { child: this.#start(before), running: before };
  }

  /** Why the trial of a release failed; null if it succeeded and the release is running. */
  async #runTrial(next: Installed): Promise<string | null> {
    const { releases, snapshot, clock } = this.#deps;
    const { startLimitMs = START_LIMIT_MS, probationMs = TRIAL_MS, probeEveryMs = PROBE_EVERY_MS } = this.#options;
    this.#child = null;
    try {
      snapshot.take();
      releases.write({ ...releases.read(), trial: { to: next.version } });
    } catch (error) {
      return `The databases could not be copied before the switch (${error instanceof Error ? error.message : 'unknown'}).`;
    }
    const child = this.#start(next);
    const address = await child.ready(startLimitMs);
    if (address === null) return child.isRunning ? 'It was not ready in time.' : 'It stopped during its start.';
    if (readDaemonInfo(this.#options.dataDir)?.version !== next.version) return 'It reports a different version.';
    let unanswered = 0;
    for (let waited = 0; waited < probationMs; waited += probeEveryMs) {
      const { promise: pause, resolve } = Promise.withResolvers<void>();
      const timer = clock.after(probeEveryMs, resolve);
      await Promise.race([pause, child.ended]);
      timer.cancel();
      if (!child.isRunning) return 'It stopped during its trial.';
      unanswered = (await child.answers(address)) ? 0 : unanswered + 1;
      if (unanswered >= MAX_FAILED_PROBES) return 'Its API does not respond.';
    }
    return child.isRunning && unanswered === 0 ? null : 'Its API does not respond reliably.';
  }

  #rollBack(version: string, error: string): void {
    this.#deps.snapshot.restore();
    this.#note(version, 'rolled_back', error);
    this.#deps.snapshot.remove();
  }

  #note(version: string, outcome: 'ok' | 'rolled_back', error: string): void {
    const { releases } = this.#deps;
    releases.write({ ...releases.read(), trial: null, last: this.#ending(version, outcome, error) });
  }

  #ending(version: string, outcome: 'ok' | 'rolled_back', error: string) {
    return { version, outcome, error, at: this.#deps.clock.now() };
  }

  /** The newest version to run. This is the installed version if the owner updated it manually. */
  #newest(): Installed {
    const { installed } = this.#options;
    const { current } = this.#deps.releases.read();
    return (current === null ? null : this.#release(current, installed.version)) ?? installed;
  }

  /** A stored release that is newer than `than`, or null. */
  #release(version: string, than: string): Installed | null {
    const program = this.#options.alone === true ? null : this.#deps.releases.programOf(version);
    return program === null || !isUpdate(version, than) ? null : { version, program };
  }

  #start({ program }: Installed): DaemonChild {
    const { node, args, environment } = this.#options;
    const child = new DaemonChild({ node, program, args, environment }, this.#deps.clock);
    this.#child = child;
    if (this.#stopping) detach(child.stop());
    return child;
  }
}
