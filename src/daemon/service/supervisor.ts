/**
 * The process that the service manager starts. It runs the daemon, and replaces it with a newer release on request. The
 * new release is on trial; if it fails, the previous release returns. Each step is recorded before it is executed, so
 * that a crash or power failure at any moment leaves a working state.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { isUpdate } from '../../capabilities/update/release-source.ts';
import { Releases } from '../../capabilities/update/releases.ts';
import { type Clock, systemClock } from '../../foundation/clock.ts';
import { readDaemonInfo } from '../../foundation/data-dir/daemon-info.ts';
import { DataDir } from '../../foundation/data-dir/data-dir.ts';
import { acquireLock } from '../../foundation/data-dir/lock.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import { isSingleFile } from '../../foundation/package-file.ts';
import { VERSION } from '../../foundation/version.ts';
import { nodeProgram } from '../package.ts';
import { onStopSignal } from '../signals.ts';
import { isReady, isRestart, isSwitch, MANAGED_VARIABLE, STOP_MESSAGE } from './managed.ts';
import { DatabaseSnapshot } from './snapshot.ts';

// The program that the service manager starts: the supervisor with its dependencies.

/**
 * Runs the daemon of a data directory until it exits or this process receives a stop signal.
 * @param program path of the installed `svcd`
 * @param args arguments of the daemon
 * @returns the exit code
 * @throws SvcError `already_running`, `not_writable`
 */
export async function superviseDaemon(dataDir: string, program: string, args: readonly string[]): Promise<number> {
  // Creates the directory with owner-only access. The daemon locks it while it runs.
  DataDir.open({ path: dataDir, version: VERSION }, { clock: systemClock }).close();
  const releases = new Releases(dataDir);
  releases.open();
  const lock = acquireLock(releases.directory);
  if (lock === null)
    throw new SvcError('already_running', { message: `Another service uses the data directory ${dataDir}.` });
  const supervisor = new ServiceSupervisor(
    {
      dataDir,
      installed: { version: VERSION, program },
      alone: isSingleFile,
      node: nodeProgram(),
      args,
      environment: process.env,
    },
    {
      releases,
      snapshot: new DatabaseSnapshot(dataDir, join(releases.directory, '.before')),
      clock: systemClock,
      say: (line) => void process.stderr.write(`svcd service: ${line}\n`),
    },
  );
  onStopSignal(process, () => supervisor.stop());
  try {
    return await supervisor.run();
  } finally {
    lock.release();
  }
}

// The daemon as a child process of the supervisor.

/** Time limit for stopping before the daemon is killed, in milliseconds. The daemon's own limit is shorter. */
const STOP_LIMIT_MS = 20_000;
/** Timeout of a health check, in milliseconds. */
const PROBE_TIMEOUT_MS = 5_000;

interface ChildOptions {
  /** The Node executable. */
  readonly node: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
}

class DaemonChild {
  /** Resolves with the exit code; 1 if a signal ended it. */
  readonly ended: Promise<number>;
  /** Resolves with the version that the daemon requests; null for a restart of the same version. */
  readonly asked: Promise<string | null>;
  readonly #process: ChildProcess;
  readonly #clock: Clock;
  readonly #ready: Promise<string>;
  #isOver = false;

  constructor({ node, program, args, environment }: ChildOptions, clock: Clock) {
    const child = spawn(node, [program, ...args], {
      env: { ...environment, [MANAGED_VARIABLE]: '1' },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      windowsHide: true,
    });
    this.#process = child;
    this.#clock = clock;
    this.ended = new Promise((resolve) => {
      const end = (code: number | null): void => {
        this.#isOver = true;
        resolve(code ?? 1);
      };
      child.on('error', () => end(1));
      child.once('exit', end);
    });
    const [asked, ready] = [Promise.withResolvers<string | null>(), Promise.withResolvers<string>()];
    child.on('message', (message: unknown) => {
      if (isSwitch(message)) asked.resolve(message.version);
      if (isRestart(message)) asked.resolve(null);
      if (isReady(message)) ready.resolve(message.api_addr);
    });
    this.asked = asked.promise;
    this.#ready = ready.promise;
  }

  /** False after it has exited. */
  get isRunning(): boolean {
    return !this.#isOver;
  }

  /** The address of its API when it is ready; null if it exits before or exceeds `limitMs`. */
  ready(limitMs: number): Promise<string | null> {
    const { promise: late, resolve } = Promise.withResolvers<null>();
    const timer = this.#clock.after(limitMs, () => resolve(null));
    return Promise.race([this.#ready, this.ended.then(() => null), late]).finally(() => timer.cancel());
  }

  /** True if the API responds, even with an authorization error. */
  async answers(address: string): Promise<boolean> {
    try {
      const status = await statusOf(`http://${address}/health`);
      return this.isRunning && (status === 200 || status === 401);
    } catch {
      return false;
    }
  }

  /** Stops it cleanly, or kills it after the time limit. */
  async stop(): Promise<number> {
    const timer = this.#clock.after(STOP_LIMIT_MS, () => this.#process.kill('SIGKILL'));
    if (this.isRunning) {
      // Windows has no signals; `kill` would terminate it immediately.
      if (process.platform === 'win32') this.#process.send(STOP_MESSAGE, () => {});
      else this.#process.kill('SIGTERM');
    }
    const code = await this.ended;
    timer.cancel();
    return code;
  }
}

/** Unlike the global agent, this agent ignores NODE_USE_ENV_PROXY, because the daemon is on this machine. */
const direct = new Agent();

function statusOf(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent: direct, signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    }).on('error', reject);
  });
}

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
