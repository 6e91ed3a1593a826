/**
 * The node of an agent holds public names at entries: it claims them, confirms them after a restart and after a change of
 * network, and receives their connections. Format: docs/protocol-public.md.
 */
import type { Duplex } from 'node:stream';
import { equalBytes } from '../../foundation/bytes.ts';
import { pause } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { isEntryToken, isPublicName, type PublicNameState } from '../../foundation/domain/public-names.ts';
import { DueQueue, type NetworkState } from '../../foundation/due-queue.ts';
import { type ErrorCode, isUnresolved, noSuchAgent, SvcError } from '../../foundation/errors.ts';
import { type Aid, nativePublicKey, parseAid } from '../../foundation/identity/aid.ts';
import { memberOf } from '../../foundation/json.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { RandomParts } from '../../foundation/node-parts.ts';
import {
  decodeConnection,
  decodeNameAnswer,
  encodeNameRequest,
  MAX_NAME_MESSAGE_BYTES,
  type NameRequest,
  type NameVerdict,
} from '../../foundation/public-name-messages.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { MetaStore } from '../../foundation/store/meta.ts';
import type { PublicNameRow, PublicNameStore } from '../../foundation/store/public-names.ts';
import type { AccessRequest, LinkStream, Links } from '../../network/links/types.ts';
import { drainAndDestroy } from '../../network/peers/stream-dispatcher.ts';
import { ProtocolBreach, readFrame } from '../../network/peers/wire.ts';

/** Interval of confirmations, milliseconds. */
const CONFIRM_MS: number = 60 * 60_000;
/** Waits after failed confirmations. */
const RETRY = { firstMs: 5_000, maxMs: 10 * 60_000, jitter: 0.5 } as const;
/** Time for a request with its answer, and for the header of a connection, milliseconds. */
const ASK_TIMEOUT_MS = 20_000;
const MAX_AT_ONCE = 8;
/** Attempts to find an entry for a new name, and the pause between them, milliseconds. */
const FIND_TRIES = 6;
const FIND_PAUSE_MS = 2_000;
const INVITATIONS_KEY = 'public_entries';
/** Stored invitations to entries, the newest first. */
const MAX_INVITATIONS_KEPT = 16;
/** Open connections of clients at this node. Each may use a connection to a service. */
const MAX_PUBLIC_CONNECTIONS = 4096;

/** A connection of a client on the Internet to a public name. */
export interface PublicConnection {
  /** The whole name, as the client used it. */
  readonly name: string;
  readonly aid: Aid;
  /** The address of the client as the entry saw it. */
  readonly clientAddress: string;
  readonly clientPort: number;
  /** The node of the entry. */
  readonly entry: Aid;
}

/** Receives a connection: the bytes of the client, which begin with a TLS ClientHello. It owns the stream. */
export type AcceptPublic = (connection: PublicConnection, stream: Duplex) => void;

export interface HeldName {
  readonly name: string;
  readonly aid: Aid;
  readonly entry: Aid;
  readonly state: PublicNameState;
  /** Why the last confirmation failed. */
  readonly error: { readonly code: ErrorCode; readonly message: string } | null;
  /** When the entry confirmed it first, and last. Unix milliseconds. */
  readonly heldAt: number;
  readonly seenAt: number;
}

interface NameHolderDependencies extends RandomParts {
  readonly store: PublicNameStore;
  readonly links: Pick<Links, 'open' | 'accept'>;
  readonly network: NetworkState;
  /** Keeps the connection to a node open. Returns a function that stops this. */
  readonly keep: (nodeKey: Uint8Array) => () => void;
  /** Stores the invitations to entries. */
  readonly memory: Pick<MetaStore, 'get' | 'set'>;
  /** True if the agent is registered here. */
  readonly isLocal: (aid: Aid) => boolean;
}

const REFUSALS: Readonly<Record<Exclude<NameVerdict, 'ok'>, ErrorCode>> = {
  taken: 'name_taken',
  not_below: 'name_not_allowed',
  invalid: 'bad_public_name',
  denied: 'entry_denied',
  full: 'quota_exceeded',
};

export class NameHolder implements Component {
  readonly #deps: NameHolderDependencies;
  readonly #queue: DueQueue<PublicNameRow>;
  readonly #changes = new Listeners<[]>();
  readonly #kept = new Map<Aid, () => void>();
  /** Open connections. */
  readonly #streams = new Map<LinkStream, string>();
  /** Names that an entry has confirmed since the start. */
  readonly #confirmed = new Set<string>();
  readonly #stop = new AbortController();
  #accept: AcceptPublic | null = null;

