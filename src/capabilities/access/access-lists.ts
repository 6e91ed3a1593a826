/** The access lists of agents and of the node: reads, changes and change notifications. */
import { randomBytes } from 'node:crypto';
import { equalBytes } from '../../foundation/bytes.ts';
import { type Clock, isoTime, type Timer } from '../../foundation/clock.ts';
import {
  type AccessListName,
  type AccessPolicy,
  MAX_ENTRY_TOOLS,
  MAX_LABEL_CHARS,
  MAX_LIST_ENTRIES,
  MAX_SECRET_CHARS,
  MIN_SECRET_CHARS,
  SECRET_SALT_BYTES,
} from '../../foundation/domain/access.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import { newId } from '../../foundation/ids.ts';
import { Listeners } from '../../foundation/listeners.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { AccessRepository, AidEntry, SecretEntry, ServiceCaller } from '../../foundation/store/access.ts';
import type { DeriveSecret } from './derivations.ts';
import { type AccessRules, initialPolicy, nextExpiry, rulesOf, type Subject } from './rules.ts';

/** Secrets on one list. Each guess is compared with all secrets. */
export const MAX_SECRETS = 100;
/** Subjects with rules in memory. */
const MAX_CACHED_RULES = 10_000;
/** Subjects with a cached view. Nearly all are unchanged defaults of about 150 bytes. */
const MAX_CACHED_VIEWS = 4096;
const NO_SALT = new Uint8Array();
const GENERATED_SECRET_BYTES = 32;
const GENERATED_SECRET_PREFIX = 'svcs_';
/** Longest single wait for an expiry, in milliseconds. After it the timer is armed again. */
const MAX_EXPIRY_WAIT_MS = 86_400_000;

/** Exactly one of `aid`, `secret` and `generateSecret`. */
export interface AllowInput {
  readonly aid?: string | undefined;
  readonly secret?: string | undefined;
  /** Generate a random secret. */
  readonly generateSecret?: boolean | undefined;
  readonly label?: string | undefined;
  /** Unix milliseconds. */
  readonly expiresAt?: number | undefined;
  /** Limits an AID to these MCP tools. */
  readonly tools?: readonly string[] | undefined;
  /** The address of the bound temporary service: an AID may only call it, and the entry ends with it. */
  readonly service?: string | undefined;
}

/** The services of an agent. */
export interface BoundServices {
  /** Empty for none. */
  readonly bound: string;
  /** The services that a temporary service replaced; null if the bound service is permanent. */
  readonly before: readonly string[] | null;
}

const NO_SERVICES: BoundServices = { bound: '', before: null };

function invalid(message: string, path: string): SvcError {
  return new SvcError('invalid_request', { message, details: { path } });
}

export class AccessLists {
  readonly #repository: AccessRepository;
  readonly #clock: Clock;
  readonly #derive: DeriveSecret;
  readonly #servicesOf: (subject: Subject) => BoundServices | undefined;
  readonly #rules = new LruCache<Subject, AccessRules>({ maxEntries: MAX_CACHED_RULES });
  /** Cached views, until the subject changes. */
  readonly #views = new LruCache<Subject, AccessView>({ maxEntries: MAX_CACHED_VIEWS });
  readonly #changes = new Listeners<[Subject]>();
  readonly #expiries = new Map<Subject, Timer>();

  /**
   * @param derive hashes new secrets
   * @param servicesOf the present services of a subject; undefined if it has none
   */
  constructor(
    repository: AccessRepository,
    clock: Clock,
    derive: DeriveSecret,
    servicesOf: (subject: Subject) => BoundServices | undefined = () => undefined,
  ) {
    this.#servicesOf = servicesOf;
    this.#repository = repository;
    this.#clock = clock;
    this.#derive = derive;
  }

