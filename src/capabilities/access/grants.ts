/**
 * Permissions of callers without a full entry in the allow list: one exchange that the owner allowed, calls of some MCP
 * tools, and exchanges in progress.
 */
import { namesCall } from '../../foundation/access-text.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { AskKind } from '../../foundation/domain/access.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { AccessRequestRow, AccessRequestStore } from '../../foundation/store/access-requests.ts';
import type { AccessLists } from './access-lists.ts';
import { type AccessRules, toolsOf } from './rules.ts';

/**
 * An exchange that may begin. `tools` limits it to calls of these MCP tools: other messages of MCP do not use it up.
 */
export interface Grant {
  readonly tools: readonly string[] | null;
  /** See `Admission`. */
  readonly isServer: boolean;
  /** The exchange was allowed once. While it lasts, its caller may open links. */
  readonly isOnce: boolean;
  /** Uses up an exchange that is allowed once; it is on disk when this returns. False if another one was faster. */
  use(): boolean;
}

export class Grants {
  readonly #store: AccessRequestStore;
  readonly #lists: AccessLists;
  readonly #clock: Clock;
  /** Exchanges in progress, by called agent, caller and kind. */
  readonly #running = new Map<string, number>();
  /** Receives the ID of each request whose exchange began. */
  readonly used = new Listeners<[id: string]>();

  constructor(store: AccessRequestStore, lists: AccessLists, clock: Clock) {
    this.#store = store;
    this.#lists = lists;
    this.#clock = clock;
  }

  /**
   * The exchange that a caller may begin now; null if there is none.
   * @param asked method and path of a call, as `askedCall` writes them; null for any
   */
  find(called: Aid, caller: Aid, kind: AskKind, asked: string | null): Grant | null {
    const now = this.#clock.now();
    const listed = kind === 'call' ? listedGrant(this.#lists.rules(called), caller, now) : null;
    if (listed !== null) return listed;
    const row = this.#store
      .allowed(called, caller, kind)
      .find((one) => one.expiresAt > now && (asked === null || isAbout(one, asked)));
    if (row === undefined) return null;
    return { tools: row.tools, isServer: false, isOnce: true, use: () => this.#use(row) };
  }

  /** True if a caller may open links: for an exchange that may begin, or that has begun. */
  mayOpen(called: Aid, caller: Aid, kind: AskKind): boolean {
    return this.#running.has(keyOf(called, caller, kind)) || this.find(called, caller, kind, null) !== null;
  }

  /** Registers an exchange that began. Returns a function for its end. */
  begin(called: Aid, caller: Aid, kind: AskKind): () => void {
    const key = keyOf(called, caller, kind);
    this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const left = (this.#running.get(key) ?? 1) - 1;
      if (left === 0) this.#running.delete(key);
      else this.#running.set(key, left);
    };
  }

  #use({ id }: AccessRequestRow): boolean {
    if (!this.#store.use(id)) return false;
    this.used.notify(id);
    return true;
  }
}

/** True if the owner allowed this call. Tools limit a call in another way: all messages of MCP have one path. */
function isAbout({ kind, asked, tools }: AccessRequestRow, call: string): boolean {
  return kind !== 'call' || tools !== null || (namesCall(asked) && asked === call);
}

/** Calls that the access list allows to a caller without a full entry. */
function listedGrant(rules: AccessRules, caller: Aid, now: number): Grant | null {
  const ofService = rules.serviceCallers.get(caller);
  const tools = ofService === undefined ? toolsOf(rules, caller, now) : ofService.tools;
  if (ofService === undefined && tools === null) return null;
  return { tools, isServer: ofService !== undefined, isOnce: false, use: () => true };
}

function keyOf(called: Aid, caller: Aid, kind: AskKind): string {
  return `${called} ${caller} ${kind}`;
}