  constructor(dependencies: NameHolderDependencies) {
    this.#deps = dependencies;
    const { store, network } = dependencies;
    this.#queue = new DueQueue(
      { name: 'public names', retry: RETRY, maxWaitMs: CONFIRM_MS, atOnce: { perKey: 1, total: MAX_AT_ONCE } },
      { ...dependencies, table: store.due, network, work: (row, signal) => this.#confirm(row, signal) },
    );
    dependencies.links.accept(
      'public',
      (link) => detach(this.#receive(link)),
      (request) => this.#authorize(request),
    );
  }

  async start(): Promise<void> {
    this.#deps.store.makeDue(this.#deps.clock.now());
    this.#keepEntries();
    this.#queue.start();
  }

  async stop(): Promise<void> {
    this.#stop.abort(new SvcError('cancelled'));
    await this.#queue.stop();
    for (const end of this.#kept.values()) end();
    this.#kept.clear();
    for (const link of this.#streams.keys()) link.destroy();
  }

  /** Sets the receiver of all connections. Until then they are closed. */
  onConnection(accept: AcceptPublic): void {
    this.#accept = accept;
  }

  /** Calls a listener after a change of the names or their states. Returns a function that removes it. */
  onChange(listener: () => void): () => void {
    return this.#changes.add(listener);
  }

  /** Stores the token of an invitation to an entry, for the next claim there. */
  invited(entry: Aid, token: string): void {
    const others = this.#invitations().filter((one) => one.entry !== entry);
    this.#deps.memory.set(INVITATIONS_KEY, [{ entry, token }, ...others].slice(0, MAX_INVITATIONS_KEPT));
  }

  /** The entries of held names and of stored invitations. */
  entries(): readonly Aid[] {
    const held = this.#deps.store.list().map(({ entry }) => entry);
    return [...new Set([...held, ...this.#invitations().map(({ entry }) => entry)])];
  }

  #invitations(): { readonly entry: Aid; readonly token: string }[] {
    const stored = this.#deps.memory.get(INVITATIONS_KEY);
    return (Array.isArray(stored) ? stored : []).flatMap((one: unknown) => {
      const [entry, token] = [memberOf(one, 'entry'), memberOf(one, 'token')];
      return typeof entry === 'string' && isEntryToken(token) ? [{ entry: parseAid(entry), token }] : [];
    });
  }

  /**
   * Claims a name for a local agent. A failure changes nothing.
   * @param name a label, such as "demo", or a whole name below a domain of the entry
   * @param entry the AID of the node of the entry
   * @param token of an invitation to the entry. Default: the token with which this node joined
   * @throws SvcError `bad_public_name`, `name_not_allowed`, `name_taken`, `entry_denied`, `quota_exceeded`, `not_found`
   *   for an agent that is not here, and as `Links.open`
   */
  async claim(aid: Aid, name: string, entry: Aid, token: string | null = null): Promise<HeldName> {
    const { store, clock, isLocal } = this.#deps;
    if (!isLocal(aid)) throw noSuchAgent(aid);
    if (!isPublicName(name)) throw new SvcError('bad_public_name');
    const kept = this.#invitations().find((one) => one.entry === entry)?.token ?? null;
    const whole = await this.#askNew(aid, entry, { action: 'claim', name, token: token ?? kept });
    const now = clock.now();
    store.put({ name: whole, aid, entry, heldAt: now, seenAt: now, dueAt: now + CONFIRM_MS });
    this.#confirmed.add(whole);
    this.#changed();
    const held = store.find(whole);
    if (held === null) throw noSuchAgent(aid);
    return this.#view(held);
  }

  /**
   * Gives up a name, and closes its connections immediately. An unreachable entry frees it at the end of its lease.
   * @throws SvcError `not_found`
   */
  async release(aid: Aid, name: string): Promise<void> {
    const { store, log } = this.#deps;
    const row = store.find(name);
    if (row?.aid !== aid)
      throw new SvcError('not_found', { message: 'This agent has no such public name. "svc expose list" lists them.' });
    store.delete(name);
    this.#drop(name);
    this.#changed();
    try {
      await this.#ask(aid, row.entry, { action: 'release', name, token: null });
    } catch (error) {
      log.warn({ name, error }, 'cannot tell the entry that a public name is free; it expires there');
    }
  }

  /** The names of all agents of this node. */
  list(): readonly HeldName[] {
    return this.#deps.store.list().map((row) => this.#view(row));
  }

  /** To be called when an agent is deleted. Its names are deleted with it. */
  forget(): void {
    const names = new Set(this.#deps.store.list().map(({ name }) => name));
    for (const name of new Set(this.#streams.values())) if (!names.has(name)) this.#drop(name);
    this.#changed();
  }

  /** To be called when the connection to a node is lost. */
  onLost(nodeKey: Uint8Array): void {
    const entry = [...this.#kept.keys()].find((aid) => equalBytes(nativePublicKey(aid) ?? new Uint8Array(), nodeKey));
    if (entry === undefined) return;
    this.#deps.store.makeDue(this.#deps.clock.now(), entry);
    this.#queue.soon();
  }

  /** Permits the links of entries, instead of the access list of the agent. @throws SvcError `access_denied` */
  #authorize({ caller, called }: AccessRequest): void {
    const isHeld = this.#deps.store.list().some(({ aid, entry }) => aid === called && entry === caller);
    if (!isHeld) throw new SvcError('access_denied');
  }

  #view(row: PublicNameRow): HeldName {
    const { name, aid, entry, errorCode, errorText, heldAt, seenAt } = row;
    const error = errorCode === null ? null : { code: errorCode, message: errorText ?? '' };
    const state = error === null ? (this.#confirmed.has(name) ? 'held' : 'waiting') : 'failed';
    return { name, aid, entry, state, error, heldAt, seenAt };
  }

  async #confirm({ name, aid, entry }: PublicNameRow, signal: AbortSignal): Promise<void> {
    const { store, clock } = this.#deps;
    try {
      await this.#ask(aid, entry, { action: 'claim', name, token: null }, signal);
    } catch (error) {
      const known = error instanceof SvcError ? error : new SvcError('internal', { cause: error });
      if (!signal.aborted) {
        this.#confirmed.delete(name);
        store.failed(name, known.code, known.message);
        this.#changes.notify();
      }
      throw error;
    }
    const now = clock.now();
    // It may have been released meanwhile.
    if (store.find(name)?.aid !== aid) return;
    store.put({ name, aid, entry, heldAt: now, seenAt: now, dueAt: now + CONFIRM_MS });
    this.#confirmed.add(name);
    this.#changed();
  }

  /** As `#ask`. An entry of a network that this node has just joined may publish its address only now. */
  async #askNew(aid: Aid, entry: Aid, request: NameRequest): Promise<string> {
    const { signal } = this.#stop;
    for (let tries = 1; ; tries++) {
      try {
        return await this.#ask(aid, entry, request, signal);
      } catch (error) {
        if (!isUnresolved(error) || tries >= FIND_TRIES) throw error;
        await pause(this.#deps.clock, FIND_PAUSE_MS, signal);
      }
    }
  }

  /** Sends a request to an entry. Returns the whole name. */
  async #ask(aid: Aid, entry: Aid, request: NameRequest, signal?: AbortSignal): Promise<string> {
    // protocol-public.md, steps 1 to 3
    const { links, clock } = this.#deps;
    using limit = awakeTimeout(clock, ASK_TIMEOUT_MS, signal);
    const first = { bytes: () => encodeNameRequest(request) };
    const link = await links.open(aid, entry, 'entry', { first, signal: limit.signal }).catch((error: unknown) => {
      const isDenied = error instanceof SvcError && (error.code === 'access_denied' || error.code === 'protocol_error');
      throw isDenied ? new SvcError('entry_denied', { cause: error }) : error;
    });
    link.on('error', () => {});
    try {
      const answer = decodeNameAnswer(await readFrame(link, MAX_NAME_MESSAGE_BYTES, limit.signal));
      if (answer === null) throw new ProtocolBreach('The answer of an entry is malformed.');
      if (answer.verdict !== 'ok') throw new SvcError(REFUSALS[answer.verdict]);
      const { name } = answer;
      const isAsked = name === request.name || name.startsWith(`${request.name}.`);
      if (!isAsked || !isPublicName(name)) throw new ProtocolBreach('An entry confirmed another name.');
      return name;
    } finally {
      link.end();
      drainAndDestroy(link, clock);
    }
  }

  /** Handles a connection that an entry passes on. */
  async #receive(link: LinkStream): Promise<void> {
    // protocol-public.md, steps 6 and 7
    const { clock, store, log } = this.#deps;
    link.on('error', () => {});
    try {
      using limit = awakeTimeout(clock, ASK_TIMEOUT_MS);
      const header = decodeConnection(await readFrame(link, MAX_NAME_MESSAGE_BYTES, limit.signal));
      if (header === null) throw new ProtocolBreach('The header of a public connection is malformed.');
      const row = store.find(header.name);
      const isHeld = row?.aid === link.called && row.entry === link.caller;
      const hasRoom = this.#streams.size < MAX_PUBLIC_CONNECTIONS;
      if (!isHeld || !hasRoom || this.#accept === null) return void link.destroy();
      this.#streams.set(link, header.name);
      link.once('close', () => this.#streams.delete(link));
      this.#accept({ ...header, aid: link.called, entry: link.caller }, link);
    } catch (error) {
      log.debug({ entry: link.caller, error }, 'a public connection failed');
      link.destroy();
    }
  }

  #drop(name: string): void {
    this.#confirmed.delete(name);
    for (const [link, of] of this.#streams) if (of === name) link.destroy();
  }

  #changed(): void {
    this.#keepEntries();
    this.#queue.soon();
    this.#changes.notify();
  }

  /** Keeps the connections to the entries of all names open, so that the first byte of a client does not wait for one. */
  #keepEntries(): void {
    const entries = new Set(this.#deps.store.list().map(({ entry }) => entry));
    for (const [entry, end] of this.#kept)
      if (!entries.has(entry)) {
        this.#kept.delete(entry);
        end();
      }
    for (const entry of entries) {
      const key = this.#kept.has(entry) ? null : nativePublicKey(entry);
      if (key !== null) this.#kept.set(entry, this.#deps.keep(key));
    }
  }
}
