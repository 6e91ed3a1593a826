/**
 * TCP sockets between the programs of one simulated machine, such as a daemon and the service of an agent. Nothing
 * leaves the machine: other addresses refuse connections.
 */
import http from 'node:http';
import net, { type AddressInfo, type Server, type Socket, type TcpNetConnectOpts } from 'node:net';
import { Process } from './process.ts';
import { systemError } from './system-error.ts';

type Planner = (task: () => void) => unknown;

const LOOPBACK = '127.0.0.1';
const FIRST_FREE_PORT = 32_768;
/** Bytes that wait for a reader. Then writes wait. */
const WINDOW_BYTES = 64 * 1024;

function refused(port: number): Error {
  const code = 'ECONNREFUSED';
  return Object.assign(new Error(`connect ${code} ${LOOPBACK}:${port}`), { code, syscall: 'connect', port });
}

interface Ends {
  readonly localPort: number;
  readonly remotePort: number;
}

/** One end of a connection. It has no handle of the system. */
class SimulatedSocket extends net.Socket {
  readonly #plan: Planner;
  #peer: SimulatedSocket | null = null;
  #received: (Buffer | null)[] = [];
  #receivedBytes = 0;
  #wanted = false;
  #blocked: (() => void) | null = null;

  constructor(plan: Planner, allowHalfOpen: boolean) {
    super({ allowHalfOpen });
    this.#plan = plan;
  }

  join(peer: SimulatedSocket, ends: Ends): void {
    this.#peer = peer;
    // Accessors of the class ask the handle.
    const shown = { localAddress: LOOPBACK, remoteAddress: LOOPBACK, remoteFamily: 'IPv4', ...ends };
    for (const [name, value] of Object.entries(shown)) Object.defineProperty(this, name, { value });
  }

  override setTimeout(_ms: number, listener?: () => void): this {
    if (listener !== undefined) this.once('timeout', listener);
    return this;
  }

  override setNoDelay(): this {
    return this;
  }

  override setKeepAlive(): this {
    return this;
  }

  override ref(): this {
    return this;
  }

  override unref(): this {
    return this;
  }

  override resetAndDestroy(): this {
    return this.destroy(Object.assign(new Error('ECONNRESET'), { code: 'ECONNRESET' }));
  }

  override _read(): void {
    this.#wanted = true;
    this.#deliver();
  }

  #receive(chunk: Buffer | null): void {
    if (this.destroyed) return;
    this.#received.push(chunk);
    this.#receivedBytes += chunk?.length ?? 0;
    this.#deliver();
  }

  #deliver(): void {
    while (this.#wanted && this.#received.length > 0) {
      const chunk = this.#received.shift() ?? null;
      this.#receivedBytes -= chunk?.length ?? 0;
      this.#wanted = this.push(chunk);
    }
    const peer = this.#peer;
    if (peer !== null && this.#receivedBytes < WINDOW_BYTES) peer.#resume();
  }

  #resume(): void {
    const blocked = this.#blocked;
    this.#blocked = null;
    blocked?.();
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send(chunk, encoding, done);
  }

  #send(chunk: Buffer | string, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const peer = this.#peer;
    if (peer === null) {
      this.once('connect', () => this.#send(chunk, encoding, done));
      return;
    }
    const bytes = Buffer.from(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk);
    this.#plan(() => {
      peer.#plan(() => peer.#receive(bytes));
      if (peer.#receivedBytes + bytes.length < WINDOW_BYTES || peer.destroyed) done();
      else this.#blocked = done;
    });
  }

  override _writev(
    chunks: readonly { readonly chunk: Buffer | string; readonly encoding: BufferEncoding }[],
    done: (error?: Error | null) => void,
  ): void {
    const all = chunks.map(({ chunk, encoding }) => (typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk));
    this.#send(Buffer.concat(all), 'utf8', done);
  }

  override _final(done: (error?: Error | null) => void): void {
    const finish = (): void => {
      const peer = this.#peer;
      if (peer !== null) this.#plan(() => peer.#receive(null));
      done();
    };
    if (this.#peer === null && this.connecting) this.once('connect', finish);
    else finish();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const peer = this.#peer;
    this.#resume();
    if (peer !== null && !peer.destroyed)
      peer.#plan(() => {
        if (this.writableFinished && error === null) peer.#receive(null);
        else peer.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }));
        peer.#resume();
      });
    done(error);
    // `net.Socket` emits this after its handle is closed.
    this.#plan(() => this.emit('close', error !== null));
  }
}

