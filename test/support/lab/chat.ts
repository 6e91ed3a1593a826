/** A chat between two agents on lab daemons. */
import { eventually } from '../eventually.ts';
import type { LabDaemon } from './daemons.ts';

interface Contacts {
  readonly friends: readonly unknown[];
  readonly in_pending: readonly unknown[];
}

interface Conversation {
  readonly entries: readonly { readonly text?: string; readonly dir: string }[];
}

export class Chat {
  /** Acknowledged messages, in order. */
  readonly sent: string[] = [];
  readonly #speaker: LabDaemon;
  readonly #listener: LabDaemon;
  readonly #aids: readonly [string, string];

  private constructor(speaker: LabDaemon, listener: LabDaemon, aids: readonly [string, string]) {
    this.#speaker = speaker;
    this.#listener = listener;
    this.#aids = aids;
  }

  /** Makes the agents friends. */
  static async between(speaker: LabDaemon, mine: string, listener: LabDaemon, theirs: string): Promise<Chat> {
    await speaker.call('POST', `/agents/${mine}/chat/request`, { peer: theirs, note: '' });
    const contacts = (daemon: LabDaemon, aid: string) => daemon.call<Contacts>('GET', `/agents/${aid}/chat/contacts`);
    await eventually(
      'the request was delivered',
      async () => (await contacts(listener, theirs)).in_pending.length === 1,
    );
    await listener.call('POST', `/agents/${theirs}/chat/accept`, { peer: mine });
    await eventually('both are friends', async () => (await contacts(speaker, mine)).friends.length === 1);
    return new Chat(speaker, listener, [mine, theirs]);
  }

  /** Sends one more message, which counts once it is acknowledged. */
  async say(): Promise<void> {
    const [mine, peer] = this.#aids;
    const text = `word ${this.sent.length}`;
    await this.#speaker.call('POST', `/agents/${mine}/chat/send`, { peer, text });
    this.sent.push(text);
  }

  /** Delivered messages, in order. */
  async heard(): Promise<string[]> {
    const [peer, theirs] = this.#aids;
    const { entries } = await this.#listener.call<Conversation>('GET', `/agents/${theirs}/chat/peers/${peer}`);
    return entries.filter(({ dir }) => dir === 'in').map(({ text }) => text ?? '');
  }
}
