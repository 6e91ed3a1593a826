/**
 * Access control: decides which callers may call an agent, read its objects, tunnel to it or administer the node
 * remotely. Notes, records, chat and groups have their own rules.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { AccessDecision, AskKind } from '../../foundation/domain/access.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import {
  type AccessRequest,
  type Admission,
  type LinkAsk,
  type Purpose,
  TUNNEL_PURPOSES,
} from '../../network/links/types.ts';
import type { AccessLists } from './access-lists.ts';
import type { DeriveSecret } from './derivations.ts';
import type { Grants } from './grants.ts';
import { decide, hasSecrets, isDenied, isNamed, matchesSecret } from './rules.ts';
import { SecretCheck } from './secret-check.ts';

/** Purposes that the access list of the called agent controls. */
const CONTROLLED_PURPOSES: ReadonlySet<Purpose> = new Set<Purpose>(['http', ...TUNNEL_PURPOSES, 'object', 'push-box']);

/** The kinds of exchanges that an owner can allow once, by purpose. */
const KINDS: Partial<Record<Purpose, AskKind>> = { http: 'call', tcp: 'tunnel', 'tcp-probe': 'tunnel' };

const FREE: Admission = { tools: null, isServer: false, begin: null };

export class AccessControl {
  readonly #lists: AccessLists;
  readonly #clock: Clock;
  readonly #secrets: SecretCheck;
  readonly #isClosed: () => boolean;
  readonly #grants: Grants | null;

  /**
   * @param derive hashes presented secrets like the secrets of the lists
   * @param isClosed true while only local agents may call: the access lists may be outdated
   * @param grants what callers without a full entry may do
   */
  constructor(
    lists: AccessLists,
    clock: Clock,
    derive: DeriveSecret,
    isClosed: () => boolean = () => false,
    grants: Grants | null = null,
  ) {
    this.#lists = lists;
    this.#grants = grants;
    this.#clock = clock;
    this.#isClosed = isClosed;
    this.#secrets = new SecretCheck(clock, derive);
  }

  /** True while every other node is rejected, regardless of the lists. Local agents may still call. */
  isClosedTo({ nodeKey }: Pick<AccessRequest, 'nodeKey'>): boolean {
    return nodeKey !== null && this.#isClosed();
  }

  /** True if the owner allows a caller by its AID, not only by a public default. */
  isNamed(called: Aid, caller: Aid): boolean {
    return isNamed(this.#lists.rules(called), caller, this.#clock.now());
  }

  /**
   * False if the access list rejects a caller for a purpose that `authorize` does not check. True for all other
   * purposes.
   */
  isAdmitted({ called, caller, purpose }: LinkAsk): boolean {
    return purpose === 'admin' || CONTROLLED_PURPOSES.has(purpose) || this.decide(called, caller) === 'allow';
  }

  /** True if the owner denies a caller by its AID. */
  isDenied(called: Aid, caller: Aid): boolean {
    return isDenied(this.#lists.rules(called), caller, this.#clock.now());
  }

  /** The decision of an agent's access list about a caller, before any secret is checked. */
  decide(called: Aid, caller: Aid): AccessDecision {
    return decide(this.#lists.rules(called), caller, this.#clock.now());
  }

  /**
   * Checks an exchange as it begins. `authorize` also accepts links for exchanges that have begun.
   * @param asked method and path of a call, see `askedCall`. Called only if the access list does not allow it
   * @throws SvcError as `authorize`; `calls_only` for a probe of a caller that may only call the bound service
   */
  async enter(request: AccessRequest, asked: () => string = () => ''): Promise<Admission> {
    try {
      await this.#check(request, false);
      return FREE;
    } catch (error) {
      const admission = this.#admissionByGrant(request, asked);
      if (admission === null) throw error;
      return admission;
    }
  }

  /**
   * Resolves if an authenticated caller may open the link.
   * @throws SvcError `access_denied`; `rate_limited` with `retry_after_s` after too many wrong secrets
   */
  async authorize(request: AccessRequest): Promise<void> {
    await this.#check(request, true);
  }

  /** The permission of a caller without a full entry in the access list. */
  #admissionByGrant(request: AccessRequest, asked: () => string): Admission | null {
    const { called, caller, purpose } = request;
    const kind = KINDS[purpose];
    const grants = this.#grants;
    if (grants === null || kind === undefined) return null;
    if (this.isClosedTo(request) || this.isDenied(called, caller)) return null;
    // A program that opens a local address asks first whether it could connect.
    if (purpose === 'tcp-probe' && this.#lists.rules(called).serviceCallers.has(caller))
      throw new SvcError('calls_only');
    const grant = grants.find(called, caller, kind, asked());
    if (grant === null) return null;
    const begin = (): (() => void) => {
      if (!grant.use()) throw new SvcError('access_denied');
      return grant.isOnce ? grants.begin(called, caller, kind) : () => {};
    };
    return { tools: grant.tools, isServer: grant.isServer, begin };
  }

  /** @param withGrants accept exchanges that are allowed once, or that have begun */
  async #check(request: AccessRequest, withGrants: boolean): Promise<void> {
    const { called, caller, purpose, accessToken } = request;
    const subject = purpose === 'admin' ? 'node' : called;
    if (subject !== 'node' && !CONTROLLED_PURPOSES.has(purpose)) return;
    if (request.nodeKey !== null && this.#isClosed()) throw new SvcError('access_denied');
    const rules = this.#lists.rules(subject);
    const now = this.#clock.now();
    if (decide(rules, caller, now) === 'allow') return;
    if (isDenied(rules, caller, now)) throw new SvcError('access_denied');
    if (withGrants && purpose === 'tcp-probe' && rules.serviceCallers.has(caller)) return;
    const kind = KINDS[purpose];
    if (withGrants && kind !== undefined && this.#grants?.mayOpen(called, caller, kind) === true) return;
    if (!hasSecrets(rules, now) || accessToken === undefined || rules.salt === null)
      throw new SvcError('access_denied');
    const guesser = {
      caller,
      node: request.nodeKey === null ? null : Buffer.from(request.nodeKey).toString('hex'),
      source: request.source,
    };
    const matches = (hash: Uint8Array) => matchesSecret(this.#lists.rules(subject), hash, this.#clock.now());
    if (!(await this.#secrets.check(subject, rules.salt, accessToken, guesser, matches)))
      throw new SvcError('access_denied');
    // The lists may have changed during the derivation.
    if (decide(this.#lists.rules(subject), caller, this.#clock.now()) === 'deny') throw new SvcError('access_denied');
  }
}
