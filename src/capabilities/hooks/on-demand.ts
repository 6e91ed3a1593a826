/**
 * Services on demand: programs that start with a connection and stop when no connection has been open for their idle
 * time. Each has a port on 127.0.0.1 at which svcd listens in its place, so calls and tunnels need to know nothing about
 * it.
 */
import { rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Address } from '../../foundation/address.ts';
import { type Backoff, backoff } from '../../foundation/backoff.ts';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { KeyedMutex } from '../../foundation/concurrency.ts';
import { detach } from '../../foundation/detached.ts';
import { MAX_ON_DEMAND } from '../../foundation/domain/hooks.ts';
import type { ProgramEnvironment } from '../../foundation/environment.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { connectToOwn, type FindListeners, ForeignListener, freePort } from '../../foundation/own-listener.ts';
import type { OnDemandRow, OnDemandStore } from '../../foundation/store/on-demand.ts';
import { listening } from '../../foundation/stream-listeners.ts';
import { GRACE_MS, hasBegun, type ProgramResult, ProgramRun, resultOf } from './program-run.ts';
import { noProcess, startProblem } from './start-problem.ts';
import type { RunningProgram } from './windows-run.ts';

const HOST = '127.0.0.1';
/** Milliseconds from the start of a program until it must accept connections, and between two checks. */
export const LISTEN_LIMIT_MS = 30_000;
const CHECK_MS = 20;
/**
 * Milliseconds after which a connection uses the program without a byte from its client: in some protocols the server
 * speaks first. Checks that only connect close their connection sooner, and start nothing.
 */
const SILENT_MS = 250;
/** Wait before the next start after failed starts. */
const START_RETRY: Backoff = { firstMs: 1000, maxMs: 60_000 };
/** Connections of one service. */
const MAX_SERVICE_CONNECTIONS = 1000;

export interface OnDemandDependencies extends NodeParts {
  readonly store: OnDemandStore;
  /** Folder for the files of running programs. */
  readonly directory: string;
  /** Variables that every program gets. */
  readonly environment: () => Readonly<Record<string, string>>;
  /** The last start failed, or the program has started after a failure. */
  readonly onChange: (aid: Aid) => void;
  /** Finds the listeners on a port of this machine. Default: those that the system reports. */
  readonly findListeners?: FindListeners;
}

export interface OnDemandState {
  readonly row: OnDemandRow;
  readonly isRunning: boolean;
  readonly starts: number;
  /** Milliseconds from the last start until the program accepted connections; null if it has not started yet. */
  readonly startMs: number | null;
  /** Why the last start failed; null if there was none, or if the program has started since. */
  readonly failure: StartFailure | null;
}

/** A program that did not accept connections. */
export interface StartFailure {
  readonly at: number;
  readonly problem: string;
  /** The end of its output. */
  readonly output: string;
}

export class OnDemandServices implements Component {
  readonly #deps: OnDemandDependencies;
  readonly #services = new Map<Aid, OnDemandService>();
  readonly #settings = new KeyedMutex<''>();
  #isStopped = false;

  constructor(dependencies: OnDemandDependencies) {
    this.#deps = { ...dependencies, log: dependencies.log.child('on-demand') };
  }

