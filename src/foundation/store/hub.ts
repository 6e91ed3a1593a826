/** The catalog of the MCP hub: agents with tools, and the accepted and the offered definition of each tool. */
import { toHex } from '../bytes.ts';
import { HUB_ORIGINS, HUB_STATES, HUB_TOOL_KINDS, type HubOrigin, type HubToolKind } from '../domain/hub.ts';
import type { Aid } from '../identity/aid.ts';
import { blobOf, flagOf, orZero } from './row.ts';
import type { Store } from './store.ts';
import { aid, flag, integer, named, nullable, type RowOf, Table, text, word } from './table.ts';

const SOURCE = new Table('hub_sources', {
  id: integer,
  local: named('local_aid', aid),
  aid,
  origin: word(HUB_ORIGINS),
  state: word(HUB_STATES),
  /** Code of the last failure. */
  error: nullable(text),
  /** Unix milliseconds of the last complete list. */
  listedAt: nullable(integer),
  /** Unix milliseconds of the next request. */
  nextAt: integer,
  failures: integer,
  /** Tools that exceeded a limit. */
  skipped: integer,
  /** Unix milliseconds at which the first list with tools was accepted. */
  trustedAt: nullable(integer),
});

export type HubSource = RowOf<typeof SOURCE>;

/** The outcome of a request for tools. */
export type HubOutcome = Pick<HubSource, 'state' | 'error' | 'listedAt' | 'nextAt' | 'failures' | 'skipped'>;

/** One definition: its canonical JSON and its hash. */
export interface HubDefinition {
  readonly json: string;
  readonly hash: string;
  /** Unix milliseconds at which it was accepted or first offered. */
  readonly at: number;
}

const TOOL = new Table('hub_tools', {
  id: integer,
  source: integer,
  kind: word(HUB_TOOL_KINDS),
  name: text,
  accepted: nullable(text),
  acceptedHash: nullable(text),
  acceptedAt: nullable(integer),
  offered: nullable(text),
  offeredHash: nullable(text),
  offeredAt: nullable(integer),
  refusedHash: nullable(text),
  /** The last list contained it. */
  present: flag,
  /** Bytes of its definitions. */
  size: integer,
});

type ToolRow = RowOf<typeof TOOL>;

export interface HubTool extends Pick<ToolRow, 'id' | 'source' | 'kind' | 'name' | 'refusedHash' | 'present'> {
  readonly accepted: HubDefinition | null;
  /** The definition that the agent offers instead of the accepted one. */
  readonly offered: HubDefinition | null;
}

function definitionOf(json: string | null, hash: string | null, at: number | null): HubDefinition | null {
  return json === null || hash === null || at === null ? null : { json, hash, at };
}

function toolOf({ id, source, kind, name, refusedHash, present, ...row }: ToolRow): HubTool {
  const accepted = definitionOf(row.accepted, row.acceptedHash, row.acceptedAt);
  const offered = definitionOf(row.offered, row.offeredHash, row.offeredAt);
  return { id, source, kind, name, accepted, offered, refusedHash, present };
}

