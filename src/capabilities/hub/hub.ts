/**
 * The hub: tools of other agents behind three operations. It reads lists of tools when they are needed, shows only
 * definitions that the owner accepted, and calls a tool only while its agent offers exactly the accepted definition.
 */
import { type Backoff, backoff, isWaiting } from '../../foundation/backoff.ts';
import { isoTime } from '../../foundation/clock.ts';
import { Semaphore } from '../../foundation/concurrency.ts';
import { abortable, deadline } from '../../foundation/deadline.ts';
import {
  HUB_CHANGE_ID_CHARS,
  HUB_FOUND_PART,
  HUB_TOOL_KINDS,
  type HubOrigin,
  type HubState,
  type HubToolKind,
  MAX_HUB_AGENT_BYTES,
  MAX_HUB_ARGUMENT_BYTES,
  MAX_HUB_BOOK,
  MAX_HUB_BYTES,
  MAX_HUB_CALLS,
  MAX_HUB_DECISIONS,
  MAX_HUB_FOUND,
  MAX_HUB_NAMED,
  MAX_HUB_RESULT_CHARS,
  MAX_HUB_TOOLS,
  MAX_HUB_TOOLS_PER_AGENT,
} from '../../foundation/domain/hub.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import { memberOf } from '../../foundation/json.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { HubSource, HubStore, HubTool } from '../../foundation/store/hub.ts';
import type { A2aSkills } from './a2a-skills.ts';
import {
  defineTool,
  indexTexts,
  type NewDefinition,
  parameterSummary,
  readDefinition,
  type ToolDefinition,
} from './definition.ts';
import type { HubCall, McpServers, Pair } from './mcp-servers.ts';
import { distinctFirst, SearchIndex } from './search-index.ts';

/** A list of tools is used for this long, in milliseconds. */
const LIST_FRESH_MS = 300_000;
/** A call requires a list that is at most this old, in milliseconds. */
const CALL_FRESH_MS = 10_000;
/** Requests for lists after failures: of an agent that is away, and of one without tools or access. */
const AWAY: Backoff = { firstMs: 60_000, maxMs: 3_600_000 };
const USELESS: Backoff = { firstMs: 3_600_000, maxMs: 86_400_000 };
/** A search waits this long for lists, in milliseconds. Later lists are in the next search. */
const SEARCH_WAIT_MS = 4_000;
/** Time limit for reading all tools of an agent, in milliseconds. */
const LIST_TIMEOUT_MS = 30_000;
/** Agents whose lists are read at the same time. */
const CONCURRENT_LISTS = 8;
/** Agents that a search of the network adds. */
const FOUND_PER_SEARCH = 16;
/** Search indexes in memory, one for each local agent. */
const MAX_INDEXES = 8;
/** Longest description in a result of a search, in characters. */
const MAX_EXCERPT_CHARS = 240;
/** Weight of a match at an agent that the owner did not name. */
const FOUND_FACTOR = 0.8;
/** Agents that a search names as away. */
const MAX_AWAY_NAMED = 5;
/** JSON-RPC errors of a server that no longer has a tool: unknown method, invalid parameters. */
const NO_SUCH_TOOL: ReadonlySet<unknown> = new Set([-32601, -32602]);
/** Marks the skills of an A2A agent in a reference. */
const SKILL_PREFIX = 'skill:';

const FAILED_STATES: Readonly<Record<string, HubState>> = {
  access_denied: 'denied',
  no_inbound: 'none',
  tunnels_only: 'none',
  bad_response: 'none',
  inbound_unreachable: 'away',
};

export interface HubDependencies extends NodeParts {
  readonly store: HubStore;
  readonly mcp: Pick<McpServers, 'list' | 'call' | 'stop'>;
  readonly a2a: Pick<A2aSkills, 'list' | 'call'>;
  /** AID → label, from the address book. */
  readonly labels: () => Readonly<Record<string, string>>;
  /** Agents on the network that match a text. */
  readonly findAgents: (text: string, limit: number, signal: AbortSignal) => Promise<readonly Aid[]>;
  /** Definitions wait for the owner. */
  readonly onHeld: (pair: Pair, held: { readonly changed: number; readonly unaccepted: number }) => void;
}

