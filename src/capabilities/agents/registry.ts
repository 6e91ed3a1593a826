/** The registry of local agents: their identities, their services and their liveness. */
import type { Address } from '../../foundation/address.ts';
import type { AgentChange } from '../../foundation/agent-change.ts';
import { toHex } from '../../foundation/bytes.ts';
import { unixSeconds } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { type Delegation, delegates, encodeDelegation } from '../../foundation/identity/delegation.ts';
import { parsePrivateKey } from '../../foundation/identity/keys.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import {
  type OwnApi,
  parseServiceAddress,
  rejectOwnApi,
  rejectOwnLocalAddress,
} from '../../foundation/service-address.ts';
import type { AgentRow, AgentStore, ListedAgent } from '../../foundation/store/agents.ts';
import type { LocalIdentity } from '../../network/links/types.ts';
import { Heartbeats } from './heartbeats.ts';
import { type Credentials, Keyring, keyName, readCredentials } from './keyring.ts';
import { ServiceMonitor, type ServiceState } from './service-monitor.ts';
import type { KeyVault, LocalAgent, TcpCheck } from './types.ts';

/** Agents that a state change of their shared service is reported for. */
const MAX_BOUND_AGENTS = 10;

/** Replaced services kept per agent while temporary ones are bound. The oldest are dropped. */
const MAX_REPLACED_SERVICES = 8;

export interface RegistryOptions {
  /** The node's own identity, which cannot be registered as an agent. */
  readonly nodeAid: Aid;
}

export interface RegistryDependencies extends NodeParts {
  readonly agents: AgentStore;
  readonly vault: KeyVault;
  readonly own: OwnApi;
  /** Connects to a bound service and closes the connection. Never rejects. */
  readonly checkTcp: (address: Address, timeoutMs: number) => Promise<TcpCheck>;
  /** A new agent is temporary. Runs in the transaction that stores it. */
  readonly onTemporary?: (aid: Aid) => void;
}

export interface RegisterRequest {
  readonly operationalPrivateKeyHex: string;
  readonly delegationProofHex: string;
  /** Unchanged if omitted. */
  readonly serviceTcp?: string;
  /** Publish the agent only on request, not automatically. */
  readonly isHeld?: boolean;
  /** A new agent is deleted when its program ends. */
  readonly isTemporary?: boolean;
}

export interface PatchRequest {
  /** Empty: no service. */
  readonly serviceTcp: string;
  /**
   * The service temporarily replaces the bound one, which is stored. If `serviceTcp` is empty, the stored service is
   * bound again.
   */
  readonly isTemporary?: boolean;
  readonly operationalPrivateKeyHex?: string;
  /** The request comes from a program on this machine, which may omit the key. */
  readonly local: boolean;
}

export class AgentRegistry implements Component {
  readonly #options: RegistryOptions;
  readonly #deps: RegistryDependencies;
  readonly #keyring: Keyring;
  readonly #heartbeats: Heartbeats;
  readonly #monitor: ServiceMonitor;
  readonly #changes = new Listeners<[AgentChange]>();
  readonly #rotations = new Listeners<[Aid]>();
  readonly #stopped = new Listeners<[aid: Aid, service: string]>();

  constructor(options: RegistryOptions, dependencies: RegistryDependencies) {
    this.#options = options;
    const { agents, vault, clock } = dependencies;
    const log = dependencies.log.child('agents');
    this.#deps = { ...dependencies, log };
    this.#keyring = new Keyring(agents, vault, log);
    this.#heartbeats = new Heartbeats(agents, clock, log);
    this.#monitor = new ServiceMonitor(clock, log, () => agents.boundServices(), dependencies.checkTcp);
    this.#monitor.changed.add((state) => this.#restoreAfter(state));
  }

  async start(): Promise<void> {
    this.#keyring.deleteUnusedKeys();
    this.#monitor.start();
  }

  async stop(): Promise<void> {
    this.#monitor.stop();
    this.#heartbeats.stop();
  }

  /** Adds a listener for changes. Returns a function that removes it. */
  onChange(listener: (change: AgentChange) => void): () => void {
    return this.#changes.add(listener);
  }

  /** Adds a listener for bound temporary services whose program stopped. Returns a function that removes it. */
  onServiceStopped(listener: (aid: Aid, service: string) => void): () => void {
    return this.#stopped.add(listener);
  }

