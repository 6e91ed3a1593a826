/**
 * Who is logged in to the web panel: codes that open it once, and the sessions that came of them. All of it is in
 * memory, as hashes, and ends with the daemon.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { newId } from '../../foundation/ids.ts';
import { isPanelToken, PANEL_TOKEN_BYTES, PANEL_TOKEN_PREFIX } from '../../foundation/panel-token.ts';

/** How long a code opens the panel, milliseconds. */
export const PANEL_CODE_LIFE_MS = 60_000;
/** Codes that are open at a time. */
export const MAX_PANEL_CODES = 8;
/** Random bytes of a code. */
const CODE_BYTES = 16;
/** A session ends when it was not used for so long, milliseconds. */
export const PANEL_SESSION_IDLE_MS = 12 * 3_600_000;
/** A session ends so long after its beginning, milliseconds. */
export const PANEL_SESSION_LIFE_MS = 7 * 86_400_000;
/** Sessions at a time; the one that was not used for the longest time gives way. */
export const MAX_PANEL_SESSIONS = 32;

export interface PanelSession {
  readonly id: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
  readonly lastSeenAt: number;
  /** Unless it is used before. */
  readonly expiresAt: number;
}

interface Kept {
  readonly id: string;
  readonly hash: string;
  readonly createdAt: number;
  lastSeenAt: number;
  timer: Timer;
  /** Each cuts what goes on under the session. */
  readonly cuts: Set<() => void>;
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

function expiryOf({ createdAt, lastSeenAt }: Kept): number {
  return Math.min(createdAt + PANEL_SESSION_LIFE_MS, lastSeenAt + PANEL_SESSION_IDLE_MS);
}

function viewOf(session: Kept): PanelSession {
  const { id, createdAt, lastSeenAt } = session;
  return { id, createdAt, lastSeenAt, expiresAt: expiryOf(session) };
}

export class PanelLogins {
  readonly #clock: Clock;
  /** When the code of a hash ends, Unix milliseconds. */
  readonly #codes = new Map<string, number>();
  /** By the hash of the token. */
  readonly #sessions = new Map<string, Kept>();

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /**
   * Makes a code that opens the panel once.
   * @throws SvcError `rate_limited` while too many are open
   */
  openCode(): { readonly code: string; readonly expiresAt: number } {
    const now = this.#clock.now();
    for (const [hash, end] of this.#codes) if (end <= now) this.#codes.delete(hash);
    if (this.#codes.size >= MAX_PANEL_CODES) {
      const wait = Math.ceil((Math.min(...this.#codes.values()) - now) / 1000);
      throw new SvcError('rate_limited', { details: { retry_after_s: wait } });
    }
    const code = randomBytes(CODE_BYTES).toString('base64url');
    const expiresAt = now + PANEL_CODE_LIFE_MS;
    this.#codes.set(hashOf(code), expiresAt);
    return { code, expiresAt };
  }

  /** True for a code that is open; it is not any more. */
  redeem(code: string): boolean {
    const hash = hashOf(code);
    const end = this.#codes.get(hash);
    this.#codes.delete(hash);
    return end !== undefined && end > this.#clock.now();
  }

  /** Begins a session. Its token is known to nobody else and nowhere written. */
  begin(): PanelSession & { readonly token: string } {
    const sessions = [...this.#sessions.values()];
    if (sessions.length >= MAX_PANEL_SESSIONS)
      this.#end(sessions.reduce((oldest, one) => (one.lastSeenAt < oldest.lastSeenAt ? one : oldest)));
    const token = PANEL_TOKEN_PREFIX + randomBytes(PANEL_TOKEN_BYTES).toString('base64url');
    const hash = hashOf(token);
    const now = this.#clock.now();
    const id = newId();
    const timer = this.#timer(hash, PANEL_SESSION_IDLE_MS);
    const session: Kept = { id, hash, createdAt: now, lastSeenAt: now, timer, cuts: new Set() };
    this.#sessions.set(hash, session);
    return { ...viewOf(session), token };
  }

  /** The id of the session that a token is of, which is used by this; null where there is none. */
  holder(token: string): string | null {
    if (!isPanelToken(token)) return null;
    const session = this.#sessions.get(hashOf(token));
    if (session === undefined) return null;
    session.lastSeenAt = this.#clock.now();
    return session.id;
  }

  /** The sessions, the newest first. */
  list(): PanelSession[] {
    return [...this.#sessions.values()].map(viewOf).reverse();
  }

  /** Ends a session and what goes on under it. @throws SvcError `not_found` */
  end(id: string): void {
    this.#end(this.#byId(id));
  }

  /** Ends all sessions, and closes all codes. */
  endAll(): void {
    this.#codes.clear();
    for (const session of [...this.#sessions.values()]) this.#end(session);
  }

  /** Has `cut` called when a session ends; what it returns takes that back. */
  whenEnds(id: string, cut: () => void): () => void {
    const { cuts } = this.#byId(id);
    cuts.add(cut);
    return () => void cuts.delete(cut);
  }

  #byId(id: string): Kept {
    const session = this.#sessions.values().find((one) => one.id === id);
    if (session === undefined) throw new SvcError('not_found', { message: 'There is no such session of the panel.' });
    return session;
  }

  #end(session: Kept): void {
    session.timer.cancel();
    this.#sessions.delete(session.hash);
    for (const cut of [...session.cuts]) cut();
  }

  #timer(hash: string, ms: number): Timer {
    return this.#clock.after(ms, () => {
      const session = this.#sessions.get(hash);
      if (session === undefined) return;
      const left = expiryOf(session) - this.#clock.now();
      if (left <= 0) this.#end(session);
      else session.timer = this.#timer(hash, left);
    });
  }
}
