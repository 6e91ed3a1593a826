/** A directory over a database, an in-memory network and a test clock. */

import { Directory } from '../../src/capabilities/directory/directory.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { selfDelegation } from '../../src/foundation/identity/delegation.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { NewAids } from '../../src/foundation/identity/new-identities.ts';
import { silentLog } from '../../src/foundation/log.ts';
import type { SignedRecord } from '../../src/foundation/records/record.ts';
import { AgentStore } from '../../src/foundation/store/agents.ts';
import { PublicationStore } from '../../src/foundation/store/publications.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import type { LocalIdentity } from '../../src/network/links/types.ts';
import type { NodeAddresses } from '../../src/network/reachability/own-addresses.ts';
import { newIdentity, type TestIdentity } from './identities.ts';
import { ScriptedRecords } from './scripted-records.ts';
import { TestClock } from './test-clock.ts';

interface WorldOptions {
  readonly clock?: TestClock;
  readonly network?: ScriptedRecords;
  readonly node?: KeyPair;
  readonly store?: Store;
  /** Default: off. Tests decide what is published. */
  readonly autoPublish?: boolean;
}

export class DirectoryWorld {
  readonly clock: TestClock;
  readonly network: ScriptedRecords;
  readonly store: Store;
  readonly node: KeyPair;
  readonly agents: AgentStore;
  readonly publications: PublicationStore;
  readonly newAids: NewAids;
  readonly directory: Directory;
  readonly nodeAid: Aid;
  readonly bound = new Map<Aid, string>();
  readonly published: SignedRecord[] = [];
  /** Delegations that were noted. */
  readonly noted: [Aid, number][] = [];
  autoPublish: boolean;
  addresses: NodeAddresses = { endpoints: ['quic://192.0.2.1:4122'], mapped: [], natType: 1, helpers: [] };
  readonly #identities = new Map<Aid, LocalIdentity>();
  #addressHandler: (isUrgent: boolean) => void = () => {};

  constructor(options: WorldOptions = {}) {
    this.clock = options.clock ?? new TestClock();
    this.network = options.network ?? new ScriptedRecords(this.clock);
    this.node = options.node ?? KeyPair.generate();
    this.store = options.store ?? Store.open(':memory:', MIGRATIONS);
    this.autoPublish = options.autoPublish ?? false;
    this.agents = new AgentStore(this.store);
    this.publications = new PublicationStore(this.store);
    this.newAids = new NewAids(this.clock);
    const delegation = selfDelegation(this.node);
    this.nodeAid = delegation.agent;
    this.#identities.set(this.nodeAid, {
      aid: this.nodeAid,
      delegation,
      sign: (message) => this.node.sign(message),
    });
    this.directory = new Directory(
      { nodeAid: this.nodeAid, nodeKey: this.node.publicKey },
      {
        network: this.network,
        publications: this.publications,
        newAids: this.newAids,
        clock: this.clock,
        log: silentLog,
        identity: (aid) => this.#identities.get(aid) ?? null,
        registry: {
          isHeld: (aid) => this.agents.get(aid)?.isHeld === true,
          service: (aid) => this.bound.get(aid) ?? '',
        },
        ownAddresses: {
          current: () => this.addresses,
          onChange: (handler) => {
            this.#addressHandler = handler;
            return () => {
              this.#addressHandler = () => {};
            };
          },
        },
        autoPublish: () => this.autoPublish,
        seen: { newest: () => 0, note: (aid, issuedAt) => void this.noted.push([aid, issuedAt]) },
        random: () => 0.5,
        onPublished: (record) => this.published.push(record),
      },
    );
  }

  /** Adds a local agent without telling the directory. */
  add(identity: TestIdentity = newIdentity()): TestIdentity {
    this.agents.put({
      keyName: `${identity.aid} ${identity.delegation.issuedAt}`,
      delegation: identity.delegation,
      serviceTcp: '',
      registeredAt: this.clock.now(),
    });
    this.#identities.set(identity.aid, {
      aid: identity.aid,
      delegation: identity.delegation,
      sign: (message) => identity.operational.sign(message),
    });
    return identity;
  }

  remove(aid: Aid): void {
    this.agents.delete(aid);
    this.#identities.delete(aid);
  }

  moveTo(...endpoints: string[]): void {
    this.addresses = { ...this.addresses, endpoints };
    this.#addressHandler(true);
  }

  /** Changes the NAT type without changing the published endpoint. */
  findNatType(natType: number): void {
    this.addresses = { ...this.addresses, natType };
    this.#addressHandler(false);
  }

  /** The published records of one type of an agent, oldest first. */
  kept(aid: Aid, type = 1): SignedRecord[] {
    return this.network.kept.filter((record) => record.aid === aid && record.type === type);
  }
}