  /** The bound service of an agent, and those that temporary ones replaced; null if the bound one is permanent. */
  services(aid: Aid): { readonly bound: string; readonly before: readonly string[] | null } {
    const row = this.#deps.agents.get(aid);
    if (row === null) return { bound: '', before: null };
    return { bound: row.serviceTcp, before: row.servicesBefore.length === 0 ? null : row.servicesBefore };
  }

  /**
   * Adds a listener that runs before an agent's operational key is replaced, while the old key is still in use. The
   * listener must store everything that depends on the old key. If it throws, the registration fails. Returns a
   * function that removes it.
   */
  beforeRotation(listener: (aid: Aid) => void): () => void {
    return this.#rotations.add(listener);
  }

  /** Adds a listener for services that start or stop answering. Returns a function that removes it. */
  onServiceState(listener: (state: ServiceState) => void): () => void {
    return this.#monitor.changed.add(listener);
  }

  /** Up to `MAX_BOUND_TOLD` agents that are bound to a service. */
  agentsBoundTo(service: string): Aid[] {
    return this.#deps.agents.agentsBoundTo(service, MAX_BOUND_AGENTS);
  }

  /** The identity of a local agent, with its signing function. Null if the agent is not registered here. */
  identity(aid: Aid): LocalIdentity | null {
    return this.#keyring.identity(aid);
  }

  count(): number {
    return this.#deps.agents.count();
  }

  /**
   * Registers an identity. A known agent keeps its state: a newer delegation replaces its key, and with the same key
   * only the service changes.
   * @throws SvcError `bad_key`, `bad_delegation`, `bad_service_address`, `operational_key_mismatch` (409)
   */
  async register(request: RegisterRequest): Promise<Aid> {
    const now = unixSeconds(this.#deps.clock);
    const credentials = readCredentials(request.operationalPrivateKeyHex, request.delegationProofHex, now);
    const service =
      request.serviceTcp === undefined
        ? undefined
        : await this.#readService(request.serviceTcp, credentials.delegation.agent);
    return this.#keep(credentials, service, request);
  }

  /** Synchronous, so two registrations of one agent cannot interleave. */
  #keep({ pair, delegation }: Credentials, service: string | undefined, request: RegisterRequest): Aid {
    const { agents, clock } = this.#deps;
    const aid = delegation.agent;
    this.#refuseNode(aid);
    const known = agents.get(aid);
    const sameKey = known !== null && delegates(delegation, known.operationalKey);
    const newer = known === null || delegation.issuedAt > known.window.issuedAt;
    if (!newer && !sameKey)
      throw new SvcError('operational_key_mismatch', {
        status: 409,
        message: 'This agent is already registered with another operational key. Register it with a newer delegation.',
      });
    const name = keyName(aid, pair.publicKey);
    if (known !== null && !sameKey) this.#rotations.notify(aid);
    if (!sameKey || this.#keyring.pair(name) === null) this.#keyring.put(name, pair);
    agents.transaction(() => {
      const serviceTcp = service ?? known?.serviceTcp ?? '';
      if (newer) agents.put({ keyName: name, delegation, serviceTcp, registeredAt: clock.now() });
      else if (service !== undefined) agents.setService(aid, service);
      agents.setHeld(aid, request.isHeld === true);
      if (known === null && request.isTemporary === true) this.#deps.onTemporary?.(aid);
    });
    if (newer && known !== null && !sameKey) this.#keyring.discard(known.keyName);
    this.#keyring.invalidate(aid);
    this.#heartbeats.record(aid);
    this.#checkSoon(service ?? '');
    this.#changed({ aid, kind: known !== null && newer ? 'rotated' : 'registered' });
    return aid;
  }

  /**
   * Registers an identity that moves here, in one transaction with the writes of `writeRest`.
   * @param writeRest runs in the transaction, after the agent is stored
   * @throws SvcError `agent_exists`, as `register`, and any error of `writeRest`
   */
  async adopt(
    request: Required<Omit<RegisterRequest, 'isHeld' | 'isTemporary'>>,
    writeRest: (delegation: Delegation) => void,
  ): Promise<Aid> {
    const { agents, clock } = this.#deps;
    const now = unixSeconds(clock);
    const { pair, delegation } = readCredentials(request.operationalPrivateKeyHex, request.delegationProofHex, now);
    const aid = delegation.agent;
    const serviceTcp = await this.#readService(request.serviceTcp, aid);
    this.#refuseNode(aid);
    if (agents.get(aid) !== null)
      throw new SvcError('agent_exists', {
        message: `${aid} is already registered here; nothing was changed. To use the exported state instead, delete the agent first.`,
      });
    const name = keyName(aid, pair.publicKey);
    this.#keyring.put(name, pair);
    try {
      agents.transaction(() => {
        agents.put({ keyName: name, delegation, serviceTcp, registeredAt: clock.now() });
        this.#keyring.invalidate(aid);
        writeRest(delegation);
      });
    } catch (error) {
      this.#keyring.invalidate(aid);
      this.#keyring.discard(name);
      throw error;
    }
    this.#keyring.invalidate(aid);
    this.#heartbeats.record(aid);
    this.#checkSoon(serviceTcp);
    this.#changed({ aid, kind: 'registered' });
    return aid;
  }

  /** The change is on disk, so the request succeeds also if a listener fails, for example because the disk is full. */
  #changed(change: AgentChange): void {
    try {
      this.#changes.notify(change);
    } catch (error) {
      this.#deps.log.error({ ...change, error }, 'a part of the daemon could not process the change of an agent');
    }
  }

