/** Chat links of a stranger, a friend and a blocked peer. */
import { Chat } from '../../../src/capabilities/chat/chat.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { ChatStore } from '../../../src/foundation/store/chat.ts';
import { ChatLog } from '../../../src/foundation/store/chat-log.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { localIdentity } from '../../support/identities.ts';
import { TestClock } from '../../support/test-clock.ts';
import { testAgent } from '../engine/agents.ts';
import { violation } from '../engine/properties.ts';
import { IncomingOnly } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';
import { CHAT_SEEDS, editChat } from './chat.ts';

const ALICE = testAgent(1);
const PEERS = [testAgent(2), testAgent(3), testAgent(4)];
/** Number of inputs until the host restarts. */
const RESTART_AFTER = 200;
/** Milliseconds between two links. */
const PAUSE_MS = 30_000;

class ChatHost {
  readonly clock = new TestClock();
  readonly links = new IncomingOnly();
  readonly store = Store.open(':memory:', MIGRATIONS);
  readonly pairs = new ChatStore(this.store);
  readonly failures: unknown[] = [];
  readonly chat: Chat;

  constructor() {
    const identity = localIdentity(ALICE);
    new AgentStore(this.store).put({
      keyName: ALICE.aid,
      delegation: ALICE.delegation,
      serviceTcp: '',
      registeredAt: 0,
    });
    const keep = (fields: object): void => void this.failures.push(fields);
    this.chat = new Chat({
      isKnown: () => false,
      store: this.pairs,
      entries: new ChatLog(this.store),
      links: this.links,
      objects: { put: async () => ({ objectId: 'ab'.repeat(32), size: 3, name: 'a' }), has: () => null },
      events: { emit: () => 0 },
      network: { reachability: () => ({ ready: true }), onReachability: () => () => {} },
      clock: this.clock,
      log: { ...silentLog, error: keep, child: () => ({ ...silentLog, error: keep }) },
      identity: (aid) => (aid === ALICE.aid ? identity : null),
      random: () => 0.5,
    });
  }

  /** The second peer is a friend, whose messages are accepted; the third is blocked. */
  static async start(): Promise<ChatHost> {
    const host = new ChatHost();
    const [request = new Uint8Array()] = CHAT_SEEDS;
    const [, friend, blocked] = PEERS;
    await host.chat.start();
    if (friend !== undefined) {
      await host.links.call('chat', { caller: friend.aid, called: ALICE.aid }, request);
      host.chat.accept(ALICE.aid, friend.aid);
    }
    if (blocked !== undefined) host.chat.block(ALICE.aid, blocked.aid);
    return host;
  }

  async stop(): Promise<void> {
    await this.chat.stop();
    this.store.close();
  }

  /** Summary of a conversation after all its messages were read. */
  summary(caller: number): string {
    const peer = PEERS[caller];
    if (peer === undefined) return '';
    const { entries, unread } = this.chat.read(ALICE.aid, peer.aid, 0, 200);
    const state = this.pairs.pair(ALICE.aid, peer.aid)?.state ?? 'none';
    if (state === 'blocked' && entries.length > 0)
      throw violation('a message of a blocked peer was accepted', entries.length);
    if (state !== 'friends' && unread > 0 && entries.length === 0) throw violation('unread messages without entries');
    return `${state} ${Math.min(entries.length, 3)}`;
  }
}

/** The first byte selects the caller. */
const chatLink: FuzzTarget = {
  name: 'chat-link',
  inputs: 300,
  edit: (input, random) => {
    if (random.chance(0.1)) return Buffer.concat([Uint8Array.of(random.below(PEERS.length)), input.subarray(1)]);
    return Buffer.concat([Uint8Array.of(input[0] ?? 0), editChat(input.subarray(1), random) ?? input.subarray(1)]);
  },
  prepare: async () => {
    let host = await ChatHost.start();
    let lived = 0;
    return {
      seeds: CHAT_SEEDS.flatMap((seed) => PEERS.map((_, i) => Uint8Array.of(i, ...seed))),
      run: async (input) => {
        if (++lived % RESTART_AFTER === 0) {
          await host.stop();
          host = await ChatHost.start();
        }
        const caller = (input[0] ?? 0) % PEERS.length;
        const peer = PEERS[caller] ?? ALICE;
        host.clock.advance(PAUSE_MS);
        const answer = await host.links.call('chat', { caller: peer.aid, called: ALICE.aid }, input.subarray(1));
        if (host.failures.length > 0) throw violation('the log has an error', JSON.stringify(host.failures));
        return `${answer.length} ${host.summary(caller)}`;
      },
      close: () => host.stop(),
    };
  },
};

export const chatLinkTargets: readonly FuzzTarget[] = [chatLink];