/** A tool that an agent may call, with everything that names it. */
interface Found {
  readonly source: HubSource;
  readonly tool: HubTool;
}

export interface FindRequest {
  readonly query: string;
  readonly limit: number;
  /** `known`, `network`, or an agent: its label or AID. */
  readonly from: string;
}

/** A search or a change of the owner names an agent that the hub does not know. */
function unknownAgent(): SvcError {
  return new SvcError('not_found', {
    thing: 'agent',
    message: 'The hub knows no such agent. Add it with "svc mcp hub add <agent>".',
  });
}

function unknownTool(): SvcError {
  return new SvcError('not_found', {
    thing: 'tool',
    message: 'The hub has no such tool. Search again with find_tools and copy the name of the tool.',
  });
}

export class Hub {
  readonly #deps: HubDependencies;
  readonly #indexes = new Map<Aid, SearchIndex>();
  /** The agents whose lists are being read. */
  readonly #reading = new Map<string, Promise<void>>();
  readonly #lists = new Semaphore(CONCURRENT_LISTS);
  readonly #ending = new AbortController();
  #calls = 0;

  constructor(dependencies: HubDependencies) {
    this.#deps = dependencies;
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    this.#ending.abort(new SvcError('cancelled'));
    await Promise.allSettled(this.#reading.values());
    await this.#deps.mcp.stop();
    for (const index of this.#indexes.values()) index.close();
    this.#indexes.clear();
  }

  /** A server reported that its tools changed: the next use reads its list. */
  changed({ local, remote }: Pair): void {
    const source = this.#deps.store.source(local, remote);
    if (source?.state === 'ok' && source.nextAt > 0) this.#deps.store.setDue(source.id, 0);
  }

  // The three operations of a model.

  /**
   * Finds tools by keywords, the best first.
   * @throws SvcError `not_found` if `from` names an unknown agent, `cancelled`
   */
  async find(local: Aid, { query, limit, from }: FindRequest, signal: AbortSignal) {
    const { store, clock, findAgents } = this.#deps;
    this.#addBook(local);
    const only = from === 'known' || from === 'network' ? null : this.#agentNamed(local, from)?.aid;
    if (only === undefined) throw unknownAgent();
    if (from === 'network') {
      const agents = await findAgents(query, FOUND_PER_SEARCH, signal);
      store.transaction(() => {
        for (const aid of agents)
          if (aid !== local && store.source(local, aid) === null) store.putSource(local, aid, 'found', clock.now());
        store.evictFound(local, MAX_HUB_FOUND, Object.keys(this.#deps.labels()));
      });
    }
    const sources = this.#active(local).filter(({ aid }) => only === null || aid === only);
    await this.#refresh(sources, signal);
    const current = new Map(this.#active(local).map((source) => [source.id, source]));
    const matches = this.#index(local, [...current.values()])
      .search(query, only === null ? undefined : sources[0]?.id)
      .flatMap(({ id, score }) => {
        const tool = store.toolById(id);
        const source = tool === null ? undefined : current.get(tool.source);
        if (tool === null || source === undefined || !isOffered(tool)) return [];
        if (only !== null && source.aid !== only) return [];
        return [{ source, tool, score: source.origin === 'found' ? score * FOUND_FACTOR : score }];
      })
      .sort((a, b) => b.score - a.score);
    const shown = this.#within(distinctFirst(matches, acceptedOf), limit);
    const held = store.heldCount(local);
    const away = sources
      .map(({ id }) => current.get(id))
      .filter((source) => source?.state === 'away' && source.origin !== 'found')
      .flatMap((source) => (source === undefined ? [] : [this.#nameOf(source.aid)]));
    return {
      tools: shown,
      more: matches.length - shown.length,
      ...(held === 0 ? {} : { waiting_for_owner: held }),
      ...(away.length === 0 ? {} : { away: away.slice(0, MAX_AWAY_NAMED) }),
    };
  }

  /** The accepted definition of a tool. @throws SvcError `not_found`, `not_accepted` */
  describe(local: Aid, reference: string) {
    const { source, tool } = this.#tool(local, reference);
    const { accepted } = tool;
    if (accepted === null || !isOffered(tool)) throw notCallable(tool);
    const { name: _name, inputSchema, outputSchema, ...details } = readDefinition(accepted.json);
    return {
      tool: this.#reference(source, tool),
      aid: source.aid,
      kind: tool.kind,
      ...details,
      input_schema: inputSchema,
      ...(outputSchema === undefined ? {} : { output_schema: outputSchema }),
      accepted_at: isoTime(accepted.at),
      away: source.state === 'away',
    };
  }

  /**
   * Calls a tool, if its agent offers it as accepted.
   * @returns the result of the server, and its agent
   * @throws SvcError `not_found`, `not_accepted`, `too_large`, `rate_limited`, `cancelled`, errors of a call; the
   *   JSON-RPC error of the server, which has a numeric `code`
   */
  async call(local: Aid, reference: string, { args, ...rest }: Omit<HubCall, 'name'>) {
    const { store, mcp, a2a } = this.#deps;
    if (Buffer.byteLength(JSON.stringify(args)) > MAX_HUB_ARGUMENT_BYTES)
      throw new SvcError('too_large', { message: `Arguments can have at most ${MAX_HUB_ARGUMENT_BYTES} bytes.` });
    if (this.#calls >= MAX_HUB_CALLS)
      throw new SvcError('rate_limited', {
        message: `${MAX_HUB_CALLS} calls of the hub are pending. Try again later.`,
      });
    this.#calls++;
    try {
      const { source, kind } = this.#named(local, reference);
      const pair = { local, remote: source.aid };
      if (source.state !== 'ok' || source.nextAt === 0 || !this.#isFresh(source)) {
        await abortable(this.#read(source, [kind]), rest.signal);
        const { state, error } = store.source(local, source.aid) ?? source;
        if (state !== 'ok') throw cannotCall(error);
      }
      const { tool } = this.#tool(local, reference);
      if (!isOffered(tool)) throw notCallable(tool);
      const call = { name: tool.name, args, ...rest };
      try {
        const result = await (tool.kind === 'mcp' ? mcp.call(pair, call) : a2a.call(pair, call));
        return { aid: source.aid, result };
      } catch (error) {
        // The server may have been replaced: the next search reads its list.
        if (NO_SUCH_TOOL.has(memberOf(error, 'code'))) store.setDue(source.id, 0);
        throw error;
      }
    } finally {
      this.#calls--;
    }
  }

  // Lists and decisions of the owner.

  /** The agents of the hub with their tools in numbers. Agents that lost their label are not among them. */
  sources(local: Aid) {
    const { store } = this.#deps;
    this.#addBook(local);
    const shown = store.sources(local).filter((source) => source.origin === 'removed' || this.#isActive(source));
    return shown.map((source) => {
      return {
        aid: source.aid,
        origin: this.#originOf(source),
        state: source.state,
        error: source.error,
        listed_at: source.listedAt === null ? null : isoTime(source.listedAt),
        ...store.counts(source.id),
        skipped: source.skipped,
      };
    });
  }

  /**
   * Adds an agent and reads its tools. If the hub has not listed it before, they are accepted as they are: the owner
   * named it. Otherwise only the definitions that it listed before are accepted.
   * @throws SvcError `self`, `quota_exceeded`, `cancelled`, and the reason why its tools cannot be read
   */
  async add(local: Aid, aid: Aid, signal: AbortSignal) {
    const { store, clock } = this.#deps;
    if (aid === local) throw new SvcError('self');
    const named = store.sources(local).filter(({ origin, aid: other }) => origin === 'named' && other !== aid);
    if (named.length >= MAX_HUB_NAMED)
      throw new SvcError('quota_exceeded', {
        message: `The hub can have at most ${MAX_HUB_NAMED} added agents. Remove one with "svc mcp hub rm".`,
      });
    store.putSource(local, aid, 'named', clock.now());
    const source = store.source(local, aid);
    if (source !== null) await abortable(this.#read(source), signal);
    const [added] = this.sources(local).filter((one) => one.aid === aid);
    if (added === undefined) throw unknownAgent();
    return added;
  }

  /**
   * Reads the tools of an agent, or of all agents, without waiting until they are due.
   * @throws SvcError `not_found` if the hub does not use the agent, `cancelled`
   */
  async refresh(local: Aid, aid: Aid | undefined, signal: AbortSignal) {
    this.#addBook(local);
    const chosen = this.#active(local).filter((source) => aid === undefined || source.aid === aid);
    if (aid !== undefined && chosen.length === 0) throw unknownAgent();
    await abortable(Promise.all(chosen.map((source) => this.#read(source))), signal);
    const aids = new Set<string>(chosen.map((source) => source.aid));
    return this.sources(local).filter((one) => aids.has(one.aid));
  }

  /**
   * Removes an agent and its accepted definitions. A labeled agent stays removed, and refused definitions stay refused.
   * @throws SvcError `not_found`
   */
  async remove(local: Aid, aid: Aid): Promise<void> {
    const { store, clock, mcp } = this.#deps;
    this.#addBook(local);
    const source = store.source(local, aid);
    if (source === null || source.origin === 'removed') throw unknownAgent();
    store.transaction(() => {
      store.deleteSource(source.id);
      store.dropAccepted(source);
      if (this.#deps.labels()[aid] !== undefined) store.putSource(local, aid, 'removed', clock.now());
    });
    await mcp.stop({ local, remote: aid });
  }

  /** The definitions that wait for the owner, the oldest first. */
  changes(local: Aid) {
    return this.#deps.store.held(local).map(({ source, tool }) => {
      const { accepted, offered } = tool;
      return {
        id: (offered?.hash ?? '').slice(0, HUB_CHANGE_ID_CHARS),
        aid: source.aid,
        tool: this.#reference(source, tool),
        at: isoTime(offered?.at ?? 0),
        before: accepted === null ? null : viewOf(readDefinition(accepted.json)),
        after: viewOf(readDefinition(offered?.json ?? '{}')),
      };
    });
  }

  /**
   * Accepts or refuses one waiting definition, by the ID of exactly this definition. The decision is kept, also if the
   * tool disappears.
   * @throws SvcError `not_found`, `quota_exceeded`
   */
  decide(local: Aid, id: string, isAccepted: boolean) {
    const { store, clock } = this.#deps;
    const [found] = id.length === HUB_CHANGE_ID_CHARS ? store.held(local, id) : [];
    const offered = found?.tool.offered;
    if (found === undefined || !offered)
      throw new SvcError('not_found', {
        message: 'No definition with this ID is waiting. It may have changed again: see "svc mcp hub changes".',
      });
    const { source, tool } = found;
    const decided = store.decisions(source);
    if (decided.size >= MAX_HUB_DECISIONS && !decided.has(offered.hash))
      throw new SvcError('quota_exceeded', {
        message: `The hub keeps at most ${MAX_HUB_DECISIONS} decisions about one agent. Remove the agent with "svc mcp hub rm" to forget what was accepted.`,
      });
    store.transaction(() => {
      store.setDecision(source, offered.hash, isAccepted);
      if (!isAccepted) return store.putTool({ ...tool, refusedHash: offered.hash });
      // The earlier definition of the tool counts as changed if it returns.
      if (tool.accepted !== null) store.dropDecision(source, tool.accepted.hash);
      store.putTool({ ...tool, accepted: { ...offered, at: clock.now() }, offered: null, refusedHash: null });
    });
    this.#fill(source);
    return { aid: source.aid, tool: this.#reference(source, tool) };
  }

  // Sources.

  #originOf({ aid, origin }: HubSource): HubOrigin {
    return origin === 'found' && this.#deps.labels()[aid] !== undefined ? 'book' : origin;
  }

  /** Whether the owner chose an agent: by name, by a label, or by a tool that it accepted. */
  isChosen({ local, remote }: Pair): boolean {
    const { store } = this.#deps;
    const source = store.source(local, remote);
    if (source === null) return false;
    return this.#originOf(source) !== 'found' || store.tools(source.id).some(({ accepted }) => accepted !== null);
  }

  /** Adds agents that have a label. */
  #addBook(local: Aid): void {
    const { store, clock, labels } = this.#deps;
    const known = new Set(store.sources(local).map(({ aid }) => aid));
    const labeled = Object.keys(labels()).slice(0, MAX_HUB_BOOK);
    const added = labeled.map((text) => parseAid(text)).filter((aid) => aid !== local && !known.has(aid));
    if (added.length === 0) return;
    store.transaction(() => {
      for (const aid of added) store.putSource(local, aid, 'book', clock.now());
    });
  }

  /** The agents whose tools may be used now. */
  #active(local: Aid): HubSource[] {
    return this.#deps.store.sources(local).filter((source) => this.#isActive(source));
  }

  #isActive({ aid, origin }: HubSource): boolean {
    return origin !== 'removed' && (origin !== 'book' || this.#deps.labels()[aid] !== undefined);
  }

  /** The agent with this label or AID, if its tools may be used now. */
  #agentNamed(local: Aid, text: string): HubSource | undefined {
    const aid = Object.keys(this.#deps.labels()).find((one) => this.#nameOf(one) === text) ?? text;
    const source = this.#deps.store.source(local, aid);
    return source !== null && this.#isActive(source) ? source : undefined;
  }

  /** The label of an agent, which only the owner chooses, or its AID. */
  #nameOf(aid: string): string {
    const label = this.#deps.labels()[aid];
    // A reference is split at its first slash.
    return label === undefined || label.includes('/') ? aid : label;
  }

  #reference({ aid }: Pick<HubSource, 'aid'>, { kind, name }: Pick<HubTool, 'kind' | 'name'>): string {
    return `${this.#nameOf(aid)}/${kind === 'a2a' ? SKILL_PREFIX : ''}${name}`;
  }

  /** The agent of a reference, and the name of the tool there. @throws SvcError `not_found` */
  #named(local: Aid, reference: string): { source: HubSource; kind: HubToolKind; name: string } {
    const at = reference.indexOf('/');
    const source = this.#agentNamed(local, reference.slice(0, Math.max(at, 0)));
    if (source === undefined) throw unknownTool();
    const rest = reference.slice(at + 1);
    const isSkill = rest.startsWith(SKILL_PREFIX);
    return { source, kind: isSkill ? 'a2a' : 'mcp', name: isSkill ? rest.slice(SKILL_PREFIX.length) : rest };
  }

  /** The tool of a reference. @throws SvcError `not_found` */
  #tool(local: Aid, reference: string): Found {
    const { store } = this.#deps;
    const { source, kind, name } = this.#named(local, reference);
    const tool = store.tool(source.id, kind, name);
    if (tool !== null) return { source, tool };
    // The agent may offer it by now: the next search reads its list.
    if (!this.#isFresh(source)) store.setDue(source.id, 0);
    throw unknownTool();
  }

  /** True if the list of an agent is recent enough for a call. */
  #isFresh({ listedAt }: HubSource): boolean {
    const age = this.#deps.clock.now() - (listedAt ?? 0);
    return age >= 0 && age <= CALL_FRESH_MS;
  }

  // Lists of tools.

  /** Reads the lists that are due, and waits for a part of a search. */
  async #refresh(sources: readonly HubSource[], signal: AbortSignal): Promise<void> {
    const now = this.#deps.clock.now();
    const due = sources.filter(({ nextAt }) => !isWaiting(nextAt, now, USELESS.maxMs));
    if (due.length === 0) return;
    using limit = deadline(this.#deps.clock, SEARCH_WAIT_MS, signal);
    // Unknown agents that do not answer must not delay other lists.
    const isUnknown = (source: HubSource): number => Number(this.#originOf(source) === 'found');
    const ordered = due.toSorted((a, b) => isUnknown(a) - isUnknown(b));
    const all = Promise.all(ordered.map((source) => this.#read(source)));
    try {
      await abortable(all, limit.signal);
    } catch (error) {
      if (signal.aborted || !limit.signal.aborted) throw error;
    }
  }

  /** Reads the tools of an agent. Requests at the same time share the work. Never rejects. */
  #read(source: HubSource, kinds: readonly HubToolKind[] = HUB_TOOL_KINDS): Promise<void> {
    const key = [source.local, source.aid, ...kinds].join(' ');
    const running = this.#reading.get(key);
    if (running !== undefined) return running;
    const work = (): Promise<void> => this.#readNow(source, kinds);
    // A call, which reads one kind, does not wait until slow agents have sent their lists.
    const reading = (kinds === HUB_TOOL_KINDS ? this.#lists.run(work, this.#ending.signal) : work())
      .catch((err: unknown) => {
        if (!this.#ending.signal.aborted) this.#deps.log.error({ err }, 'reading the tools of an agent failed');
      })
      .finally(() => this.#reading.delete(key));
    this.#reading.set(key, reading);
    return reading;
  }

  async #readNow({ id, local, aid }: HubSource, kinds: readonly HubToolKind[]): Promise<void> {
    const { store, clock, mcp, a2a } = this.#deps;
    using limit = awakeTimeout(clock, LIST_TIMEOUT_MS, this.#ending.signal);
    const pair = { local, remote: aid };
    const [ofServer, ofCard] = await Promise.allSettled([
      kinds.includes('mcp') ? mcp.list(pair, limit.signal) : [],
      kinds.includes('a2a') ? a2a.list(pair, limit.signal) : [],
    ]);
    if (this.#ending.signal.aborted) return;
    const source = store.source(local, aid);
    if (source === null || source.id !== id) return;
    const cards = ofCard.status === 'fulfilled' ? ofCard.value : [];
    // An agent with a card of skills needs no MCP server.
    const failed = kinds.includes('mcp') ? ofServer : ofCard;
    if (failed.status === 'rejected' && cards.length === 0) return this.#failed(source, failed.reason);
    const definitions = [
      ...(ofServer.status === 'fulfilled' ? ofServer.value : []).map((one) => defineTool(aid, 'mcp', one)),
      ...cards.map((one) => defineTool(aid, 'a2a', one)),
    ];
    const complete = kinds.filter((kind) => (kind === 'mcp' ? ofServer : ofCard).status === 'fulfilled');
    this.#take(source, definitions, complete);
  }

  #failed(source: HubSource, failure: unknown): void {
    const { store, clock } = this.#deps;
    const code = failure instanceof SvcError ? failure.code : 'bad_response';
    const state = FAILED_STATES[code] ?? 'away';
    const failures = source.failures + 1;
    const wait = backoff(state === 'away' || source.origin === 'named' ? AWAY : USELESS, failures);
    store.setOutcome(source.id, { state, error: code, nextAt: clock.now() + wait, failures });
  }

  /** Stores the tools that an agent lists now. @param complete the kinds whose list is complete */
  #take(source: HubSource, listed: readonly (NewDefinition | null)[], complete: readonly HubToolKind[]): void {
    const { store, clock } = this.#deps;
    const now = clock.now();
    const isTrusted = this.#originOf(source) !== 'found';
    const known = store.tools(source.id);
    const heldBefore = new Set(known.filter(isHeld).map(({ offered }) => offered?.hash));
    const { kept, skipped } = fitting(listed, roomIn(store.totals(source.id), isTrusted));
    const decided = new Map(store.decisions(source));
    // Later additions and changes wait for the owner.
    const isFirst = isTrusted && source.trustedAt === null && kept.length > 0;
    let isChanged = false;
    const accepts = ({ hash }: NewDefinition, old: HubTool | undefined): boolean => {
      const decision = decided.get(hash);
      if (decision !== undefined) return decision;
      // Of an agent that was listed before the owner named it, only definitions that the owner could read are accepted.
      const isShown = known.length === 0 || old?.offered?.hash === hash;
      if (!isFirst || !isShown || old?.accepted || decided.size >= MAX_HUB_DECISIONS) return false;
      decided.set(hash, true);
      store.setDecision(source, hash, true);
      return true;
    };
    const put = (tool: Omit<HubTool, 'id'>, old: HubTool | undefined): void => {
      if (old !== undefined && isSame(tool, old)) return;
      store.putTool(tool);
      isChanged = true;
    };
    store.transaction(() => {
      const before = new Map(known.map((tool) => [keyOf(tool), tool]));
      for (const definition of kept) {
        const old = before.get(keyOf(definition));
        before.delete(keyOf(definition));
        const isRefused = decided.get(definition.hash) === false;
        put(taken(source.id, definition, old, { now, isAccepted: accepts(definition, old), isRefused }), old);
      }
      // The accepted definition of a tool that disappears stays for comparison. Decisions are kept in any case.
      const gone = [...before.values()].filter(({ kind }) => complete.includes(kind));
      // After an empty list, the next one of an agent that is not trusted yet must not count as its first.
      const trace = isTrusted || kept.length > 0 ? undefined : gone[0];
      for (const tool of gone)
        if (tool.accepted === null && tool !== trace) store.deleteTool(tool.id);
        else put({ ...tool, offered: null, present: false }, tool);
      const surplus = gone.slice(0, Math.max(0, kept.length + gone.length - MAX_HUB_TOOLS_PER_AGENT));
      for (const tool of surplus) store.deleteTool(tool.id);
      if (isFirst) store.setTrusted(source.id, now);
      store.setOutcome(source.id, {
        state: 'ok',
        error: null,
        listedAt: now,
        nextAt: now + LIST_FRESH_MS,
        failures: 0,
        skipped,
      });
    });
    // The index also contains the label, which may be new.
    if (isChanged || complete.length === HUB_TOOL_KINDS.length) this.#fill(source);
    if (!isChanged) return;
    const held = store.tools(source.id).filter((tool) => isHeld(tool) && !heldBefore.has(tool.offered?.hash));
    if (held.length === 0) return;
    const changed = held.filter(({ accepted }) => accepted !== null).length;
    this.#deps.onHeld({ local: source.local, remote: source.aid }, { changed, unaccepted: held.length - changed });
  }

  // The search index.

  #index(local: Aid, sources: readonly HubSource[]): SearchIndex {
    const index = this.#indexes.get(local) ?? new SearchIndex();
    const current = new Set(sources.map(({ id }) => id));
    const indexed = new Set(index.sources());
    for (const id of indexed) if (!current.has(id)) index.remove(id);
    for (const source of sources) if (!indexed.has(source.id)) this.#fillInto(index, source);
    // The index used last is the newest entry.
    this.#indexes.delete(local);
    this.#indexes.set(local, index);
    for (const [oldest, old] of this.#indexes) {
      if (this.#indexes.size <= MAX_INDEXES) break;
      this.#indexes.delete(oldest);
      old.close();
    }
    return index;
  }

  #fill(source: HubSource): void {
    const index = this.#indexes.get(source.local);
    if (index !== undefined) this.#fillInto(index, source);
  }

  #fillInto(index: SearchIndex, source: HubSource): void {
    const agent = this.#deps.labels()[source.aid] ?? '';
    const tools = this.#deps.store.tools(source.id).flatMap((tool) => {
      const { id, accepted } = tool;
      return accepted === null || !isOffered(tool) ? [] : [{ id, agent, ...indexTexts(readDefinition(accepted.json)) }];
    });
    index.replace(source.id, tools);
  }

  /** The first tools, as many as the limits allow. */
  #within(found: readonly Found[], limit: number) {
    const shown: { tool: string; description: string; arguments: string; away?: true }[] = [];
    let chars = 0;
    for (const { source, tool } of found.slice(0, limit)) {
      const definition = readDefinition(tool.accepted?.json ?? '{}');
      const one = {
        tool: this.#reference(source, tool),
        description: excerptOf(definition),
        arguments: parameterSummary(definition),
        ...(source.state === 'away' ? { away: true as const } : {}),
      };
      chars += JSON.stringify(one).length;
      if (chars > MAX_HUB_RESULT_CHARS && shown.length > 0) break;
      shown.push(one);
    }
    return shown;
  }
}

/** True if the agent lists the tool exactly as the owner accepted it. */
function isOffered({ accepted, offered, present }: HubTool): boolean {
  return accepted !== null && offered === null && present;
}

/** True if a definition waits for the owner. */
function isHeld({ offered, refusedHash, present }: HubTool): boolean {
  return present && offered !== null && offered.hash !== refusedHash;
}

/** True if two states of one tool have the same definitions. */
function isSame(a: Omit<HubTool, 'id'>, b: HubTool): boolean {
  return (
    a.present === b.present &&
    a.accepted?.hash === b.accepted?.hash &&
    a.offered?.hash === b.offered?.hash &&
    a.refusedHash === b.refusedHash
  );
}

function keyOf({ kind, name }: Pick<HubTool, 'kind' | 'name'>): string {
  return `${kind} ${name}`;
}

interface Amount {
  readonly tools: number;
  readonly bytes: number;
}

/** The room for one agent in a catalog with these definitions of other agents. */
function roomIn({ all, found }: { readonly all: Amount; readonly found: Amount }, isTrusted: boolean): Amount {
  const room = { tools: MAX_HUB_TOOLS - all.tools, bytes: MAX_HUB_BYTES - all.bytes };
  if (isTrusted) return room;
  return {
    tools: Math.min(room.tools, MAX_HUB_TOOLS * HUB_FOUND_PART - found.tools),
    bytes: Math.min(room.bytes, MAX_HUB_BYTES * HUB_FOUND_PART - found.bytes),
  };
}

/** The definitions that fit the limits. Of two tools with one name, the first counts. */
function fitting(
  listed: readonly (NewDefinition | null)[],
  room: Amount,
): { readonly kept: readonly NewDefinition[]; readonly skipped: number } {
  const kept = new Map<string, NewDefinition>();
  let bytes = 0;
  for (const one of listed) {
    if (one === null || kept.has(keyOf(one)) || kept.size >= MAX_HUB_TOOLS_PER_AGENT) continue;
    const size = bytes + Buffer.byteLength(one.json);
    const isFull = kept.size >= room.tools || size > room.bytes;
    if (size > MAX_HUB_AGENT_BYTES || isFull) continue;
    bytes = size;
    kept.set(keyOf(one), one);
  }
  return { kept: [...kept.values()], skipped: listed.length - kept.size };
}

/** A tool after its agent listed this definition. */
function taken(
  source: number,
  { kind, name, json, hash }: NewDefinition,
  old: HubTool | undefined,
  { now, isAccepted, isRefused }: Readonly<Record<'isAccepted' | 'isRefused', boolean>> & { readonly now: number },
): Omit<HubTool, 'id'> {
  const base = { source, kind, name, present: true, refusedHash: isRefused ? hash : null };
  const accepted = old?.accepted ?? null;
  if (accepted?.hash === hash) return { ...base, accepted, offered: null };
  if (isAccepted) return { ...base, accepted: { json, hash, at: now }, offered: null };
  const offered = old?.offered?.hash === hash ? old.offered : { json, hash, at: now };
  return { ...base, accepted, offered };
}

function acceptedOf({ tool }: Found): ToolDefinition {
  return readDefinition(tool.accepted?.json ?? '{}');
}

function excerptOf({ title, description }: ToolDefinition): string {
  const text = (description ?? title ?? '').replaceAll(/\s+/gu, ' ').trim();
  const characters = Array.from(text.slice(0, 2 * MAX_EXCERPT_CHARS));
  return characters.length <= MAX_EXCERPT_CHARS ? text : `${characters.slice(0, MAX_EXCERPT_CHARS - 1).join('')}…`;
}

/** A definition for the owner. */
function viewOf({ title, description, inputSchema, outputSchema, annotations }: ToolDefinition) {
  return {
    title: title ?? '',
    description: description ?? '',
    input_schema: inputSchema,
    output_schema: outputSchema ?? null,
    annotations: annotations ?? null,
  };
}

function notCallable({ accepted, present }: HubTool): SvcError {
  if (!present)
    return new SvcError('not_found', { thing: 'tool', message: 'The agent does not offer this tool at present.' });
  return new SvcError('not_accepted', {
    message:
      accepted === null
        ? 'The owner has not accepted this tool yet. Ask the owner to review it with "svc mcp hub changes".'
        : 'The agent changed this tool since the owner accepted it. Ask the owner to review the change with "svc mcp hub changes".',
  });
}

/** The error for a call to an agent whose list could not be read now. */
function cannotCall(code: string | null): SvcError {
  if (code === 'access_denied') return new SvcError('access_denied');
  if (code === 'no_inbound') return new SvcError('no_inbound');
  return new SvcError('connect_failed', {
    message: `The agent of this tool is away${code === null ? '' : ` (${code})`}. Nothing was called. Try again later.`,
  });
}