  /** Checks a newly bound service now, so that its state is known before the next round. */
  #checkSoon(serviceTcp: string): void {
    if (serviceTcp !== '') detach(this.#monitor.state(serviceTcp));
  }

  /** @throws SvcError `not_found` */
  get(aid: Aid): LocalAgent {
    return this.#view(this.#row(aid));
  }

  /** Like `get`, but checks the bound service first unless a recent result exists. */
  async getFresh(aid: Aid): Promise<LocalAgent> {
    const { serviceTcp } = this.#row(aid);
    if (serviceTcp !== '') await this.#monitor.state(serviceTcp);
    return this.get(aid);
  }

  /**
   * Agents in the order of their registration.
   * @returns `nextCursor` is null on the last page
   * @throws SvcError `invalid_request` if the cursor is invalid
   */
  list(limit: number, cursor?: string) {
    if (cursor !== undefined && !/^\d{1,15}$/.test(cursor))
      throw new SvcError('invalid_request', {
        message: 'Invalid cursor. Use next_cursor of the previous page.',
        details: { path: '/cursor' },
      });
    const rows = this.#deps.agents.page(Number(cursor ?? 0), limit + 1);
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    return {
      agents: shown.map((row) => this.#view(row)),
      nextCursor: rows.length > limit && last !== undefined ? `${last.id}` : null,
    };
  }

  /**
   * Binds another service.
   * @throws SvcError `not_found`, `bad_key`, `operational_key_mismatch`, `bad_service_address`
   */
  async patch(aid: Aid, request: PatchRequest): Promise<LocalAgent> {
    const row = this.#row(aid);
    const { operationalPrivateKeyHex: key } = request;
    if (key === undefined && !request.local)
      throw new SvcError('operational_key_mismatch', {
        message: 'Changing service_tcp from another machine requires operational_private_key_hex.',
      });
    if (key !== undefined && keyName(aid, parsePrivateKey(key).publicKey) !== row.keyName)
      throw new SvcError('operational_key_mismatch');
    const service = await this.#readService(request.serviceTcp, aid);
    this.#bind(this.#row(aid), service, request.isTemporary === true);
    this.#heartbeats.record(aid);
    this.#changed({ aid, kind: 'bound' });
    return this.getFresh(aid);
  }

  /**
   * Deletes an agent, its key and all its rows.
   * @throws SvcError `not_found`
   */
  delete(aid: Aid): void {
    const row = this.#row(aid);
    this.#deps.agents.delete(aid);
    this.#keyring.discard(row.keyName);
    this.#keyring.invalidate(aid);
    this.#heartbeats.forget(aid);
    this.#changed({ aid, kind: 'deleted' });
  }

  /**
   * Records a heartbeat.
   * @returns Unix milliseconds of the heartbeat
   * @throws SvcError `not_found`
   */
  heartbeat(aid: Aid): number {
    // Every call is also a heartbeat. An identity in the keyring proves that the agent exists without a database query.
    if (this.#keyring.identity(aid) === null) this.#row(aid);
    this.#heartbeats.record(aid);
    return this.#deps.clock.now();
  }

  /** True if the agent is published only on request. */
  isHeld(aid: Aid): boolean {
    return this.#deps.agents.get(aid)?.isHeld === true;
  }

  /** The bound service of an agent. Empty if there is none or the agent is not registered here. */
  service(aid: Aid): string {
    return this.#deps.agents.get(aid)?.serviceTcp ?? '';
  }

  /**
   * Connects to the bound service now. Null if the agent has no service.
   * @throws SvcError `not_found`
   */
  async checkService(aid: Aid): Promise<TcpCheck | null> {
    const { serviceTcp } = this.#row(aid);
    return serviceTcp === '' ? null : this.#monitor.check(serviceTcp);
  }

  /**
   * The operational credentials in clear text. The caller must ensure that they stay on this machine.
   * @throws SvcError `not_found`, `key_locked`
   */
  export(aid: Aid) {
    const row = this.#row(aid);
    const pair = this.#keyring.pair(row.keyName);
    const identity = this.#keyring.identity(aid);
    if (pair === null || identity === null)
      throw new SvcError('not_found', {
        thing: 'agent',
        message: "This agent's key file is missing. Register the agent again.",
      });
    return {
      aid,
      operationalPrivateKeyHex: toHex(pair.seed),
      delegationProofHex: toHex(encodeDelegation(identity.delegation)),
      serviceTcp: row.serviceTcp,
    };
  }

  #bind({ aid, serviceTcp, servicesBefore }: AgentRow, service: string, isTemporary: boolean): void {
    const { agents } = this.#deps;
    if (service !== '' && service === serviceTcp) return;
    if (!isTemporary) return agents.setService(aid, service);
    const [last = '', ...others] = servicesBefore;
    if (service === '') agents.setService(aid, last, others);
    else agents.setService(aid, service, [serviceTcp, ...servicesBefore].slice(0, MAX_REPLACED_SERVICES));
  }

  /**
   * A temporary program that was killed could not unbind itself. Only a refused connection proves that it stopped: a
   * busy program may miss a check.
   */
  #restoreAfter({ service, error }: ServiceState): void {
    if (error !== 'ECONNREFUSED' || !parseServiceAddress(service).provesItself) return;
    const { agents, log } = this.#deps;
    for (const aid of agents.agentsBoundTo(service, MAX_BOUND_AGENTS)) {
      const row = this.#row(aid);
      this.#stopped.notify(aid, service);
      // Without an earlier service there is nothing to restore.
      if (row.servicesBefore.every((one) => one === '')) continue;
      this.#bind(row, '', true);
      log.info({ aid, service }, 'temporary service stopped; the previous service is bound again');
      this.#checkSoon(agents.get(aid)?.serviceTcp ?? '');
      this.#changed({ aid, kind: 'bound' });
    }
  }

