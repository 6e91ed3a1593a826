/**
 * Access control: who may call an agent, read its objects or tunnel to it, and who may administer
 * the node from afar. Notes, records, chat and rooms have rules of their own and pass.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { AccessDecision } from '../../foundation/domain/access.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { type AccessRequest, type LinkAsk, type Purpose, TUNNEL_PURPOSES } from '../../network/links/types.ts';
import type { AccessLists } from './access-lists.ts';
import type { DeriveSecret } from './derivations.ts';
import { decide, isNamed, opens } from './rules.ts';
import { SecretCheck } from './secret-check.ts';

/** What the access list of a called agent decides about. */
const GOVERNED: ReadonlySet<Purpose> = new Set<Purpose>(['http', ...TUNNEL_PURPOSES, 'object', 'push-box']);

export interface AccessControlDependencies {
  readonly lists: AccessLists;
  readonly clock: Clock;
  /** Hashes presented secrets, as those of the lists were hashed. */
  readonly derive: DeriveSecret;
  /** True while only this daemon's own agents may pass: the access lists may be older than they were. */
  readonly isClosed?: () => boolean;
}

export class AccessControl {
  readonly #lists: AccessLists;
  readonly #clock: Clock;
  readonly #secrets: SecretCheck;
  readonly #isClosed: () => boolean;

  constructor({ lists, clock, derive, isClosed = () => false }: AccessControlDependencies) {
    this.#lists = lists;
    this.#clock = clock;
    this.#isClosed = isClosed;
    this.#secrets = new SecretCheck(clock, derive);
  }

  /** True while no other node is let in, whatever the lists say; agents of this daemon are. */
  isClosedTo({ nodeKey }: Pick<AccessRequest, 'nodeKey'>): boolean {
    return nodeKey !== null && this.#isClosed();
  }

  /** True where the owner of an agent has let a caller in by its AID, and not only everybody. */
  names(called: Aid, caller: Aid): boolean {
    return isNamed(this.#lists.rules(called), caller, this.#clock.now());
  }

  /** False for a caller that the access list shuts out, though links of such a purpose have rules of their own and pass. */
  admits({ called, caller, purpose }: LinkAsk): boolean {
    return purpose === 'admin' || GOVERNED.has(purpose) || this.decide(called, caller) === 'allow';
  }

  /** True where the owner of an agent has shut a caller out by its AID. */
  denies(called: Aid, caller: Aid): boolean {
    return this.#lists.rules(called).deny.has(caller);
  }

  /** What the access list of an agent says of a caller, before any secret is looked at. */
  decide(called: Aid, caller: Aid): AccessDecision {
    return decide(this.#lists.rules(called), caller, this.#clock.now());
  }

  /**
   * Lets a proven caller pass, or says why not.
   * @throws SvcError `access_denied`; `rate_limited` with `retry_after_s` for who guesses secrets
   */
  async authorize(request: AccessRequest): Promise<void> {
    const subject = request.purpose === 'admin' ? 'node' : request.called;
    if (subject !== 'node' && !GOVERNED.has(request.purpose)) return;
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
    const opensNow = (hash: Uint8Array) => opens(this.#lists.rules(subject), hash, this.#clock.now());
    if (!(await this.#secrets.check(subject, rules.salt, request.accessToken, guesser, opensNow)))
      throw new SvcError('access_denied');
    // The lists may have changed while the secret was derived.
    if (decide(this.#lists.rules(subject), request.caller, this.#clock.now()) === 'deny')
      throw new SvcError('access_denied');
  }
}
