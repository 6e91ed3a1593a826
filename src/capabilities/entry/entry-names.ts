/** The names of an entry, their holders, and the agents that may hold one. */
import { createHash, randomBytes } from 'node:crypto';
import { type Clock, DAY_MS } from '../../foundation/clock.ts';
import { skeletons } from '../../foundation/confusables.ts';
import {
  ENTRY_TOKEN_CHARS,
  isFreeLabel,
  MAX_PUBLIC_NAME_CHARS,
  NAME_LEASE_DAYS,
} from '../../foundation/domain/public-names.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { Listeners } from '../../foundation/listeners.ts';
import { type NameRequest, type NameVerdict } from '../../foundation/public-name-messages.ts';
import type { EntryAllowance, EntryName, EntryStore } from '../../foundation/store/entry.ts';

/** Names that one agent may hold at an entry. */
export const MAX_NAMES_PER_AGENT = 16;
/** Agents that an entry permits. */
export const MAX_ALLOWED_AGENTS = 1000;
/** Time after which an unused invitation expires, days. */
export const ENTRY_INVITATION_DAYS = 7;
/** Unused invitations. The oldest are deleted. */
export const MAX_ENTRY_INVITATIONS = 100;

/** The destination of a server name: an agent, no agent, or this node itself. */
export type Destination = { readonly aid: Aid } | 'free' | 'own';

function hashOf(token: string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(token).digest());
}

export class EntryNames {
  readonly #domains: readonly string[];
  readonly #store: EntryStore;
  readonly #clock: Clock;
  readonly #lost = new Listeners<[name: string]>();

  /** @param domains in lower case; the first one is for claims of a label */
  constructor(domains: readonly string[], store: EntryStore, clock: Clock) {
    this.#domains = domains;
    this.#store = store;
    this.#clock = clock;
  }

  get domains(): readonly string[] {
    return this.#domains;
  }

  /** True if this node is an entry. */
  get isOn(): boolean {
    return this.#domains.length > 0;
  }

  /** Calls a listener for each name whose holder has changed. */
  onLost(listener: (name: string) => void): () => void {
    return this.#lost.add(listener);
  }

  /** @param serverName in lower case; null if the client sent none */
  destinationOf(serverName: string | null): Destination {
    if (serverName === null || this.#labelOf(serverName) === null) return 'own';
    const row = this.#store.find(serverName);
    return row === null || row.seenAt < this.#oldest ? 'free' : { aid: row.aid };
  }

  /** Handles a request of an agent. */
  handle({ action, name, token }: NameRequest, aid: Aid): { readonly verdict: NameVerdict; readonly name: string } {
    // protocol-public.md, steps 2 to 4
    const whole = name.includes('.') ? name : `${name}.${this.#domains[0] ?? ''}`;
    const answer = (verdict: NameVerdict) => ({ verdict, name: whole.slice(0, MAX_PUBLIC_NAME_CHARS) });
    if (action === 'release') {
      if (this.#store.free(whole, aid)) this.#lost.notify(whole);
      return answer('ok');
    }
    // First, so that a stranger learns nothing about names.
    if (!this.#mayHold(aid, token)) return answer('denied');
    const label = this.#labelOf(whole);
    if (label === null) return answer('not_below');
    if (!isFreeLabel(label) || whole.length > MAX_PUBLIC_NAME_CHARS) return answer('invalid');
    return answer(this.#store.transaction(() => this.#claim(whole, label, aid)));
  }

  #claim(name: string, label: string, aid: Aid): NameVerdict {
    const now = this.#clock.now();
    const looks = `${skeletons(label)[0] ?? label}${name.slice(label.length)}`;
    if (this.#store.like(looks, this.#oldest).some((other) => other.aid !== aid)) return 'taken';
    const before = this.#store.find(name);
    const isHeld = before?.aid === aid;
    if (!isHeld && this.#store.count(aid) >= MAX_NAMES_PER_AGENT && !this.#freeExpired(aid)) return 'full';
    this.#store.put({ name, aid, looks, heldAt: isHeld ? before.heldAt : now, seenAt: now });
    if (before !== null && !isHeld) this.#lost.notify(name);
    return 'ok';
  }

  /** Frees the names that an agent no longer claims. False if there are none. */
  #freeExpired(aid: Aid): boolean {
    const expired = this.#store.expired(aid, this.#oldest);
    for (const { name } of expired) {
      this.#store.free(name);
      this.#lost.notify(name);
    }
    return expired.length > 0;
  }

  /** A token adds its agent to the permitted ones, and is used up. */
  #mayHold(aid: Aid, token: string | null): boolean {
    if (this.#store.isAllowed(aid)) return true;
    if (token === null) return false;
    return this.#store.transaction(() => {
      const hasRoom = this.#store.countAllowed() < MAX_ALLOWED_AGENTS;
      if (!hasRoom || !this.#store.redeem(hashOf(token), this.#expired)) return false;
      return this.#store.allow({ aid, createdAt: this.#clock.now() });
    });
  }

  /** True if an agent may hold names, or may redeem an invitation. */
  isAllowed(aid: Aid): boolean {
    return this.#store.isAllowed(aid);
  }

  allowed(): readonly EntryAllowance[] {
    return this.#store.allowed();
  }

  names(): readonly EntryName[] {
    return this.#store.names();
  }

  /** @throws SvcError `wrong_state` if this node is no entry, `quota_exceeded` */
  allow(aid: Aid): void {
    this.#requireOn();
    if (this.#store.isAllowed(aid)) return;
    if (this.#store.countAllowed() >= MAX_ALLOWED_AGENTS) throw new SvcError('quota_exceeded');
    this.#store.allow({ aid, createdAt: this.#clock.now() });
  }

  /** Its names are free, and their connections close. @throws SvcError `not_found` */
  deny(aid: Aid): void {
    const names = this.#store.names().filter((one) => one.aid === aid);
    const wasAllowed = this.#store.transaction(() => {
      this.#store.freeAll(aid);
      return this.#store.deny(aid);
    });
    for (const { name } of names) this.#lost.notify(name);
    if (!wasAllowed && names.length === 0)
      throw new SvcError('not_found', { message: 'This agent has no permission here. "svc entry" lists all.' });
  }

  /** Frees a name. @throws SvcError `not_found` */
  remove(name: string): void {
    if (!this.#store.free(name))
      throw new SvcError('not_found', { message: 'No agent holds this name. "svc entry list" lists the names.' });
    this.#lost.notify(name);
  }

  /** The token of a new invitation. @throws SvcError `wrong_state` if this node is no entry */
  invite(): string {
    this.#requireOn();
    const token = randomBytes(16).toString('base64url').slice(0, ENTRY_TOKEN_CHARS);
    this.#store.invite(hashOf(token), this.#clock.now(), this.#expired, MAX_ENTRY_INVITATIONS);
    return token;
  }

  #requireOn(): void {
    if (this.isOn) return;
    throw new SvcError('wrong_state', {
      message: 'This node is no entry. Set public_names in config.toml to a domain that leads to it, and restart svcd.',
    });
  }

  /** The label of a name directly below a domain of this entry; null for other names. */
  #labelOf(name: string): string | null {
    const domain = this.#domains.find((one) => name.endsWith(`.${one}`));
    return domain === undefined ? null : name.slice(0, -domain.length - 1);
  }

  /** Names that were seen before are free. */
  get #oldest(): number {
    return this.#clock.now() - NAME_LEASE_DAYS * DAY_MS;
  }

  get #expired(): number {
    return this.#clock.now() - ENTRY_INVITATION_DAYS * DAY_MS;
  }
}
