/**
 * The entry: reads the server name of TLS connections at the TCP port of the helper, and passes those for a held name on
 * to its agent, without ending TLS. It also receives the claims for names. Format: docs/protocol-public.md.
 */
import type { Socket } from 'node:net';
import { type Timer } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { NAME_LEASE_DAYS } from '../../foundation/domain/public-names.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { inIpv4Network } from '../../foundation/ip.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import {
  decodeNameRequest,
  encodeConnection,
  encodeNameAnswer,
  MAX_NAME_MESSAGE_BYTES,
} from '../../foundation/public-name-messages.ts';
import { Quota, type QuotaShare } from '../../foundation/quota.ts';
import { RateQuota } from '../../foundation/rate-limit.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { listen } from '../../foundation/stream-listeners.ts';
import { requestHolder } from '../../network/links/holder.ts';
import type { AccessRequest, LinkStream, Links } from '../../network/links/types.ts';
import { drainAndDestroy } from '../../network/peers/stream-dispatcher.ts';
import { ProtocolBreach, readFrame } from '../../network/peers/wire.ts';
import type { RelayAccount, RelayBudgets } from '../../network/reachability/relay-budgets.ts';
import type { ServerNameRouter } from '../../network/transport/server-names.ts';
import { ClientHelloReader } from './client-hello.ts';
import type { EntryNames } from './entry-names.ts';
import { Passage } from './passage.ts';
import { type ProxyHeader, readProxyHeader } from './proxy-header.ts';

/** Time for a PROXY header and a ClientHello, milliseconds. */
export const PUBLIC_HELLO_TIMEOUT_MS = 5_000;
/** Time to reach the node of an agent, milliseconds. */
const OPEN_TIMEOUT_MS = 15_000;
/** Connections without a byte for this time are closed, milliseconds. */
export const PUBLIC_IDLE_MS: number = 60 * 60_000;
/** Interval of the check, milliseconds. */
const IDLE_CHECK_MS = 60_000;
/** Connections before their ClientHello: of one source, of one network, and of all. */
export const MAX_UNREAD_PER_SOURCE = 64;
export const MAX_UNREAD_PER_NETWORK = 256;
export const MAX_UNREAD_CLIENTS = 2048;
/** New connections per second of one source, of one network, and of all. */
export const PUBLIC_PER_SOURCE = 50;
export const PUBLIC_PER_NETWORK = 200;
export const PUBLIC_RATE = 2000;
/** Burst of these rates, in seconds. */
const BURST_S = 8;
/** One source, one network and one name use at most these parts of all connections. */
const SOURCE_PART = 1 / 16;
const NETWORK_PART = 1 / 8;
const NAME_PART = 1 / 2;
/** Part of the file descriptors of this process that public connections may use. */
const DESCRIPTOR_SHARE = 0.4;
/** Clients of one agent that do not read: more would stop all streams of its node. */
export const MAX_STALLED_PER_AGENT = 16;
/** Requests about names: of one agent, of one source, of one network and of all strangers, per second. */
export const NAME_REQUESTS = 1;
export const NAME_REQUESTS_PER_SOURCE = 4;
export const NAME_REQUESTS_PER_NETWORK = 8;
export const NAME_REQUESTS_OF_STRANGERS = 32;
const NAME_BURST_S = 32;
/** Time for the message of a request, milliseconds. */
const REQUEST_TIMEOUT_MS = 8_000;

interface EntryOptions {
  readonly nodeAid: Aid;
  /** Public connections at the same time. */
  readonly connections: number;
  /** Addresses and IPv4 networks of web servers that send PROXY headers. */
  readonly proxies: readonly string[];
}

interface EntryDependencies extends NodeParts {
  readonly names: EntryNames;
  readonly links: Pick<Links, 'open' | 'accept'>;
  readonly budgets: RelayBudgets;
  /** The limit of open files of this process. */
  readonly descriptors: () => number;
}

/** Current connections, and totals since the start. */
export interface EntryUsage {
  readonly connections: number;
  readonly unread: number;
  readonly accepted: number;
  /** Closed without an agent: no free place, no such name, or a malformed hello. */
  readonly refused: number;
  /** The node of the agent was not reached. */
  readonly failed: number;
  readonly bytes: number;
}