  /** The lists of a subject without its secrets. Includes expired entries. */
  view(subject: Subject): AccessView {
    const stored = this.#repository.load(subject);
    const before = stored?.policyBefore ?? null;
    return {
      default: stored?.policy ?? initialPolicy(subject),
      ...(before === null ? {} : { default_before: before }),
      allow: [...(stored?.allow ?? []).map(allowView), ...(stored?.serviceCallers ?? []).map(serviceCallerView)],
      deny: (stored?.deny ?? []).map(denyView),
    };
  }

  /** Like `view`, for several subjects. */
  views<S extends Subject>(subjects: readonly S[]): Map<S, AccessView> {
    const found = new Map<S, AccessView>();
    const missing: S[] = [];
    for (const one of subjects) {
      const known = this.#views.get(one);
      if (known === undefined) missing.push(one);
      else found.set(one, known);
    }
    if (missing.length === 0) return found;
    const changed = this.#repository.changed(missing);
    for (const one of missing) {
      const view = changed.has(one) ? this.view(one) : { default: initialPolicy(one), allow: [], deny: [] };
      this.#views.set(one, view);
      found.set(one, view);
    }
    return found;
  }

  /** The current rules of a subject. */
  rules(subject: Subject): AccessRules {
    const known = this.#rules.get(subject);
    if (known !== undefined) return known;
    const rules = rulesOf(subject, this.#repository.load(subject), this.#services(subject).bound);
    this.#rules.set(subject, rules);
    this.#scheduleExpiry(subject, rules);
    return rules;
  }

  /**
   * @param isTemporary keep the permanent default for `restoreDefault`
   * @throws SvcError `invalid_request` for the node, which always denies by default
   */
  setDefault(subject: Subject, policy: AccessPolicy, isTemporary = false): void {
    if (subject === 'node' && policy !== 'deny')
      throw invalid('Remote administration always denies by default.', '/default');
    this.#create(subject);
    const { default: now, default_before: before = now } = this.view(subject);
    this.#repository.setPolicy(subject, policy, isTemporary && before !== policy ? before : null);
    this.#changed(subject);
  }

  /**
   * Applies a change of the services of an agent. Callers of services that ended are deleted, and the permanent default
   * returns when no temporary service is left.
   */
  servicesChanged(subject: Subject): void {
    const stored = this.#repository.load(subject);
    const { bound, before } = this.#services(subject);
    if (stored === null) return;
    if (stored.serviceCallers.length > 0) {
      this.#repository.keepServiceCallers(subject, before === null ? [] : [bound, ...before]);
      this.#changed(subject);
    }
    if (before === null && stored.policyBefore !== null) this.setDefault(subject, stored.policyBefore);
  }

  /** Deletes the callers of a service whose program stopped, although it is still bound. */
  serviceStopped(subject: Subject, service: string): void {
    const services = (this.#repository.load(subject)?.serviceCallers ?? []).map((one) => one.service);
    if (!services.includes(service)) return;
    this.#repository.keepServiceCallers(
      subject,
      services.filter((one) => one !== service),
    );
    this.#changed(subject);
  }

  /**
   * Allows an AID, or every caller that presents a secret. An AID or secret that is already listed is renewed. A
   * generated secret is returned as `secret`, this once only.
   * @throws SvcError `invalid_request`, `bad_aid`, `quota_exceeded`, `not_found` if the subject was removed while its
   *   secret was hashed, `wrong_state` if the named service is not bound temporarily
   */
  async allow(subject: Subject, input: AllowInput): Promise<AllowEntryView & { secret?: string }> {
    const { aid, secret, generateSecret = false, label, expiresAt, tools, service } = input;
    if (Number(aid !== undefined) + Number(secret !== undefined) + Number(generateSecret) !== 1)
      throw invalid('Give exactly one of aid, secret and generate_secret.', '');
    if (label !== undefined && label.length > MAX_LABEL_CHARS)
      throw invalid(`A label has at most ${MAX_LABEL_CHARS} characters.`, '/label');
    this.#requireFuture(expiresAt);
    if (tools !== undefined && (aid === undefined || tools.length === 0 || tools.length > MAX_ENTRY_TOOLS))
      throw invalid(`tools needs an aid and 1 to ${MAX_ENTRY_TOOLS} names.`, '/tools');
    if (service !== undefined) {
      if (aid === undefined || label !== undefined || expiresAt !== undefined)
        throw invalid('service_tcp needs an aid, and no label and no end.', '/service_tcp');
      return serviceCallerView(this.#putServiceCaller(subject, parseAid(aid), service, tools ?? null));
    }
    const common = { ...this.#newEntry(), label: label ?? null, expiresAt: expiresAt ?? null };
    if (aid !== undefined)
      return allowView(this.#put(subject, 'allow', { ...common, aid: parseAid(aid), tools: tools ?? null }));
    const generated = `${GENERATED_SECRET_PREFIX}${randomBytes(GENERATED_SECRET_BYTES).toString('base64url')}`;
    const chosen = secret ?? generated;
    if (chosen.length < MIN_SECRET_CHARS || chosen.length > MAX_SECRET_CHARS)
      throw invalid(`A secret has ${MIN_SECRET_CHARS} to ${MAX_SECRET_CHARS} characters.`, '/secret');
    const salt = this.#create(subject);
    const secretHash = await this.#derive(chosen, salt);
    // The list may now belong to the next registration of this agent.
    if (!equalBytes(this.#repository.load(subject)?.salt ?? NO_SALT, salt))
      throw new SvcError('not_found', { message: 'The agent was deleted during this request.' });
    const view = allowView(this.#put(subject, 'allow', { ...common, secretHash }));
    return secret === undefined ? { ...view, secret: generated } : view;
  }

  /**
   * Denies an AID. This takes precedence over every allow entry.
   * @param expiresAt Unix milliseconds; omitted means never
   * @throws SvcError `bad_aid`, `quota_exceeded`, `invalid_request`
   */
  deny(subject: Subject, aid: string, expiresAt?: number): DenyEntryView {
    this.#requireFuture(expiresAt);
    const limits = { label: null, expiresAt: expiresAt ?? null, tools: null };
    return denyView(this.#put(subject, 'deny', { ...this.#newEntry(), aid: parseAid(aid), ...limits }));
  }

  #requireFuture(expiresAt: number | undefined): void {
    if (expiresAt !== undefined && !(expiresAt > this.#clock.now()))
      throw invalid('expires_at is in the past.', '/expires_at');
  }

  /** @throws SvcError `not_found` */
  remove(subject: Subject, list: AccessListName, id: string): void {
    const isRemoved =
      this.#repository.remove(subject, list, id) ||
      (list === 'allow' && this.#repository.removeServiceCaller(subject, id));
    if (!isRemoved) throw new SvcError('not_found', { message: `The ${list} list has no entry "${id}".` });
    this.#changed(subject);
  }

  /** Removes the lists of a subject that was deleted. */
  removeSubject(subject: Subject): void {
    this.#repository.removeSubject(subject);
    this.#changed(subject);
  }

  /** Reloads lists that another component wrote, as for an agent that moved here. */
  reload(subject: Subject): void {
    this.#changed(subject);
  }

  /** Adds a listener for changed rules and expired entries. Returns a function that removes it. */
  onChange(listener: (subject: Subject) => void): () => void {
    return this.#changes.add(listener);
  }

  /** Cancels the timers. */
  stop(): void {
    for (const timer of this.#expiries.values()) timer.cancel();
  }

  #services(subject: Subject): BoundServices {
    return this.#servicesOf(subject) ?? NO_SERVICES;
  }

  #newEntry(): { readonly id: string; readonly createdAt: number } {
    return { id: newId(), createdAt: this.#clock.now() };
  }

  /** The salt of a subject. Creates the row if there is none. */
  #create(subject: Subject): Uint8Array {
    return this.#repository.create(subject, initialPolicy(subject), new Uint8Array(randomBytes(SECRET_SALT_BYTES)));
  }

  #putServiceCaller(subject: Subject, aid: Aid, service: string, tools: readonly string[] | null): ServiceCaller {
    const { bound, before } = this.#services(subject);
    if (bound !== service || before === null)
      throw new SvcError('wrong_state', {
        message: `${service} is not bound to this agent as a temporary service. Bind it first.`,
      });
    this.#create(subject);
    const known = this.#repository.load(subject)?.serviceCallers ?? [];
    if (known.length >= MAX_LIST_ENTRIES && !known.some((one) => one.aid === aid && one.service === service))
      throw new SvcError('quota_exceeded', {
        message: `The services of an agent can allow at most ${MAX_LIST_ENTRIES} callers. Remove an entry first.`,
      });
    const kept = this.#repository.putServiceCaller(subject, { ...this.#newEntry(), aid, service, tools });
    this.#changed(subject);
    return kept;
  }

  #put<E extends AidEntry | SecretEntry>(subject: Subject, list: AccessListName, entry: E): E {
    this.#create(subject);
    const { allow, secrets, deny } = this.rules(subject);
    const known = 'aid' in entry && (list === 'allow' ? allow : deny).has(entry.aid);
    const size = list === 'allow' ? allow.size + secrets.length : deny.size;
    if (!known && (size >= MAX_LIST_ENTRIES || ('secretHash' in entry && secrets.length >= MAX_SECRETS)))
      throw new SvcError('quota_exceeded', {
        message: `An access list has at most ${MAX_LIST_ENTRIES} entries, including at most ${MAX_SECRETS} secrets. Remove an entry first.`,
      });
    const kept = this.#repository.put(subject, list, entry);
    this.#changed(subject);
    return kept;
  }

  #changed(subject: Subject): void {
    this.#rules.delete(subject);
    this.#views.delete(subject);
    this.rules(subject);
    this.#changes.notify(subject);
  }

  #scheduleExpiry(subject: Subject, rules: AccessRules): void {
    this.#expiries.get(subject)?.cancel();
    this.#expiries.delete(subject);
    const now = this.#clock.now();
    const next = nextExpiry(rules, now);
    if (next === null) return;
    const timer = this.#clock.after(Math.min(next - now, MAX_EXPIRY_WAIT_MS), () => {
      this.#scheduleExpiry(subject, rules);
      this.#changes.notify(subject);
    });
    this.#expiries.set(subject, timer);
  }
}

// Access lists as the API returns them, without the secrets.

interface AllowEntryView {
  id: string;
  aid?: Aid;
  secret_set?: true;
  label?: string;
  created_at: string;
  expires_at?: string;
  tools?: string[];
  /** The service with which the entry ends. */
  service_tcp?: string;
}

interface DenyEntryView {
  id: string;
  aid: Aid;
  created_at: string;
  expires_at?: string;
}

interface AccessView {
  default: AccessPolicy;
  /** Only while `default` is temporary: the one that returns. */
  default_before?: AccessPolicy;
  allow: AllowEntryView[];
  deny: DenyEntryView[];
}

function allowView(entry: AidEntry | SecretEntry): AllowEntryView {
  return {
    id: entry.id,
    ...('aid' in entry ? { aid: entry.aid } : { secret_set: true }),
    ...(entry.label === null ? {} : { label: entry.label }),
    created_at: isoTime(entry.createdAt),
    ...(entry.expiresAt === null ? {} : { expires_at: isoTime(entry.expiresAt) }),
    ...('aid' in entry && entry.tools !== null ? { tools: [...entry.tools] } : {}),
  };
}

function serviceCallerView({ id, aid, createdAt, tools, service }: ServiceCaller): AllowEntryView {
  return {
    id,
    aid,
    created_at: isoTime(createdAt),
    ...(tools === null ? {} : { tools: [...tools] }),
    service_tcp: service,
  };
}

function denyView(entry: AidEntry): DenyEntryView {
  const { id, aid, createdAt, expiresAt } = entry;
  return {
    id,
    aid,
    created_at: isoTime(createdAt),
    ...(expiresAt === null ? {} : { expires_at: isoTime(expiresAt) }),
  };
}
