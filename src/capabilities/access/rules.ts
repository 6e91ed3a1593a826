/** The rules of one subject, in their order: deny, allow by AID, allow by secret, default, ask the owner. */
import { timingSafeEqual } from 'node:crypto';
import type { AccessDecision, AccessPolicy } from '../../foundation/domain/access.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { AidEntry, SecretEntry, ServiceCaller, StoredAccess } from '../../foundation/store/access.ts';

/** The owner of an access list: a local agent, or the node for its remote administration. */
export type Subject = Aid | 'node';

export interface AccessRules {
  readonly policy: AccessPolicy;
  /** Null if the subject never changed its list. It has no secrets then. */
  readonly salt: Uint8Array | null;
  readonly allow: ReadonlyMap<Aid, AidEntry>;
  readonly secrets: readonly SecretEntry[];
  readonly deny: ReadonlyMap<Aid, AidEntry>;
  /** Callers that the bound service allows. They may call it, and nothing else. */
  readonly serviceCallers: ReadonlyMap<Aid, ServiceCaller>;
}

/** The default policy: agents are public, the node's administration is closed. */
export function initialPolicy(subject: Subject): AccessPolicy {
  return subject === 'node' ? 'deny' : 'public';
}

/** @param service the bound service of the subject; empty for none */
export function rulesOf(subject: Subject, stored: StoredAccess | null, service = ''): AccessRules {
  const allow = new Map<Aid, AidEntry>();
  const secrets: SecretEntry[] = [];
  for (const entry of stored?.allow ?? []) {
    if ('aid' in entry) allow.set(entry.aid, entry);
    else secrets.push(entry);
  }
  return {
    policy: stored?.policy ?? initialPolicy(subject),
    salt: stored?.salt ?? null,
    allow,
    secrets,
    deny: new Map((stored?.deny ?? []).map((entry) => [entry.aid, entry])),
    serviceCallers: new Map(
      (stored?.serviceCallers ?? []).filter((one) => one.service === service).map((one) => [one.aid, one]),
    ),
  };
}

function isLive(entry: { readonly expiresAt: number | null }, now: number): boolean {
  return entry.expiresAt === null || now < entry.expiresAt;
}

/** True if the owner allowed a caller by its AID, also if it is limited to some tools. @param now Unix milliseconds */
export function isNamed(rules: AccessRules, caller: Aid, now: number): boolean {
  return liveEntry(rules, caller, now) !== null || rules.serviceCallers.has(caller);
}

/** True if a caller is denied by its AID. @param now Unix milliseconds */
export function isDenied(rules: AccessRules, caller: Aid, now: number): boolean {
  const entry = rules.deny.get(caller);
  return entry !== undefined && isLive(entry, now);
}

/** The MCP tools that the entry of a caller is limited to. Null without such an entry. @param now Unix milliseconds */
export function toolsOf(rules: AccessRules, caller: Aid, now: number): readonly string[] | null {
  return liveEntry(rules, caller, now)?.tools ?? null;
}

function liveEntry(rules: AccessRules, caller: Aid, now: number): AidEntry | null {
  const entry = rules.allow.get(caller);
  return entry !== undefined && isLive(entry, now) ? entry : null;
}

/** True if a secret of the subject can be presented. @param now Unix milliseconds */
export function hasSecrets(rules: AccessRules, now: number): boolean {
  return rules.secrets.some((secret) => isLive(secret, now));
}

/**
 * Decides about an authenticated caller, before any secret is checked.
 * @param now Unix milliseconds
 */
export function decide(rules: AccessRules, caller: Aid, now: number): AccessDecision {
  if (isDenied(rules, caller, now)) return 'deny';
  if (liveEntry(rules, caller, now)?.tools === null) return 'allow';
  if (rules.policy === 'public') return 'allow';
  if (rules.policy === 'ask') return 'ask';
  return hasSecrets(rules, now) ? 'secret' : 'deny';
}

/**
 * True if a derived hash matches a valid secret. Compares all of them, so the duration does not reveal which one
 * matches.
 */
export function matchesSecret(rules: AccessRules, derived: Uint8Array, now: number): boolean {
  let found = false;
  for (const secret of rules.secrets) {
    const equal = secret.secretHash.length === derived.length && timingSafeEqual(secret.secretHash, derived);
    found = (equal && isLive(secret, now)) || found;
  }
  return found;
}

/** The time of the next expiry, Unix milliseconds. Null if no entry expires. */
export function nextExpiry(rules: AccessRules, now: number): number | null {
  const times = [...rules.allow.values(), ...rules.secrets, ...rules.deny.values()].map(
    ({ expiresAt }) => expiresAt ?? 0,
  );
  const next = Math.min(...times.filter((time) => time > now));
  return Number.isFinite(next) ? next : null;
}
