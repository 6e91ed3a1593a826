/**
 * Requests and answers over UDP. A node has two sockets: the server socket, where strangers reach it, and the client
 * socket, which sends requests while the node is in no routing table. Format and rules: docs/protocol-dht.md,
 * "Datagrams".
 */
import { isIPv4 } from 'node:net';
import type { Address } from '../../../foundation/address.ts';
import { equalBytes } from '../../../foundation/bytes.ts';
import type { Clock, Timer } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import { LruCache } from '../../../foundation/lru-cache.ts';
import { awakeClock } from '../../../foundation/stall.ts';
import type { UdpSocket } from '../../transport/udp-socket.ts';
import { MAX_DATAGRAM_BYTES } from '../messages.ts';
import { nodeId } from '../node-address.ts';
import { type AnswerDatagram, decodeDatagram, encodeDatagram, type RequestDatagram } from './messages.ts';
import { AddressTokens, TOKEN_SECRET_BYTES } from './tokens.ts';
import type { RpcWorld } from './world.ts';

/**
 * A request without an answer is repeated or given up after this time, in milliseconds. Time in which this process was
 * stopped or busy does not count: answers may wait in its sockets.
 */
export const ANSWER_TIMEOUT_MS = 1000;
/** How often a request that may be repeated is sent at most. */
export const MAX_ATTEMPTS = 4;
/** Requests that wait for an answer at one time. Further ones wait for a place. */
const MAX_IN_FLIGHT = 400;
/** Requests whose receivers are remembered: a late answer still shows that a node is there. */
const MAX_AWAITED = 4096;
const REQUEST_IDS = 65_536;

/** Commands of the routing itself. */
const INTERNAL = { ping: 0, findNode: 2 } as const;
/** Errors in answers. `badToken` also asks a sender without a token to prove its address. */
export const ERROR = { none: 0, unknownCommand: 1, badToken: 2 } as const;

/** An address, and the routing id that goes with it if its node stated the right one. */
export interface Sender extends Address {
  readonly id: Uint8Array | null;
}

export interface RpcMessage {
  readonly command: number;
  readonly token?: Uint8Array | null;
  readonly target?: Uint8Array | null;
  readonly value?: Uint8Array | null;
}

export interface RpcAnswer {
  readonly from: Sender;
  /** Our address as the other node sees it. */
  readonly to: Address;
  readonly token: Uint8Array | null;
  /** 0 for none. */
  readonly error: number;
  readonly value: Uint8Array | null;
}

export interface ReplyOptions {
  /** Default: the socket that received the request. */
  readonly socket?: UdpSocket | null;
  /** Default: the sender of the request. */
  readonly to?: Address;
  /** Default: true. */
  readonly token?: boolean;
}

export interface RpcRequest {
  /** The id is null unless the node is in the routing table. */
  readonly from: Sender;
  /** Our address as the sender wrote it. */
  readonly to: Address;
  /** Always valid: requests with a wrong token are answered with an error. */
  readonly token: Uint8Array | null;
  readonly command: number;
  readonly target: Uint8Array | null;
  readonly value: Uint8Array | null;
  readonly socket: UdpSocket;
  /** Answers that the sender must repeat the request with the token of this answer. */
  askForToken(): void;
  reply(value: Uint8Array | null, options?: ReplyOptions): void;
}

export interface RpcOptions extends Address {
  readonly tag: Uint8Array;
}

export interface RpcDependencies {
  readonly world: RpcWorld;
  /** Whether a request of this address may be processed. A proven sender has shown a token. */
  readonly admits: (from: Address, isProven: boolean) => boolean;
  /** Runs the work for a request when it is its sender's turn. */
  readonly queue: (from: Address, work: () => void, isProven: boolean) => void;
  /** Called for every admitted request and for every answer to a request. */
  readonly onDatagram: (from: Address, kind: 'request' | 'answer', socket: UdpSocket) => void;
  /** Whether an address is in the routing table. */
  readonly knows: (from: Address) => boolean;
  /** Called for an unknown address whose request states a routing id. */
  readonly onStranger: (from: Address, isProven: boolean) => void;
  /** Called for an answer with the right routing id, and for such a request of a known node. */
  readonly onNode: (address: Address, id: Uint8Array) => void;
  /** Whether an answer from one address can come from the machine that got the request at another address. */
  readonly mayBeOneMachine: (asked: Address, from: Address) => boolean;
  /** Our routing id as a host checks it; null while we are in no routing table. */
  readonly ownIdFor: (host: string) => Uint8Array | null;
  /** The nodes to name to others, closest to the target first. */
  readonly near: (target: Uint8Array) => readonly Address[];
  readonly onRequest: (request: RpcRequest) => void;
}

interface SendOptions {
  /** Sends again without an answer. */
  readonly retry: boolean;
  /** Default: the socket from which this node asks. */
  readonly socket?: UdpSocket;
  /**
   * Called before a null that means that no answer arrived in time, not that the system did not send or this node
   * stopped.
   */
  readonly onSilence?: () => void;
}