export class HubStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  transaction<T>(work: () => T): T {
    return this.#store.transaction(work);
  }

  /** The agents that the hub of a local agent knows, the longest known first. */
  sources(local: Aid): HubSource[] {
    return SOURCE.all(this.#store)`WHERE local_aid = ${local} ORDER BY id`;
  }

  source(local: Aid, aid: string): HubSource | null {
    return SOURCE.one(this.#store)`WHERE local_aid = ${local} AND aid = ${aid}`;
  }

  /** Adds an agent, or changes how the hub knows it. The next request is due now. */
  putSource(local: Aid, aid: Aid, origin: HubOrigin, now: number): void {
    SOURCE.insert(
      this.#store,
      { local, aid, origin, state: 'new', nextAt: now },
      'ON CONFLICT (local_aid, aid) DO UPDATE SET origin = excluded.origin, next_at = excluded.next_at',
    );
  }

  deleteSource(id: number): void {
    this.#store.run`DELETE FROM hub_sources WHERE id = ${id}`;
  }

  /**
   * Deletes the agents found by searches beyond `keep`, the oldest first. Agents with accepted tools or a label stay,
   * and trusted ones: their next list must not count as the first.
   */
  evictFound(local: Aid, keep: number, labeled: readonly string[]): void {
    this.#store.run`
      DELETE FROM hub_sources WHERE id IN (
        SELECT id FROM hub_sources WHERE local_aid = ${local} AND origin = 'found' AND trusted_at IS NULL
          AND aid NOT IN (SELECT value FROM json_each(${JSON.stringify(labeled)})) AND NOT EXISTS (
          SELECT 1 FROM hub_tools WHERE source = hub_sources.id AND accepted_hash IS NOT NULL)
        ORDER BY id DESC LIMIT -1 OFFSET ${keep})`;
  }

  setOutcome(id: number, outcome: Partial<HubOutcome>): void {
    SOURCE.update(this.#store, outcome, 'WHERE id = ?', id);
  }

  /** Stores that the first list of an agent was accepted. */
  setTrusted(id: number, at: number): void {
    this.#store.run`UPDATE hub_sources SET trusted_at = ${at} WHERE id = ${id}`;
  }

  /** The decisions about definitions of an agent: hash → accepted. */
  decisions({ local, aid }: Pick<HubSource, 'local' | 'aid'>): ReadonlyMap<string, boolean> {
    const rows = this.#store.all`
      SELECT hash, accepted FROM hub_decisions WHERE local_aid = ${local} AND aid = ${aid}`;
    return new Map(rows.map((row) => [toHex(blobOf(row, 'hash')), flagOf(row, 'accepted')]));
  }

  /** Stores a decision about a definition. */
  setDecision({ local, aid }: Pick<HubSource, 'local' | 'aid'>, hash: string, isAccepted: boolean): void {
    this.#store.run`
      INSERT INTO hub_decisions (local_aid, aid, hash, accepted)
      VALUES (${local}, ${aid}, ${new Uint8Array(Buffer.from(hash, 'hex'))}, ${isAccepted ? 1 : 0})
      ON CONFLICT DO UPDATE SET accepted = excluded.accepted`;
  }

  /** Forgets one decision, because a later one about the same tool replaced it. */
  dropDecision({ local, aid }: Pick<HubSource, 'local' | 'aid'>, hash: string): void {
    this.#store.run`
      DELETE FROM hub_decisions
      WHERE local_aid = ${local} AND aid = ${aid} AND hash = ${new Uint8Array(Buffer.from(hash, 'hex'))}`;
  }

  /** Forgets the accepted definitions of an agent. Refused ones stay refused. */
  dropAccepted({ local, aid }: Pick<HubSource, 'local' | 'aid'>): void {
    this.#store.run`DELETE FROM hub_decisions WHERE local_aid = ${local} AND aid = ${aid} AND accepted = 1`;
  }

  /** Makes a request for the tools of an agent due. */
  setDue(id: number, nextAt: number): void {
    this.#store.run`UPDATE hub_sources SET next_at = ${nextAt} WHERE id = ${id}`;
  }

  /** All tools of an agent, also those that it no longer lists. */
  tools(source: number): HubTool[] {
    return TOOL.all(this.#store)`WHERE source = ${source} ORDER BY kind, name`.map(toolOf);
  }

  tool(source: number, kind: HubToolKind, name: string): HubTool | null {
    const row = TOOL.one(this.#store)`WHERE source = ${source} AND kind = ${kind} AND name = ${name}`;
    return row === null ? null : toolOf(row);
  }

  toolById(id: number): HubTool | null {
    const row = TOOL.one(this.#store)`WHERE id = ${id}`;
    return row === null ? null : toolOf(row);
  }

  /** Writes a tool with its definitions. */
  putTool(tool: Omit<HubTool, 'id'>): void {
    const { source, kind, name, refusedHash, present } = tool;
    const none = { json: null, hash: null, at: null };
    const { json: accepted, hash: acceptedHash, at: acceptedAt } = tool.accepted ?? none;
    const { json: offered, hash: offeredHash, at: offeredAt } = tool.offered ?? none;
    const size = Buffer.byteLength(accepted ?? '') + Buffer.byteLength(offered ?? '');
    const state = { accepted, acceptedHash, acceptedAt, offered, offeredHash, offeredAt, refusedHash, present, size };
    const known = TOOL.update(this.#store, state, 'WHERE source = ? AND kind = ? AND name = ?', source, kind, name);
    if (known === 0) TOOL.insert(this.#store, { source, kind, name, ...state });
  }

  deleteTool(id: number): void {
    this.#store.run`DELETE FROM hub_tools WHERE id = ${id}`;
  }

  /** The tools of an agent in numbers: usable ones, and definitions that wait for the owner. */
  counts(source: number): { readonly tools: number; readonly changed: number; readonly unaccepted: number } {
    const row = this.#store.one`
      SELECT SUM(offered_hash IS NULL AND accepted_hash IS NOT NULL) AS tools,
        SUM(offered_hash IS NOT NULL AND offered_hash IS NOT refused_hash AND accepted_hash IS NOT NULL) AS changed,
        SUM(offered_hash IS NOT NULL AND offered_hash IS NOT refused_hash AND accepted_hash IS NULL) AS unaccepted
      FROM hub_tools WHERE source = ${source} AND present = 1`;
    return { tools: orZero(row, 'tools'), changed: orZero(row, 'changed'), unaccepted: orZero(row, 'unaccepted') };
  }

  /** Number and bytes of all definitions without those of one agent, and how many are from agents found by searches. */
  totals(without: number) {
    const row = this.#store.one`
      SELECT COUNT(*) AS tools, SUM(size) AS bytes, SUM(origin = 'found') AS found_tools,
        SUM((origin = 'found') * size) AS found_bytes
      FROM hub_tools t JOIN hub_sources s ON s.id = t.source WHERE t.source <> ${without}`;
    return {
      all: { tools: orZero(row, 'tools'), bytes: orZero(row, 'bytes') },
      found: { tools: orZero(row, 'found_tools'), bytes: orZero(row, 'found_bytes') },
    };
  }

  /** The number of definitions that `held` returns. */
  heldCount(local: Aid): number {
    const row = this.#store.one`
      SELECT COUNT(*) AS held FROM hub_tools t JOIN hub_sources s ON s.id = t.source
      WHERE s.local_aid = ${local} AND s.origin <> 'removed' AND t.present = 1 AND t.offered_hash IS NOT NULL
        AND t.offered_hash IS NOT t.refused_hash`;
    return orZero(row, 'held');
  }

  /**
   * The tools with a definition that is neither accepted nor refused, of agents that were not removed.
   * @param hash the beginning of the hash of the definition
   */
  held(local: Aid, hash = ''): { readonly source: HubSource; readonly tool: HubTool }[] {
    const sources = new Map(this.sources(local).map((source) => [source.id, source]));
    return this.#store.all`
      SELECT t.* FROM hub_tools t JOIN hub_sources s ON s.id = t.source
      WHERE s.local_aid = ${local} AND s.origin <> 'removed' AND t.present = 1 AND t.offered_hash IS NOT NULL
        AND t.offered_hash IS NOT t.refused_hash AND t.offered_hash >= ${hash} AND t.offered_hash < ${`${hash}g`}
      ORDER BY t.offered_at, t.id`
      .map((row) => toolOf(TOOL.read(row)))
      .flatMap((tool) => {
        const source = sources.get(tool.source);
        return source === undefined ? [] : [{ source, tool }];
      });
  }
}
