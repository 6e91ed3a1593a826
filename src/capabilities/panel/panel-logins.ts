/**
 * Logins to the web panel: one-time codes and sessions. They are in memory only, as hashes, and end with the daemon.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { newId } from '../../foundation/ids.ts';
import { isPanelToken, PANEL_TOKEN_BYTES, PANEL_TOKEN_PREFIX } from '../../foundation/panel-access.ts';

/** Lifetime of a code, milliseconds. */
export const PANEL_CODE_LIFE_MS = 60_000;
/** Maximum number of unused codes. */
export const MAX_PANEL_CODES = 8;
/** Random bytes of a code. */
const CODE_BYTES = 16;
/** A session expires after this idle time, milliseconds. */
export const PANEL_SESSION_IDLE_MS = 12 * 3_600_000;
/** Longest lifetime of a session, milliseconds. */
export const PANEL_SESSION_LIFE_MS = 7 * 86_400_000;
/** Maximum number of sessions. When full, the session that has been idle longest ends. */
export const MAX_PANEL_SESSIONS = 32;

export interface PanelSession {
  readonly id: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
  readonly lastSeenAt: number;
  /** Unless it is used earlier. */
  readonly expiresAt: number;
}

interface Kept {
  readonly id: string;
  readonly hash: string;
  readonly createdAt: number;
  lastSeenAt: number;
  /** As `createdAt` and `lastSeenAt`, by the clock that never goes back. */
  readonly begun: number;
  used: number;
  timer: Timer;
  /** Functions that stop the requests and streams of the session. */
  readonly cuts: Set<() => void>;
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

function expiryOf(createdAt: number, lastSeenAt: number): number {
  return Math.min(createdAt + PANEL_SESSION_LIFE_MS, lastSeenAt + PANEL_SESSION_IDLE_MS);
}

function viewOf(session: Kept): PanelSession {
  const { id, createdAt, lastSeenAt } = session;
  return { id, createdAt, lastSeenAt, expiresAt: expiryOf(createdAt, lastSeenAt) };
}

export class PanelLogins {
  readonly #clock: Clock;
  /** The expiry of each code by its hash, by the clock that never goes back. */
  readonly #codes = new Map<string, number>();
  /** Sessions by the hash of their token. */
  readonly #sessions = new Map<string, Kept>();

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /**
   * Creates a one-time code.
   *
   * @throws SvcError `rate_limited` if there are too many unused codes
   */
  openCode(): { readonly code: string; readonly expiresAt: number } {
    const now = this.#clock.monotonic();
    for (const [hash, end] of this.#codes) if (end <= now) this.#codes.delete(hash);
    if (this.#codes.size >= MAX_PANEL_CODES) {
      const wait = Math.ceil((Math.min(...this.#codes.values()) - now) / 1000);
      throw new SvcError('rate_limited', { details: { retry_after_s: wait } });
    }
    const code = randomBytes(CODE_BYTES).toString('base64url');
    this.#codes.set(hashOf(code), now + PANEL_CODE_LIFE_MS);
    return { code, expiresAt: this.#clock.now() + PANEL_CODE_LIFE_MS };
  }

  /** Uses a code. True if it was valid. */
  redeem(code: string): boolean {
    const hash = hashOf(code);
    const end = this.#codes.get(hash);
    this.#codes.delete(hash);
    return end !== undefined && end > this.#clock.monotonic();
  }

  /** Starts a session. Its token is not stored. */
  begin(): PanelSession & { readonly token: string } {
    const sessions = [...this.#sessions.values()];
    if (sessions.length >= MAX_PANEL_SESSIONS)
      this.#end(sessions.reduce((oldest, one) => (one.used < oldest.used ? one : oldest)));
    const token = PANEL_TOKEN_PREFIX + randomBytes(PANEL_TOKEN_BYTES).toString('base64url');
    const hash = hashOf(token);
    const [now, begun] = [this.#clock.now(), this.#clock.monotonic()];
    const id = newId();
    const timer = this.#timer(hash, PANEL_SESSION_IDLE_MS);
    const session: Kept = { id, hash, createdAt: now, lastSeenAt: now, begun, used: begun, timer, cuts: new Set() };
    this.#sessions.set(hash, session);
    return { ...viewOf(session), token };
  }

  /** Returns the id of the session of a token and resets its idle time. Null if there is none. */
  holder(token: string): string | null {
    if (!isPanelToken(token)) return null;
    const session = this.#sessions.get(hashOf(token));
    if (session === undefined) return null;
    session.lastSeenAt = this.#clock.now();
    session.used = this.#clock.monotonic();
    return session.id;
  }

  /** The sessions, newest first. */
  list(): PanelSession[] {
    return [...this.#sessions.values()].map(viewOf).reverse();
  }

  /**
   * Ends a session with its requests and streams.
   *
   * @throws SvcError `not_found`
   */
  end(id: string): void {
    this.#end(this.#byId(id));
  }

  /** Ends all sessions and invalidates all codes. */
  endAll(): void {
    this.#codes.clear();
    for (const session of [...this.#sessions.values()]) this.#end(session);
  }

  /** Calls `cut` when a session ends. The returned function removes it. */
  onEnd(id: string, cut: () => void): () => void {
    const { cuts } = this.#byId(id);
    cuts.add(cut);
    return () => void cuts.delete(cut);
  }

  #byId(id: string): Kept {
    const session = this.#sessions.values().find((one) => one.id === id);
    if (session === undefined) throw new SvcError('not_found', { message: 'No panel session with this id.' });
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
      const left = expiryOf(session.begun, session.used) - this.#clock.monotonic();
      if (left <= 0) this.#end(session);
      else session.timer = this.#timer(hash, left);
    });
  }
}