function isHere(host: string | undefined): boolean {
  return host === undefined || host === 'localhost' || host === LOOPBACK || host === '::1';
}

/** @param plan runs a task of the running program in the next turn */
export function takeSockets(plan: Planner): void {
  let lastPort = FIRST_FREE_PORT;
  const connect = (first: TcpNetConnectOpts | number, ...rest: unknown[]): Socket => {
    const options =
      typeof first === 'number' ? { port: first, host: typeof rest[0] === 'string' ? rest[0] : LOOPBACK } : first;
    const { current } = Process;
    const hasDescriptor = Process.hasDescriptor;
    const socket = new SimulatedSocket(plan, options.allowHalfOpen ?? false);
    const done = rest.find((one): one is () => void => typeof one === 'function');
    if (done !== undefined) socket.once('connect', done);
    Reflect.set(socket, 'connecting', true);
    const lateMs = isHere(options.host) ? current?.acceptMs.get(options.port) : undefined;
    const begin = (): void => {
      if (socket.destroyed) return;
      if (!hasDescriptor) return void socket.destroy(systemError('EMFILE', 'connect'));
      const accept = isHere(options.host) ? current?.ports.get(options.port) : undefined;
      Reflect.set(socket, 'connecting', false);
      if (accept === undefined) return void socket.destroy(refused(options.port));
      const other = new SimulatedSocket(plan, true);
      const localPort = ++lastPort;
      socket.join(other, { localPort, remotePort: options.port });
      other.join(socket, { localPort: options.port, remotePort: localPort });
      accept(other);
      socket.emit('connect');
      socket.emit('ready');
    };
    if (lateMs === undefined) plan(begin);
    else current?.clock.after(lateMs, begin);
    return socket;
  };
  // The date would be that of the real machine.
  Object.defineProperty(http.OutgoingMessage.prototype, 'sendDate', { get: () => false, set: () => {} });
  Object.assign(net, { connect, createConnection: connect });
  http.Agent.prototype.createConnection = connect as typeof http.Agent.prototype.createConnection;

  const listen = function (this: Server, ...args: unknown[]): Server {
    const [first] = args;
    const named = typeof first === 'object' && first !== null && 'port' in first ? Number(first.port) : Number(first);
    const owner = Process.current;
    if (owner === undefined) throw new Error('Only simulated programs can listen.');
    const done = args.find((one): one is () => void => typeof one === 'function');
    if (done !== undefined) this.once('listening', done);
    const port = named === 0 || Number.isNaN(named) ? ++lastPort : named;
    const failure = !Process.hasDescriptor ? 'EMFILE' : owner.ports.has(port) ? 'EADDRINUSE' : null;
    if (failure !== null) {
      plan(() => this.emit('error', systemError(failure, 'listen')));
      return this;
    }
    owner.ports.set(port, (connection) => owner.deliver(() => this.emit('connection', connection)));
    const address: AddressInfo = { address: LOOPBACK, family: 'IPv4', port };
    const handle = {
      close: (closed?: () => void) => {
        owner.ports.delete(port);
        if (closed !== undefined) plan(closed);
      },
      getsockname: (out: object) => {
        Object.assign(out, address);
        return 0;
      },
      ref: () => {},
      unref: () => {},
    };
    Reflect.set(this, '_handle', handle);
    plan(() => this.emit('listening'));
    return this;
  };
  net.Server.prototype.listen = listen as typeof net.Server.prototype.listen;
}