interface Pending {
  readonly requestId: number;
  readonly to: Address;
  readonly socket: UdpSocket;
  readonly datagram: Uint8Array;
  readonly onSilence: (() => void) | undefined;
  readonly settle: (outcome: RpcAnswer | null) => void;
  attemptsLeft: number;
  timer: Timer | null;
}

export class Rpc {
  readonly #options: RpcOptions;
  readonly #deps: RpcDependencies;
  readonly #tokens: AddressTokens;
  readonly #awake: Clock;
  readonly #server: UdpSocket;
  #client: UdpSocket;
  /** Requests in flight, by number. */
  readonly #pending = new Map<number, Pending>();
  /** Requests that wait for a place. */
  readonly #waiting = new Set<Pending>();
  readonly #asked = new LruCache<number, Address>({ maxEntries: MAX_AWAITED });
  #nextId: number;
  #isStopped = false;

  constructor(options: RpcOptions, dependencies: RpcDependencies) {
    this.#options = options;
    this.#deps = dependencies;
    const { clock, createSocket, randomBytes, random } = dependencies.world;
    this.#awake = awakeClock(clock);
    this.#tokens = new AddressTokens(randomBytes(TOKEN_SECRET_BYTES), clock);
    this.#nextId = Math.floor(random() * REQUEST_IDS);
    this.#server = createSocket();
    this.#client = createSocket();
  }

