/**
 * What the service manager starts: it runs the daemon, and puts a newer release in its place when
 * the daemon asks for it. The new one runs on probation; where it does not prove itself, the one
 * before comes back. What is written down comes before what is done, so that an end at any moment,
 * by a power cut too, leaves something that starts.
 */

import { isUpdate } from '../../capabilities/update/release-source.ts';
import type { Releases } from '../../capabilities/update/releases.ts';
import type { Clock } from '../../foundation/clock.ts';
import { readDaemonInfo } from '../../foundation/data-dir/daemon-info.ts';
import { detach } from '../../foundation/detached.ts';
import { type ChildOptions, DaemonChild } from './child.ts';
import type { DatabaseSnapshot } from './snapshot.ts';

/** A release on probation has to serve this long after its start: it may have to bring a database up to date. */
const START_LIMIT_MS = 90_000;
/** And then has to answer for this long. */
const PROBATION_MS = 10_000;
/** It is asked this often. */
const PROBE_EVERY_MS = 1_000;
/** So many questions in a row may go unanswered. */
const MAX_UNANSWERED = 3;

/** A version of the daemon and where its program is. */
export interface Installed {
  readonly version: string;
  readonly program: string;
}

export interface SupervisorOptions extends Omit<ChildOptions, 'program'> {
  readonly dataDir: string;
  /** The version that the service was installed with. */
  readonly installed: Installed;
  /** Runs nothing but what was installed: a single file cannot run releases of the package. */
  readonly alone?: boolean;
  readonly startLimitMs?: number;
  readonly probationMs?: number;
  readonly probeEveryMs?: number;
}

export interface SupervisorDependencies {
  readonly releases: Releases;
  readonly snapshot: DatabaseSnapshot;
  readonly clock: Clock;
  /** Says a line to whoever reads the log of the service. */
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

  /** Runs the daemon until it ends. @returns its exit code: who restarts it is the service manager */
  async run(): Promise<number> {
    const { trial } = this.#deps.releases.read();
    if (trial !== null) this.#goBack(trial.to, 'svcd ended before the release had proved itself.');
    let running = this.#chosen();
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
        this.#note(wanted, 'rolled_back', 'The release is not there, or is not newer.');
        return child.ended;
      }
      await child.stop();
      if (this.#stopping) return 0;
      const kept = await this.#try(next, running);
      if (kept === null) return 0;
      ({ child, running } = kept);
    }
  }

  /** Stops the daemon, and with it `run`. */
  stop(): void {
    this.#stopping = true;
    detach(this.#child?.stop());
  }

  /** Runs a release on probation. Null where svcd was told to stop meanwhile. */
  async #try(next: Installed, before: Installed): Promise<{ child: DaemonChild; running: Installed } | null> {
    const { releases, snapshot, say } = this.#deps;
    say(`trying ${next.version} in place of ${before.version}`);
    const problem = await this.#probation(next);
    const child = this.#child;
    if (problem === null && child !== null) {
      const { current } = releases.read();
      releases.write({
        current: next.version,
        previous: current,
        trial: null,
        last: this.#ending(next.version, 'ok', ''),
      });
      snapshot.drop();
      releases.keepOnly([next.version, current]);
      say(`${next.version} runs`);
      return { child, running: next };
    }
    await child?.stop();
    say(`${next.version} is taken back: ${problem}`);
    this.#goBack(next.version, problem ?? '');
    return this.#stopping ? null : { child: this.#start(before), running: before };
  }

  /** Why a release does not prove itself; null where it does. It runs then. */
  async #probation(next: Installed): Promise<string | null> {
    const { releases, snapshot, clock } = this.#deps;
    const { startLimitMs = START_LIMIT_MS, probationMs = PROBATION_MS, probeEveryMs = PROBE_EVERY_MS } = this.#options;
    this.#child = null;
    try {
      snapshot.take();
      releases.write({ ...releases.read(), trial: { to: next.version } });
    } catch (error) {
      return `The databases could not be copied before (${error instanceof Error ? error.message : 'unknown'}).`;
    }
    const child = this.#start(next);
    const address = await child.ready(startLimitMs);
    if (address === null) return child.isRunning ? 'It did not serve in time.' : 'It ended at its start.';
    if (readDaemonInfo(this.#options.dataDir)?.version !== next.version) return 'It says that it is another version.';
    let unanswered = 0;
    for (let waited = 0; waited < probationMs; waited += probeEveryMs) {
      const { promise: pause, resolve } = Promise.withResolvers<void>();
      const timer = clock.after(probeEveryMs, resolve);
      await Promise.race([pause, child.ended]);
      timer.cancel();
      if (!child.isRunning) return 'It ended soon after its start.';
      unanswered = (await child.answers(address)) ? 0 : unanswered + 1;
      if (unanswered >= MAX_UNANSWERED) return 'Its API does not answer.';
    }
    return child.isRunning && unanswered === 0 ? null : 'Its API does not answer reliably.';
  }

  #goBack(version: string, error: string): void {
    this.#deps.snapshot.restore();
    this.#note(version, 'rolled_back', error);
    this.#deps.snapshot.drop();
  }

  #note(version: string, outcome: 'ok' | 'rolled_back', error: string): void {
    const { releases } = this.#deps;
    releases.write({ ...releases.read(), trial: null, last: this.#ending(version, outcome, error) });
  }

  #ending(version: string, outcome: 'ok' | 'rolled_back', error: string) {
    return { version, outcome, error, at: this.#deps.clock.now() };
  }

  /** The newest that is to run: the installed one where it was brought up to date by hand. */
  #chosen(): Installed {
    const { installed } = this.#options;
    const { current } = this.#deps.releases.read();
    return (current === null ? null : this.#release(current, installed.version)) ?? installed;
  }

  /** A release that is there and newer than `than`; null otherwise. */
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