  async start(): Promise<void> {
    for (const row of this.#deps.store.list()) {
      try {
        await this.#open(row);
      } catch (error) {
        this.#deps.log.error({ aid: row.aid, port: row.port, error }, 'a service on demand cannot listen on its port');
      }
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([...this.#services.values()].map((service) => service.close()));
  }

  /**
   * Sets the program of an agent and returns its state. The caller must have proved that it is the owner.
   * @param isTried starts the program now and waits until it accepts connections, or fails
   * @throws SvcError `quota_exceeded`
   */
  async set(row: Omit<OnDemandRow, 'port'>, isTried = false): Promise<OnDemandState> {
    // In sequence, so that concurrent requests cannot exceed the limit.
    const service = await this.#settings.run('', () => this.#replace(row));
    if (isTried) await service.try();
    return service.state();
  }

  async #replace(row: Omit<OnDemandRow, 'port'>): Promise<OnDemandService> {
    const { store } = this.#deps;
    const before = store.list().find(({ aid }) => aid === row.aid);
    if (before === undefined && store.list().length >= MAX_ON_DEMAND)
      throw new SvcError('quota_exceeded', { message: `At most ${MAX_ON_DEMAND} services can start on demand.` });
    await this.#services.get(row.aid)?.close();
    const service = await this.#open({ ...row, port: before?.port ?? 0 });
    store.put(service.row);
    return service;
  }

  list(): OnDemandState[] {
    return [...this.#services.values()].map((service) => service.state());
  }

  /** Why the program behind an address did not start. Null if it did, or if svcd does not listen there. */
  failureAt({ host, port }: Address): string | null {
    if (host !== HOST) return null;
    const found = this.list().find(({ row }) => row.port === port);
    return found?.failure?.problem ?? null;
  }

  /** Stops the program of an agent permanently. @throws SvcError `not_found` */
  async remove(aid: Aid): Promise<void> {
    const wasStored = this.#deps.store.delete(aid);
    await this.forget(aid);
    if (!wasStored) throw new SvcError('not_found', { message: 'This agent has no service on demand.' });
  }

  /** Handles the deletion of an agent. */
  async forget(aid: Aid): Promise<void> {
    const service = this.#services.get(aid);
    this.#services.delete(aid);
    await service?.close();
  }

  async #open(row: OnDemandRow): Promise<OnDemandService> {
    const service = await OnDemandService.listen(row, this.#deps);
    if (this.#isStopped) await service.close();
    this.#services.set(row.aid, service);
    return service;
  }
}

class OnDemandService {
  readonly row: OnDemandRow;
  readonly #deps: OnDemandDependencies;
  readonly #server: Server;
  readonly #dir: string;
  readonly #sockets = new Set<Socket>();
  /** Open connections that use the program. It is idle without them. */
  readonly #users = new Set<Socket>();
  /** The port of the program that connections use, once it accepts them. */
  #waking: Promise<number> | null = null;
  /** The program that runs. It may be about to stop. */
  #run: RunningProgram | null = null;
  /** The program accepts connections, and is not about to stop. */
  #isAwake = false;
  #idle: Timer | null = null;
  #starts = 0;
  #failures = 0;
  #failure: StartFailure | null = null;
  /** Runs until the program may start again after a failed start. */
  #retry: Timer | null = null;
  #startMs: number | null = null;
  #isClosed = false;

  private constructor(row: OnDemandRow, server: Server, dependencies: OnDemandDependencies) {
    this.row = row;
    this.#server = server;
    this.#deps = dependencies;
    this.#dir = join(dependencies.directory, row.aid);
    server.on('connection', (socket) => this.#accept(socket));
  }

  /** @throws the error of the system if the port is in use */
  static async listen(row: OnDemandRow, dependencies: OnDemandDependencies): Promise<OnDemandService> {
    await endEarlier(join(dependencies.directory, row.aid), dependencies.clock);
    const server = createServer({ allowHalfOpen: true });
    server.maxConnections = MAX_SERVICE_CONNECTIONS;
    server.listen(row.port, HOST);
    await listening(server);
    return new OnDemandService({ ...row, port: portOf(server) }, server, dependencies);
  }

  state(): OnDemandState {
    const { row } = this;
    const isRunning = this.#run !== null;
    return { row, isRunning, starts: this.#starts, startMs: this.#startMs, failure: this.#failure };
  }

  /** Starts the program unless it runs. The state tells if it failed. */
  async try(): Promise<void> {
    await this.#awake().catch(() => {});
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#retry?.cancel();
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await this.#waking?.catch(() => {});
    await this.#sleep();
    await rm(this.#dir, { recursive: true, force: true });
  }

  /** A check that only connects does not start the program, and does not keep it running. */
  #accept(socket: Socket): void {
    const look = (): void => {
      silence.cancel();
      if (socket.readableLength > 0) this.#use(socket);
      else socket.destroy();
    };
    const silence = this.#deps.clock.after(SILENT_MS, () => {
      socket.off('readable', look);
      this.#use(socket);
    });
    this.#sockets.add(socket);
    socket
      .on('error', () => socket.destroy())
      .once('close', () => {
        silence.cancel();
        this.#sockets.delete(socket);
        if (this.#users.delete(socket)) this.#planSleep();
      })
      .once('readable', look);
  }

  #use(socket: Socket): void {
    this.#users.add(socket);
    this.#idle?.cancel();
    detach(this.#carry(socket));
  }

  /** Connects a client to the program. Without a program the connection is reset. */
  async #carry(client: Socket): Promise<void> {
    let server: Socket | null;
    try {
      server = await this.#connect(await this.#awake());
    } catch (error) {
      if (error instanceof ForeignListener) this.#deps.log.warn({ aid: this.row.aid, error }, 'a port was taken');
      server = null;
    }
    if (server === null || client.destroyed) {
      client.resetAndDestroy();
      server?.destroy();
      return;
    }
    server.on('error', () => client.resetAndDestroy()).once('close', () => client.destroy());
    client.once('close', () => server.destroy());
    client.pipe(server);
    server.pipe(client);
  }

  /** @throws ForeignListener */
  #connect(port: number): Promise<Socket | null> {
    const { findListeners: find } = this.#deps;
    return connectToOwn(port, find === undefined ? {} : { find });
  }

  /** True if the program accepts connections. @throws ForeignListener */
  async #accepts(port: number): Promise<boolean> {
    const socket = await this.#connect(port);
    socket?.destroy();
    return socket !== null;
  }

  /** Starts the program unless it runs. */
  #awake(): Promise<number> {
    if (this.#waking !== null) return this.#waking;
    if (this.#isClosed || this.#retry !== null) return Promise.reject(new SvcError('inbound_unreachable'));
    const waking = this.#wake();
    this.#waking = waking;
    waking.catch((error: unknown) => {
      if (this.#waking === waking) this.#waking = null;
      this.#failed(error);
    });
    return waking;
  }

  #failed(error: unknown): void {
    if (this.#isClosed) return;
    const { clock, log } = this.#deps;
    const { problem, output } = error instanceof NotListening ? error : { problem: startProblem(error), output: '' };
    log.warn({ aid: this.row.aid, problem }, 'a service on demand did not start');
    this.#failure = { at: clock.now(), problem, output };
    this.#deps.onChange(this.row.aid);
    this.#retry = clock.after(backoff(START_RETRY, ++this.#failures), () => {
      this.#retry = null;
    });
  }

  async #wake(): Promise<number> {
    const { clock, environment } = this.#deps;
    const { command, folder, aid, shell } = this.row;
    // The last program may still be stopping.
    await this.#run?.ended;
    const startedAt = clock.monotonic();
    const port = await freePort();
    const own: ProgramEnvironment = { SVC_AID: aid, SVC_PORT: String(this.row.port) };
    const run = await ProgramRun.start(this.#dir, clock, {
      command,
      shell,
      folder,
      environment: { ...environment(), ...own, PORT: String(port), HOST },
      item: '',
    });
    this.#run = run;
    this.#starts++;
    let hasEnded = false;
    const waking = this.#waking;
    detach(
      run.ended.then(() => {
        hasEnded = true;
        this.#run = null;
        if (this.#waking !== waking) return;
        this.#waking = null;
        this.#isAwake = false;
        this.#idle?.cancel();
      }),
    );
    let isLate = false;
    const limit = clock.after(LISTEN_LIMIT_MS, () => {
      isLate = true;
    });
    for (;;) {
      const accepts = await this.#accepts(port).catch((error: unknown) => {
        if (error instanceof ForeignListener) return error;
        throw error;
      });
      if (accepts === true) break;
      if (accepts !== false || hasEnded || isLate || this.#isClosed) {
        limit.cancel();
        // A program that svcd stops may end before it has begun.
        const hasFailed = hasEnded;
        await this.#sleep();
        const result = await resultOf(this.#dir);
        if (hasFailed && result.exitCode === null && !hasBegun(this.#dir)) throw noProcess();
        throw new NotListening(result, accepts === false ? isLate : 'foreign');
      }
      await new Promise<void>((resolve) => {
        clock.after(CHECK_MS, resolve);
      });
    }
    limit.cancel();
    this.#failures = 0;
    if (this.#failure !== null) {
      this.#failure = null;
      this.#deps.onChange(aid);
    }
    this.#startMs = clock.monotonic() - startedAt;
    this.#isAwake = true;
    this.#planSleep();
    return port;
  }

  /** Stops the program after its idle time, unless a connection uses it. */
  #planSleep(): void {
    const { clock } = this.#deps;
    this.#idle?.cancel();
    if (this.#users.size > 0 || !this.#isAwake) return;
    const sleep = (): void => {
      // A connection that is still silent may be about to use it.
      if (this.#sockets.size > 0) this.#idle = clock.after(SILENT_MS, sleep);
      else detach(this.#sleep());
    };
    this.#idle = clock.after(this.row.idleMs, sleep);
  }

  /** Stops the program: SIGTERM, then SIGKILL. */
  async #sleep(): Promise<void> {
    const run = this.#run;
    this.#idle?.cancel();
    if (run === null) return;
    this.#waking = null;
    this.#isAwake = false;
    run.signal('TERM');
    const timer = this.#deps.clock.after(GRACE_MS, () => run.signal('KILL'));
    await run.ended;
    timer.cancel();
  }
}

/** A program exited or did not listen in time. */
class NotListening extends Error {
  readonly problem: string;
  readonly output: string;

  constructor({ exitCode, output }: ProgramResult, isLate: boolean | 'foreign') {
    const problem =
      isLate === 'foreign'
        ? `Another user of this machine listens on ${HOST}, at the port in PORT. The program was stopped; it starts with another port.`
        : isLate
          ? `The program did not listen on ${HOST}, at the port in PORT, within ${LISTEN_LIMIT_MS / 1000} s.`
          : exitCode === null
            ? 'The program was killed before it listened.'
            : `The program exited with code ${exitCode} before it listened on ${HOST}, at the port in PORT.`;
    super(problem);
    this.problem = problem;
    this.output = output;
  }
}

/** Ends the program of an earlier daemon. */
async function endEarlier(dir: string, clock: Clock): Promise<void> {
  const earlier = ProgramRun.takeOver(dir, clock);
  earlier?.signal('KILL');
  await earlier?.ended;
  await rm(dir, { recursive: true, force: true });
}

function portOf(server: Server): number {
  const address = server.address();
  return address !== null && typeof address === 'object' ? address.port : 0;
}