  /** @throws Error if the address cannot be used */
  start(): void {
    const { host, port } = this.#options;
    this.#server.bind(port, host);
    this.#client.bind(0, host);
    this.receive(this.#server);
    this.receive(this.#client);
  }

  /** Requests in flight settle without an answer. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const pending of [...this.#waiting, ...this.#pending.values()]) this.#settle(pending, null);
    await Promise.all([this.#server.close(), this.#client.close()]);
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  get serverSocket(): UdpSocket {
    return this.#server;
  }

  get clientSocket(): UdpSocket {
    return this.#client;
  }

  get requestsInFlight(): number {
    return this.#pending.size;
  }

  /**
   * Replaces the client socket by one at another port. False if the system has none: this machine may have lost the
   * address, or no descriptor is free. The present socket then stays, and works again when the address returns.
   */
  changeClientPort(): boolean {
    const next = this.#deps.world.createSocket();
    try {
      next.bind(0, this.#options.host);
    } catch {
      detach(next.close());
      return false;
    }
    const old = this.#client;
    this.#client = next;
    this.receive(next);
    detach(old.close());
    return true;
  }

  /** Sends the requests in flight again, on another network. Their timeouts restart. */
  resend(): void {
    for (const pending of [...this.#pending.values()]) {
      pending.timer?.cancel();
      pending.attemptsLeft++;
      this.#attempt(pending);
    }
  }

  /**
   * Processes the datagrams that arrive at a socket.
   * @param what with `answers`, requests are ignored
   */
  receive(socket: UdpSocket, what: 'all' | 'answers' = 'all'): void {
    const { lentPorts } = this.#deps.world;
    socket.on('message', (bytes: Uint8Array, source: Address) => {
      const from = lentPorts?.outer(source) ?? source;
      if (this.#isStopped || bytes.length > MAX_DATAGRAM_BYTES || from.port < 1) return;
      const datagram = decodeDatagram(bytes, this.#options.tag);
      if (datagram?.kind === 'answer') this.#onAnswer(datagram, from, socket);
      else if (datagram !== null && what === 'all') this.#onRequest(datagram, from, socket);
    });
  }

  /** Asks whether a node is there. */
  async ping(to: Address, options: SendOptions): Promise<RpcAnswer | null> {
    return await this.#send(to, { command: INTERNAL.ping }, true, options);
  }

  /** Sends a request. Returns null without an answer; never rejects. */
  async request(to: Address, message: RpcMessage, options: SendOptions): Promise<RpcAnswer | null> {
    return await this.#send(to, message, false, options);
  }

  #send(to: Address, message: RpcMessage, internal: boolean, options: SendOptions): Promise<RpcAnswer | null> {
    const requestId = this.#isStopped || !isIPv4(to.host) ? null : this.#freeId();
    if (requestId === null) return Promise.resolve(null);
    const { ownIdFor } = this.#deps;
    const socket = options.socket ?? (ownIdFor(to.host) === null ? this.#client : this.#server);
    const id = socket === this.#server ? ownIdFor(to.host) : null;
    const { command, token = null, target = null, value = null } = message;
    const datagram = encodeDatagram(
      { kind: 'request', requestId, to, id, token, internal, command, target, value },
      this.#options.tag,
    );
    return new Promise((settle) => {
      const attemptsLeft = options.retry ? MAX_ATTEMPTS : 1;
      this.#waiting.add({
        requestId,
        to,
        socket,
        datagram,
        settle,
        attemptsLeft,
        timer: null,
        onSilence: options.onSilence,
      });
      this.#startWaiting();
    });
  }

  /**
   * A number that no other request has; null if there are too many. Waiting requests start in order, so a number
   * never comes around again while its request waits.
   */
  #freeId(): number | null {
    if (this.#pending.size + this.#waiting.size >= REQUEST_IDS / 2) return null;
    do this.#nextId = (this.#nextId + 1) % REQUEST_IDS;
    while (this.#pending.has(this.#nextId));
    return this.#nextId;
  }

  #startWaiting(): void {
    for (const pending of this.#waiting) {
      if (this.#pending.size >= MAX_IN_FLIGHT) return;
      this.#waiting.delete(pending);
      this.#pending.set(pending.requestId, pending);
      this.#attempt(pending);
    }
  }

  #attempt(pending: Pending): void {
    const { requestId, to, socket, datagram } = pending;
    pending.attemptsLeft--;
    this.#asked.set(requestId, to);
    pending.timer = this.#awake.after(ANSWER_TIMEOUT_MS, () => {
      if (pending.attemptsLeft > 0) this.#attempt(pending);
      else {
        pending.onSilence?.();
        this.#settle(pending, null);
      }
    });
    // Later, because settling starts the next request: without a network, thousands would nest.
    if (!this.#transmit(socket, datagram, to)) queueMicrotask(() => this.#settle(pending, null));
  }

  #settle(pending: Pending, answer: RpcAnswer | null): void {
    pending.timer?.cancel();
    this.#waiting.delete(pending);
    if (this.#pending.get(pending.requestId) === pending) this.#pending.delete(pending.requestId);
    pending.settle(answer);
    if (!this.#isStopped) this.#startWaiting();
  }

  /** An answer counts only from the machine that got the request, because anyone can guess a number. */
  #onAnswer(datagram: AnswerDatagram, { host, port }: Address, socket: UdpSocket): void {
    const { mayBeOneMachine, onDatagram, onNode } = this.#deps;
    const { requestId, to, token, error, value } = datagram;
    const address = { host, port };
    const asked = this.#asked.peek(requestId);
    if (asked === undefined || (asked.host !== host && !mayBeOneMachine(asked, address))) return;
    onDatagram(address, 'answer', socket);
    const pending = this.#pending.get(requestId);
    if (pending === undefined) return;
    const from = { ...address, id: validId(datagram.id, address) };
    if (from.id !== null) onNode(address, from.id);
    this.#settle(pending, { from, to, token, error, value });
  }

  #onRequest(datagram: RequestDatagram, { host, port }: Address, socket: UdpSocket): void {
    const { admits, onDatagram, knows, onStranger, queue } = this.#deps;
    const address = { host, port };
    const isProven = datagram.token !== null && this.#tokens.isValid(datagram.token, host);
    if (!admits(address, isProven)) return;
    onDatagram(address, 'request', socket);
    const statesId = datagram.id !== null;
    const isKnown = statesId && knows(address);
    if (statesId && !isKnown) onStranger(address, isProven);
    const process = (): void => {
      if (this.#isStopped) return;
      this.#process(datagram, isProven, { ...address, id: isKnown ? validId(datagram.id, address) : null }, socket);
    };
    queue(address, process, isProven);
  }

  #process(datagram: RequestDatagram, isProven: boolean, from: Sender, socket: UdpSocket): void {
    const { near, onNode, onRequest } = this.#deps;
    const { requestId, to, internal, command, target, value, token } = datagram;
    const reply = (answer: Partial<AnswerDatagram>, options: ReplyOptions = {}): void =>
      this.#reply(requestId, answer, options.to ?? from, options.socket ?? socket, options.token ?? true);
    const askForToken = (): void => reply({ error: ERROR.badToken });
    if (token !== null && !isProven) return askForToken();
    if (from.id !== null) onNode(from, from.id);
    if (!internal)
      return onRequest({
        ...{ from, to, token, command, target, value, socket, askForToken },
        reply: (answer, options) => reply({ value: answer }, options),
      });
    if (command === INTERNAL.ping) return reply({}, { token: false });
    if (command !== INTERNAL.findNode) return reply({ error: ERROR.unknownCommand }, { token: false });
    if (target !== null) reply({ nodes: near(target) }, { token: false });
  }

  #reply(
    requestId: number,
    answer: Partial<AnswerDatagram>,
    { host, port }: Address,
    socket: UdpSocket,
    withToken: boolean,
  ): void {
    const datagram = encodeDatagram(
      {
        ...{ kind: 'answer', nodes: [], error: ERROR.none, value: null, ...answer, requestId, to: { host, port } },
        id: socket === this.#server ? this.#deps.ownIdFor(host) : null,
        token: withToken ? this.#tokens.for(host) : null,
      },
      this.#options.tag,
    );
    // Requests never arrive through a borrowed port, so the answer must not leave through one.
    this.#transmit(socket.system ?? socket, datagram, { host, port });
  }

  /** False if the system does not send to this address. */
  #transmit(socket: UdpSocket, datagram: Uint8Array, to: Address): boolean {
    const { host, port } = this.#deps.world.lentPorts?.local(to) ?? to;
    try {
      socket.trySend(datagram, port, host);
      return true;
    } catch {
      return false;
    }
  }
}

/** The id that a node stated, if it is that of its address. */
function validId(stated: Uint8Array | null, from: Address): Uint8Array | null {
  if (stated === null) return null;
  const id = nodeId(from);
  return equalBytes(stated, id) ? id : null;
}
