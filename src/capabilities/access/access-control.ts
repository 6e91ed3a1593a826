/**
 * Access control: decides which callers may call an agent, read its objects, tunnel to it or administer the node
 * remotely. Notes, records, chat and groups have their own rules.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { AccessDecision } from '../../foundation/domain/access.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { type AccessRequest, type LinkAsk, type Purpose, TUNNEL_PURPOSES } from '../../network/links/types.ts';
import type { AccessLists } from './access-lists.ts';
import type { DeriveSecret } from './derivations.ts';
import { decide, isNamed, matchesSecret } from './rules.ts';
import { SecretCheck } from './secret-check.ts';

/** Purposes that the access list of the called agent controls. */
const CONTROLLED_PURPOSES: ReadonlySet<Purpose> = new Set<Purpose>(['http', ...TUNNEL_PURPOSES, 'object', 'push-box']);

export class AccessControl {
  readonly #lists: AccessLists;
  readonly #clock: Clock;
  readonly #secrets: SecretCheck;
  readonly #isClosed: () => boolean;

  /**
   * @param derive hashes presented secrets like the secrets of the lists
   * @param isClosed true while only local agents may call: the access lists may be outdated
   */
  constructor(lists: AccessLists, clock: Clock, derive: DeriveSecret, isClosed: () => boolean = () => false) {
    this.#lists = lists;
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
    return this.#lists.rules(called).deny.has(caller);
  }

  /** The decision of an agent's access list about a caller, before any secret is checked. */
  decide(called: Aid, caller: Aid): AccessDecision {
    return decide(this.#lists.rules(called), caller, this.#clock.now());
  }

  /**
   * Resolves if an authenticated caller may open the link.
   * @throws SvcError `access_denied`; `rate_limited` with `retry_after_s` after too many wrong secrets
   */
  async authorize(request: AccessRequest): Promise<void> {
    const subject = request.purpose === 'admin' ? 'node' : request.called;
    if (subject !== 'node' && !CONTROLLED_PURPOSES.has(request.purpose)) return;
    if (this.isClosedTo(request)) throw new SvcError('access_denied');
    const rules = this.#lists.rules(subject);
    const decision = decide(rules, request.caller, this.#clock.now());
    if (decision === 'allow') return;
    if (decision === 'deny' || request.accessToken === undefined || rules.salt === null)
      throw new SvcError('access_denied');
    const guesser = {
      caller: request.caller,
      node: request.nodeKey === null ? null : Buffer.from(request.nodeKey).toString('hex'),
      source: request.source,
    };
    const matches = (hash: Uint8Array) => matchesSecret(this.#lists.rules(subject), hash, this.#clock.now());
    if (!(await this.#secrets.check(subject, rules.salt, request.accessToken, guesser, matches)))
      throw new SvcError('access_denied');
    // The lists may have changed during the derivation.
    if (decide(this.#lists.rules(subject), request.caller, this.#clock.now()) === 'deny')
      throw new SvcError('access_denied');
  }
}
