/**
 * Remote administration: links of purpose `admin` from callers on the node's access list become connections of the API,
 * which never count as local. Off by default.
 */
import type { Duplex } from 'node:stream';
import { SvcError } from '../../foundation/errors.ts';
import { memberOf } from '../../foundation/json.ts';
import type { Log } from '../../foundation/log.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import type { AuditCaller, AuditStore } from '../../foundation/store/audit.ts';
import {
  type AccessRequest,
  accessRequestOf,
  askAgain,
  type LinkStream,
  type Permissions,
} from '../../network/links/types.ts';
import { AdminSession, type RequestObserver } from './admin-session.ts';
import { AuditTrail } from './audit-trail.ts';

/** Open connections of one administrator, and in total. */
export const MAX_SESSIONS_PER_CALLER = 32;
export const MAX_SESSIONS = 128;

const KEY = 'remote_admin';

export interface RemoteAdminDependencies extends NodeParts, Permissions {
  /** Stores whether remote administration is on. */
  readonly memory: { get(key: string): unknown; set(key: string, value: { enabled: boolean }): void };
  readonly audit: AuditStore;
  /** Serves the API on a stream, which never counts as local, and notifies the observer of each request. */
  serve(stream: Duplex, observer: RequestObserver): void;
}

function callerOf({ caller, nodeKey, source }: AccessRequest): AuditCaller {
  return { caller, address: source, nodeKey: nodeKey === null ? null : Buffer.from(nodeKey).toString('hex') };
}

export class RemoteAdmin {
  readonly trail: AuditTrail;
  readonly #deps: RemoteAdminDependencies;
  readonly #log: Log;
  readonly #sessions = new Set<AdminSession>();
  #enabled: boolean;
  #stopped = false;

  constructor(dependencies: RemoteAdminDependencies) {
    const { memory, audit, clock, log } = dependencies;
    this.#deps = dependencies;
    this.#log = log.child('remote-admin');
    this.trail = new AuditTrail(audit, clock, this.#log);
    this.#enabled = memberOf(memory.get(KEY), 'enabled') === true;
  }

  get enabled(): boolean {
    return this.#enabled;
  }

  /** Open connections. */
  get sessions(): number {
    return this.#sessions.size;
  }

  /** Switches remote administration on or off. Off closes all sessions. */
  setEnabled(enabled: boolean): void {
    this.#deps.memory.set(KEY, { enabled });
    this.#enabled = enabled;
    this.#log.info({ enabled }, 'switched remote administration');
    if (!enabled) for (const session of this.#sessions) session.revoke();
  }

  /**
   * Resolves if an authenticated caller may administer this node.
   * @throws SvcError `access_denied`, which does not reveal whether it is off; `rate_limited`
   */
  async authorize(request: AccessRequest): Promise<void> {
    try {
      await this.#check(request);
    } catch (error) {
      const limited = error instanceof SvcError && error.code === 'rate_limited';
      const reason = limited ? 'rate_limited' : this.#enabled ? 'access_denied' : 'disabled';
      this.trail.refused(callerOf(request), reason, this.#deps.isNamed(request));
      throw error;
    }
  }

  /** Accepts an authorized link of purpose `admin`. */
  accept(link: LinkStream): void {
    const ofCaller = [...this.#sessions].filter((session) => session.link.caller === link.caller).length;
    if (this.#stopped || !this.#enabled || ofCaller >= MAX_SESSIONS_PER_CALLER || this.#sessions.size >= MAX_SESSIONS) {
      link.destroy();
      return;
    }
    const caller = callerOf(accessRequestOf(link));
    const session = new AdminSession(
      link,
      this.#deps.clock,
      (method, path) => this.trail.request(caller, method, path),
      (stream, observer) => this.#deps.serve(stream, observer),
    );
    this.#sessions.add(session);
    link.once('close', () => this.#sessions.delete(session));
  }

  /** Authorizes every open session again after the node's access list changed, and closes rejected ones. */
  async recheck(): Promise<void> {
    const check = (request: AccessRequest) => this.#check(request);
    await askAgain(this.#sessions, check, (session) => session.revoke());
  }

  /** Closes every session. */
  stop(): void {
    this.#stopped = true;
    for (const { link } of this.#sessions) link.destroy();
  }

  async #check(request: AccessRequest): Promise<void> {
    if (!this.#enabled) throw new SvcError('access_denied');
    await this.#deps.authorize(request);
    // It may have been switched off during the derivation of a secret.
    if (!this.#enabled) throw new SvcError('access_denied');
  }
}
