/** Operations on agents and the directory, with real capabilities over an in-memory network. */

import { Compile } from 'typebox/compile';
import { AgentRegistry } from '../../src/capabilities/agents/registry.ts';
import type { TcpCheck } from '../../src/capabilities/agents/types.ts';
import { callerKey } from '../../src/capabilities/calls/caller-proof.ts';
import { Directory } from '../../src/capabilities/directory/directory.ts';
import { discover, RecentServices } from '../../src/capabilities/directory/discovery.ts';
import type { PendingView } from '../../src/capabilities/events/pending-counters.ts';
import { selfDelegation } from '../../src/foundation/identity/delegation.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { NewAids } from '../../src/foundation/identity/new-identities.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { AgentStore } from '../../src/foundation/store/agents.ts';
import { PublicationStore } from '../../src/foundation/store/publications.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import type { NodeAddresses } from '../../src/network/reachability/own-addresses.ts';
import { Resolver } from '../../src/network/resolver.ts';
import { agentOperations } from '../../src/operations/agents.ts';
import { directoryOperations } from '../../src/operations/directory.ts';
import { agentHandlers } from '../../src/operations/handlers/agents.ts';
import { directoryHandlers } from '../../src/operations/handlers/directory.ts';
import { walletHandlers } from '../../src/operations/handlers/wallets.ts';
import { compileInput } from '../../src/operations/input.ts';
import { type BoundOperation, bind, type CallContext } from '../../src/operations/operation.ts';
import { walletOperations } from '../../src/operations/wallets.ts';
import { MemoryVault } from './memory-vault.ts';
import { ScriptedRecords } from './scripted-records.ts';
import { TestClock } from './test-clock.ts';

export class HandlerWorld {
  readonly clock = new TestClock();
  readonly network = new ScriptedRecords(this.clock);
  readonly store = Store.open(':memory:', MIGRATIONS);
  readonly node = KeyPair.generate();
  readonly nodeAid = selfDelegation(this.node).agent;
  readonly agents: AgentRegistry;
  readonly directory: Directory;
  readonly operations: ReadonlyMap<string, BoundOperation>;
  tcp: TcpCheck = { ok: true, ms: 1.5 };
  pending: PendingView = {};
  addresses: NodeAddresses = { endpoints: ['quic://192.0.2.1:4122'], mapped: [], natType: 1, helpers: [] };

  constructor() {
    const { clock, network, store } = this;
    const log = silentLog;
    this.agents = new AgentRegistry(
      { nodeAid: this.nodeAid },
      {
        agents: new AgentStore(store),
        vault: new MemoryVault(),
        clock,
        log,
        own: { api: () => ({ host: '127.0.0.1', port: 2121 }), interfaces: () => [], lookup: async () => [] },
        checkTcp: async () => this.tcp,
      },
    );
    const resolver = new Resolver({ network, clock, log, lookupHost: async () => [] });
    const newAids = new NewAids(clock);
    this.directory = new Directory(
      { nodeAid: this.nodeAid, nodeKey: this.node.publicKey },
      {
        network,
        publications: new PublicationStore(store),
        newAids,
        clock,
        log,
        identity: (aid) => this.agents.identity(aid),
        registry: this.agents,
        ownAddresses: { current: () => this.addresses, onChange: () => () => {} },
        autoPublish: () => false,
        random: () => 0.5,
        onPublished: (record) => resolver.learn(record),
      },
    );
    this.agents.onChange((change) => void this.directory.agentChanged(change));
    const bound = [
      ...bind(
        agentOperations,
        agentHandlers({
          newAids,
          agents: this.agents,
          directory: this.directory,
          resolver,
          clock,
          nodeKey: this.node.publicKey,
          callerKey: (aid) => callerKey(this.node.seed, aid),
          acl: () => ({ default: 'public', allow: [], deny: [] }),
          acls: (aids) => new Map(aids.map((aid) => [aid, { default: 'public', allow: [], deny: [] }])),
          pendingCounters: () => this.pending,
          reachable: () => true,
        }),
      ),
      ...bind(walletOperations, walletHandlers({ agents: this.agents, newAids, clock })),
      ...bind(
        directoryOperations,
        directoryHandlers({
          agents: this.agents,
          directory: this.directory,
          resolver,
          cardOf: () => undefined,
          discover: async (search) => discover(network, search),
          recent: new RecentServices({ recent: () => [] }, { clock }),
        }),
      ),
    ];
    this.operations = new Map(bound.map((operation) => [operation.declaration.name, operation]));
  }

  /** Runs an operation like a surface: checks the input and the output against the schemas. */
  async call<T>(
    name: string,
    input: { params?: object; query?: object; body?: object } = {},
    origin: CallContext['origin'] = 'local',
  ): Promise<T> {
    const operation = this.operations.get(name);
    if (operation === undefined) throw new Error(`no operation ${name}`);
    const { params = {}, query = {}, body = {} } = input;
    const flat = compileInput(operation.declaration)({ params: { ...params }, query: { ...query }, body });
    const context: CallContext = {
      origin,
      signal: new AbortController().signal,
      requireToken: () => {},
      setStatus: () => {},
    };
    const output = JSON.parse(JSON.stringify(await operation.run(flat, context)));
    const check = Compile(operation.declaration.output);
    if (!check.Check(output)) throw new Error(`${name} broke its schema: ${JSON.stringify(check.Errors(output))}`);
    return output as T;
  }
}
