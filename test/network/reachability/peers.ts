/** Lab nodes from the view of the test. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Machine } from '../../support/lab/namespaces.ts';
import type { PeerAddress, PeerCommand, PeerReply } from './peer-process.ts';

const PEER = fileURLToPath(new URL('peer-process.ts', import.meta.url));

export class Peer {
  readonly key: string;
  readonly #child: ChildProcess;
  readonly #ipv6: string | null;
  readonly #ports: { readonly quic: number; readonly dht: number };

  private constructor(child: ChildProcess, { key = '', quicPort = 0, dhtPort = 0, ipv6 = null }: PeerReply) {
    this.#child = child;
    this.key = key;
    this.#ipv6 = ipv6;
    this.#ports = { quic: quicPort, dht: dhtPort };
  }

  /**
   * @param options `host`: the listen address; `opens`: false sends no packets that open a filter; `relays`: 'hostile'
   *   drops, replays and damages relayed packets
   */
  static async start(
    machine: Machine,
    {
      host = '0.0.0.0',
      opens = true,
      relays = 'fair',
    }: { readonly host?: string; readonly opens?: boolean; readonly relays?: 'fair' | 'hostile' } = {},
  ): Promise<Peer> {
    const child = machine.fork(PEER, [host, opens ? 'yes' : 'no', relays]);
    const [ready]: PeerReply[] = await once(child, 'message');
    if (ready === undefined) throw new Error('the node did not start');
    return new Peer(child, ready);
  }

  /** The address of the node at one of its hosts. */
  at(host: string): PeerAddress {
    return { key: this.key, quic: { host, port: this.#ports.quic }, dht: { host, port: this.#ports.dht } };
  }

  async #do(command: PeerCommand): Promise<PeerReply> {
    this.#child.send(command);
    const [reply]: PeerReply[] = await once(this.#child, 'message');
    return reply ?? { error: 'no answer' };
  }

  /** @throws Error the error of the node */
  async join(helpers: readonly PeerAddress[]): Promise<PeerReply> {
    const reply = await this.#do({ do: 'join', helpers });
    if (reply.error !== undefined) throw new Error(reply.error);
    return reply;
  }

  /** @param options `tries`: how often to try, with the allowed delays; once by default */
  async call(
    other: Peer,
    by: 'punch' | 'relay' | 'ipv6',
    { tries = 1, bytes = 0 }: { readonly tries?: number; readonly bytes?: number } = {},
  ): Promise<PeerReply> {
    return await this.#do({ do: 'call', key: other.key, by, ipv6: other.#ipv6, tries, bytes });
  }

  /**
   * Acts as a malicious helper: introduces many callers at a host to a node, or one repeatedly. Returns its answers.
   */
  async lie(to: Peer, host: string, times: number, of: 'many' | 'one' = 'many'): Promise<readonly string[]> {
    return await this.#outcomes({ do: 'lie', to: to.key, host, times, of });
  }

  /** Acts as a malicious caller: claims to listen at a host, so that another node sends there. Returns its answers. */
  async demand(other: Peer, host: string, times: number): Promise<readonly string[]> {
    return await this.#outcomes({ do: 'demand', of: other.key, host, times });
  }

  async #outcomes(command: PeerCommand): Promise<readonly string[]> {
    const { outcomes, error } = await this.#do(command);
    if (outcomes === undefined) throw new Error(error);
    return outcomes;
  }

  async relayed(): Promise<number> {
    return (await this.#do({ do: 'use' })).relayed ?? 0;
  }

  /** The number of datagrams that it did not relay. */
  async dropped(): Promise<number> {
    return (await this.#do({ do: 'use' })).dropped ?? 0;
  }
}