/** A client, before its ClientHello. */
interface Client {
  readonly socket: Socket;
  address: string;
  port: number;
}

function perSecond(rate: number, burstS = BURST_S) {
  return { perSecond: rate, burst: rate * burstS };
}

export class Entry implements Component, ServerNameRouter {
  readonly #options: EntryOptions;
  readonly #deps: EntryDependencies;
  readonly #rate: RateQuota;
  readonly #requests: RateQuota;
  readonly #unread: Quota;
  readonly #open: Quota;
  readonly #passages = new Map<Passage, { readonly name: string; readonly aid: Aid; activeAt: number }>();
  /** Passages whose client does not read, the oldest first, by agent. */
  readonly #stalled = new Map<Aid, Set<Passage>>();
  readonly #pending = new Set<Socket>();
  readonly #stop = new AbortController();
  #checks: RepeatingTask | null = null;
  #accepted = 0;
  #refused = 0;
  #failed = 0;
  #bytes = 0;

  constructor(options: EntryOptions, dependencies: EntryDependencies) {
    this.#options = options;
    this.#deps = dependencies;
    const { links, names, descriptors } = dependencies;
    const total = Math.min(options.connections, Math.floor(descriptors() * DESCRIPTOR_SHARE));
    this.#rate = new RateQuota(
      {
        perKey: perSecond(PUBLIC_PER_SOURCE),
        perSource: perSecond(PUBLIC_PER_SOURCE),
        perNetwork: perSecond(PUBLIC_PER_NETWORK),
        strangers: perSecond(PUBLIC_RATE),
      },
      dependencies,
    );
    this.#requests = new RateQuota(
      {
        perKey: perSecond(NAME_REQUESTS, NAME_BURST_S),
        perSource: perSecond(NAME_REQUESTS_PER_SOURCE, NAME_BURST_S),
        perNetwork: perSecond(NAME_REQUESTS_PER_NETWORK, NAME_BURST_S),
        strangers: perSecond(NAME_REQUESTS_OF_STRANGERS, NAME_BURST_S),
      },
      dependencies,
    );
    this.#unread = new Quota({
      perSource: MAX_UNREAD_PER_SOURCE,
      perNetwork: MAX_UNREAD_PER_NETWORK,
      total: Math.min(MAX_UNREAD_CLIENTS, total),
    });
    this.#open = new Quota({
      perNode: Math.ceil(total * NAME_PART),
      perSource: Math.ceil(total * SOURCE_PART),
      perNetwork: Math.ceil(total * NETWORK_PART),
      total,
    });
    names.onLost((name) => this.#drop(name));
    links.accept(
      'entry',
      (link) => detach(this.#answer(link)),
      (request) => this.#permit(request),
    );
  }

  async start(): Promise<void> {
    const onError = (error: unknown): void => this.#deps.log.warn({ error }, 'cannot check public connections');
    this.#checks = every(this.#deps.clock, { periodMs: IDLE_CHECK_MS, onError }, () => this.#check());
  }

  async stop(): Promise<void> {
    this.#checks?.stop();
    this.#stop.abort(new SvcError('cancelled'));
    for (const socket of this.#pending) socket.destroy();
    for (const passage of [...this.#passages.keys()]) passage.end();
  }

  get isOn(): boolean {
    return this.#deps.names.isOn;
  }

  get usage(): EntryUsage {
    return {
      connections: this.#passages.size,
      unread: this.#unread.used,
      accepted: this.#accepted,
      refused: this.#refused,
      failed: this.#failed,
      bytes: this.#bytes,
    };
  }

  /** The number of open connections of a name. */
  connectionsOf(name: string): number {
    return this.#passages.values().reduce((sum, one) => sum + (one.name === name ? 1 : 0), 0);
  }

  /** As `ServerNameRouter.route`. */
  route(socket: Socket, peer: string, keep: (source: string | null) => void): void {
    const client = { socket, address: peer, port: socket.remotePort ?? 0 };
    const isProxy = this.#isProxy(peer);
    // A web server would use up the limits of one source.
    const share = isProxy ? this.#unread.take({ node: peer, source: null, named: true }) : this.#admit(peer);
    if (share === null) return this.#refuse(socket);
    this.#pending.add(socket);
    this.#read(client, isProxy, (hello) => {
      this.#pending.delete(socket);
      share.release();
      if (hello === null) return this.#refuse(socket);
      const destination = this.#deps.names.destinationOf(hello.serverName);
      if (destination === 'own') {
        socket.unshift(hello.head);
        return keep(client.address === peer ? null : client.address);
      }
      if (destination === 'free') return this.#refuse(socket);
      detach(this.#connect(client, hello.serverName ?? '', destination.aid, hello.head));
    });
  }

  #isProxy(peer: string): boolean {
    return this.#options.proxies.some((one) => one === peer || (one.includes('/') && inIpv4Network(peer, one)));
  }

  /** Null if a source makes too many connections, or has too many without a ClientHello. */
  #admit(address: string): QuotaShare | null {
    const holder = { node: address, source: address, named: false };
    return this.#rate.take(holder) ? this.#unread.take(holder) : null;
  }

  #refuse(socket: Socket): void {
    this.#refused++;
    socket.resetAndDestroy();
  }

  /** Calls `done` once, with null if the client has sent something else, ended, or used up its time. */
  #read(client: Client, expectsProxy: boolean, done: (hello: ClientHelloReader | null) => void): void {
    // protocol-public.md, step 5
    const { socket } = client;
    const hello = new ClientHelloReader();
    let proxy: Buffer | null = expectsProxy ? Buffer.alloc(0) : null;
    const finish = (result: ClientHelloReader | null): false => {
      timer.cancel();
      stop();
      done(result);
      return false;
    };
    /** True if more bytes are needed. */
    const take = (chunk: Buffer): boolean => {
      let rest = chunk;
      if (proxy !== null) {
        proxy = Buffer.concat([proxy, chunk]);
        const header = readProxyHeader(proxy);
        if (header === 'more') return true;
        if (header === 'invalid' || !this.#useProxyHeader(client, header)) return finish(null);
        rest = proxy.subarray(header.length);
        proxy = null;
      }
      const state = rest.length === 0 ? 'more' : hello.push(rest);
      return state === 'more' || finish(state === 'done' ? hello : null);
    };
    const readable = (): void => {
      for (let needsMore = true; needsMore; ) {
        const chunk: unknown = socket.read();
        needsMore = chunk instanceof Buffer && take(chunk);
      }
    };
    const end = (): boolean => finish(null);
    const timer: Timer = this.#deps.clock.after(PUBLIC_HELLO_TIMEOUT_MS, end);
    const stop = listen(socket, { readable, end, error: end, close: end });
  }

  /** Counts a connection for the client that its web server names. False if it has too many. */
  #useProxyHeader(client: Client, { client: named }: ProxyHeader): boolean {
    if (named === null) return true;
    Object.assign(client, named);
    return this.#rate.take({ node: named.address, source: named.address, named: false });
  }

  async #connect(client: Client, name: string, aid: Aid, head: Buffer): Promise<void> {
    const { budgets } = this.#deps;
    const { socket, address, port } = client;
    const holder = { node: aid, source: address, named: false };
    const account = budgets.open({ source: address, named: false });
    if (account === null) return this.#refuse(socket);
    let end = (): void => void socket.destroy();
    const share = this.#open.take(holder, { onEvict: () => end() });
    if (share === null) {
      account.close();
      return this.#refuse(socket);
    }
    socket.allowHalfOpen = true;
    socket.on('error', () => socket.destroy());
    this.#pending.add(socket);
    const gone = new AbortController();
    const close = (): void => gone.abort(new SvcError('cancelled'));
    socket.once('close', close);
    try {
      const link = await this.#openLink({ name, clientAddress: address, clientPort: port }, aid, head, gone.signal);
      socket.off('close', close);
      const passage = this.#join(client, link, name, aid, account, share);
      end = () => passage.end();
    } catch (error) {
      this.#failed++;
      this.#deps.log.debug({ name, aid, error }, 'a public connection does not reach its agent');
      socket.resetAndDestroy();
      share.release();
      account.close();
    } finally {
      this.#pending.delete(socket);
    }
  }

  /** Opens a link with the first bytes of a client, which saves a round trip. */
  async #openLink(
    header: Parameters<typeof encodeConnection>[0],
    aid: Aid,
    head: Buffer,
    signal: AbortSignal,
  ): Promise<LinkStream> {
    // protocol-public.md, step 6
    const first = Buffer.concat([encodeConnection(header), head]);
    const link = await this.#deps.links.open(this.#options.nodeAid, aid, 'public', {
      first: { bytes: () => first },
      timeoutMs: OPEN_TIMEOUT_MS,
      signal: AbortSignal.any([signal, this.#stop.signal]),
      isUnasked: true,
    });
    if (!signal.aborted) return link;
    link.destroy();
    throw new SvcError('cancelled');
  }

  #join(
    { socket }: Client,
    link: LinkStream,
    name: string,
    aid: Aid,
    account: RelayAccount,
    share: QuotaShare,
  ): Passage {
    this.#accepted++;
    const passage: Passage = new Passage({
      client: socket,
      link,
      clock: this.#deps.clock,
      spend: (bytes) => {
        if (!account.spend(bytes)) return false;
        this.#bytes += bytes;
        return true;
      },
      isUsedUp: () => account.isUsedUp,
      onStall: (isStalled) => this.#noteStall(passage, aid, isStalled),
      onEnd: () => {
        share.release();
        account.close();
        this.#noteStall(passage, aid, false);
        this.#passages.delete(passage);
      },
    });
    this.#passages.set(passage, { name, aid, activeAt: this.#deps.clock.monotonic() });
    return passage;
  }

  /** Unread streams use up the window of their connection, so a limited number of clients may leave theirs unread. */
  #noteStall(passage: Passage, aid: Aid, isStalled: boolean): void {
    const stalled = this.#stalled.get(aid) ?? new Set<Passage>();
    if (isStalled) stalled.add(passage);
    else stalled.delete(passage);
    if (stalled.size === 0) this.#stalled.delete(aid);
    else this.#stalled.set(aid, stalled);
    const [oldest] = stalled;
    if (stalled.size > MAX_STALLED_PER_AGENT) oldest?.end();
  }

  #check(): void {
    const now = this.#deps.clock.monotonic();
    for (const [passage, entry] of this.#passages) {
      if (passage.takeActivity()) entry.activeAt = now;
      else if (now - entry.activeAt > PUBLIC_IDLE_MS) passage.end();
    }
  }

  #drop(name: string): void {
    for (const [passage, entry] of this.#passages) if (entry.name === name) passage.end();
  }

  /** @throws SvcError `access_denied` if this node is no entry, `rate_limited` */
  #permit(request: AccessRequest): void {
    if (!this.isOn || request.called !== this.#options.nodeAid) throw new SvcError('access_denied');
    const isAllowed = this.#deps.names.isAllowed(request.caller);
    if (!this.#requests.take(requestHolder(request, isAllowed))) throw new SvcError('rate_limited');
  }

  async #answer(link: LinkStream): Promise<void> {
    // protocol-public.md, steps 2 and 3
    const { clock, log, names } = this.#deps;
    const { caller } = link;
    link.on('error', () => {});
    try {
      using limit = awakeTimeout(clock, REQUEST_TIMEOUT_MS, this.#stop.signal);
      const request = decodeNameRequest(await readFrame(link, MAX_NAME_MESSAGE_BYTES, limit.signal));
      if (request === null) throw new ProtocolBreach('A request for a public name is malformed.');
      const { verdict, name } = names.handle(request, caller);
      log.debug({ caller, action: request.action, name, verdict }, 'a request for a public name');
      link.end(encodeNameAnswer({ verdict, name, leaseDays: NAME_LEASE_DAYS }));
      drainAndDestroy(link, clock);
    } catch (error) {
      log.debug({ caller, error }, 'a request for a public name failed');
      link.destroy();
    }
  }
}