  #refuseNode(aid: Aid): void {
    if (aid === this.#options.nodeAid)
      throw new SvcError('invalid_request', { message: "This AID is the node's own identity, not an agent." });
  }

  #row(aid: Aid): AgentRow {
    const row = this.#deps.agents.get(aid);
    if (row === null) throw noSuchAgent(aid);
    return row;
  }

  async #readService(text: string, aid: Aid): Promise<string> {
    if (text.trim() === '') return '';
    const service = parseServiceAddress(text);
    rejectOwnLocalAddress(service, aid, this.#deps.own);
    await rejectOwnApi(service, this.#deps.own);
    return service.text;
  }

  #secondsSinceHeartbeat(row: ListedAgent): number {
    const last = this.#heartbeats.last(row.aid, row.heartbeatAt);
    return Math.max(0, Math.floor((this.#deps.clock.now() - last) / 1000));
  }

  #view(row: ListedAgent): LocalAgent {
    const serviceError = this.#monitor.lastError(row.serviceTcp);
    return {
      aid: row.aid,
      serviceTcp: row.serviceTcp,
      serviceBefore: row.servicesBefore[0] ?? null,
      serviceOk: row.serviceTcp === '' ? null : this.#monitor.last(row.serviceTcp),
      ...(serviceError === undefined ? {} : { serviceError }),
      heartbeatSecondsAgo: this.#secondsSinceHeartbeat(row),
      window: row.window,
    };
  }
}
