/** Chat nodes with in-memory links whose faults the test controls. */
import { Chat } from '../../src/capabilities/chat/chat.ts';
import type { ChatObjects } from '../../src/capabilities/chat/types.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { AgentStore } from '../../src/foundation/store/agents.ts';
import { ChatStore } from '../../src/foundation/store/chat.ts';
import { type ChatEntry, ChatLog } from '../../src/foundation/store/chat-log.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import type { LocalIdentity } from '../../src/network/links/types.ts';
import type { FlakyNode } from './flaky-links.ts';
import { localIdentity, newIdentity, type TestIdentity } from './identities.ts';
import type { TestEvent } from './mail-world.ts';
import { SteppedWorld } from './stepped-world.ts';

export class ChatWorld extends SteppedWorld {
  async node(name: string, store: Store = Store.open(':memory:', MIGRATIONS)): Promise<ChatNode> {
    const node = new ChatNode(this, name, store);
    await node.chat.start();
    return node;
  }

  /** Two agents on two nodes. */
  async two(): Promise<[ChatNode, Aid, ChatNode, Aid]> {
    const [a, b] = [await this.node('a'), await this.node('b')];
    return [a, a.host().aid, b, b.host().aid];
  }

  /** Two friends on two nodes. */
  async friends(): Promise<[ChatNode, Aid, ChatNode, Aid]> {
    const [a, alice, b, bob] = await this.two();
    a.chat.request(alice, bob, '');
    await this.until('the request', () => b.state(bob, alice) === 'in_pending');
    b.chat.accept(bob, alice);
    await this.until('the answer', () => a.state(alice, bob) === 'friends');
    await this.clock.run(10);
    return [a, alice, b, bob];
  }
}

export class ChatNode {
  readonly world: ChatWorld;
  readonly name: string;
  readonly store: Store;
  readonly links: FlakyNode;
  readonly chat: Chat;
  readonly pairs: ChatStore;
  readonly events: TestEvent[] = [];
  readonly #identities = new Map<Aid, LocalIdentity>();
  readonly #handlers = new Set<() => void>();
  /** Whether the network of this node is ready. */
  ready = true;
  objects: ChatObjects = {
    put: async () => ({ objectId: 'ab'.repeat(32), size: 3, name: 'notes.txt' }),
    has: (_aid, objectId) => (objectId === 'cd'.repeat(32) ? { size: 7, name: 'known.bin' } : null),
  };

  constructor(world: ChatWorld, name: string, store: Store) {
    this.world = world;
    this.name = name;
    this.store = store;
    this.links = world.links.node(name);
    this.pairs = new ChatStore(store);
    this.chat = new Chat({
      isKnown: () => false,
      store: this.pairs,
      entries: new ChatLog(store),
      links: this.links,
      objects: {
        put: async (aid, path) => this.objects.put(aid, path),
        has: (aid, objectId) => this.objects.has(aid, objectId),
      },
      events: { emit: (aid, type, data) => this.events.push({ aid, type, data }) },
      network: {
        reachability: () => ({ ready: this.ready }),
        onReachability: (handler) => {
          this.#handlers.add(handler);
          return () => this.#handlers.delete(handler);
        },
      },
      clock: world.clock,
      log: silentLog,
      identity: (aid) => this.#identities.get(aid) ?? null,
      random: () => world.links.random.next(),
    });
  }

  setReady(ready: boolean): void {
    this.ready = ready;
    for (const handler of this.#handlers) handler();
  }

  host(agent: TestIdentity = newIdentity()): TestIdentity {
    const { aid, delegation } = agent;
    new AgentStore(this.store).put({ keyName: aid, delegation, serviceTcp: '', registeredAt: 0 });
    this.#identities.set(aid, localIdentity(agent));
    this.links.agents.add(aid);
    return agent;
  }

  remove(aid: Aid): void {
    new AgentStore(this.store).delete(aid);
    this.#identities.delete(aid);
    this.links.agents.delete(aid);
    this.chat.agentChanged({ aid, kind: 'deleted' });
  }

  state(aid: Aid, peer: Aid): string {
    return this.pairs.pair(aid, peer)?.state ?? 'none';
  }

  /** The whole conversation. */
  log(aid: Aid, peer: Aid): ChatEntry[] {
    const all: ChatEntry[] = [];
    for (let after = 0; ; ) {
      const page = this.chat.read(aid, peer, after, 200);
      all.push(...page.entries);
      after = page.scannedTo;
      if (!page.hasMore) return all;
    }
  }

  /** Received texts. */
  heard(aid: Aid, peer: Aid): (string | null)[] {
    return this.log(aid, peer)
      .filter((entry) => entry.incoming)
      .map((entry) => entry.text);
  }

  say(aid: Aid, peer: Aid, text: string): Promise<unknown> {
    return this.chat.send(aid, peer, { text });
  }

  /** Crashes this node, and starts another one with its data. */
  async restart(store: Store = this.store, ready = true): Promise<ChatNode> {
    await this.down();
    const next = new ChatNode(this.world, this.name, store);
    next.ready = ready;
    for (const [aid, identity] of this.#identities) {
      next.#identities.set(aid, identity);
      next.links.agents.add(aid);
    }
    await next.chat.start();
    return next;
  }

  async down(): Promise<void> {
    this.links.crash();
    await this.chat.stop();
  }
}
