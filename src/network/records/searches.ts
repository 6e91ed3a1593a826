/** Starts every search of this node, from the closest known nodes. */
import type { Address } from '../../foundation/address.ts';
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { REPLICAS } from '../../foundation/domain/directory.ts';
import type { ProofState } from '../../foundation/domain/joining.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { toRecord } from '../../foundation/records/record.ts';
import type { RecordType } from '../../foundation/records/types.ts';
import { awakeClock } from '../../foundation/stall.ts';
import type { NodeAt } from '../node-requests.ts';
import type { BootstrapNodes } from './bootstrap-nodes.ts';
import { ClosestNodes, type NodeAnswer, type SearchOptions, STORE_WIDTH } from './closest-nodes.ts';
import type { DhtEngine } from './engine.ts';
import { partNumber } from './key-rows.ts';
import { encodeFindRequest, type FindReply, type FindRequest, MAX_PARTS, SURVEY } from './messages.ts';
import { nodeId } from './node-address.ts';
import type { NodeClient } from './node-client.ts';
import type { HostCheck } from './own-hosts.ts';
import type { PeerHealth } from './peer-health.ts';
import type { HolderCount } from './types.ts';

/** Number of closest nodes that must have answered before a read ends. */
export const CLOSEST_HEARD = 12;
/** Number of closest nodes that a thorough search waits for. */
export const SEARCH_WIDTH = 24;
/**
 * The pace of a read, which ends with the first answers that agree: as many nodes at once as it needs, so that it takes
 * one round trip if they are known.
 */
const READ_PACE: Pace = { parallel: CLOSEST_HEARD, enough: 4 };
/** The pace of a write, which needs many nodes. */
const WRITE_PACE: Pace = { parallel: SEARCH_WIDTH, enough: REPLICAS };
/** Number of closest nodes that a brief read waits for, and its pace. */
const BRIEF_WIDTH = 4;
const BRIEF_PACE: Pace = { parallel: BRIEF_WIDTH, enough: BRIEF_WIDTH };

type Pace = Pick<SearchOptions, 'parallel' | 'enough'>;

interface SearchesDependencies extends HostCheck {
  readonly clock: Clock;
  readonly health: PeerHealth;
  readonly engine: Pick<DhtEngine, 'closest' | 'id' | 'isOwn' | 'canReach' | 'drop'>;
  readonly bootstrapNodes: Pick<BootstrapNodes, 'addresses'>;
  readonly client: Pick<NodeClient, 'find'>;
  /** Whether the node at an address proves its key. */
  readonly proveKey: (node: NodeAt) => Promise<boolean>;
}

export class Searches {
  readonly #deps: SearchesDependencies;

  constructor(dependencies: SearchesDependencies) {
    this.#deps = dependencies;
  }

  /**
   * For a read that may end with the first answers that agree.
   * @param isBrief only the few closest nodes
   */
  forRead(key: Uint8Array, request: FindRequest, isBrief = false): ClosestNodes {
    return isBrief ? this.#start(key, request, BRIEF_PACE, BRIEF_WIDTH) : this.#start(key, request, READ_PACE);
  }

  /** For requests to all of the nodes closest to a key. By default it requests no records. */
  forWrite(key: Uint8Array, request: FindRequest = SURVEY): ClosestNodes {
    return this.#start(key, request, WRITE_PACE);
  }

  /** As `RecordNetwork.holders`. */
  async holders(key: Uint8Array, type: RecordType, aid: Aid, seq: number): Promise<HolderCount> {
    // A part so small that it has no record of another agent.
    const part = { index: partNumber(type, aid) % MAX_PARTS, of: MAX_PARTS };
    const search = this.forWrite(key, { types: [type], wantsRecords: true, part });
    await search.finished;
    search.stop();
    const near = search.closest(search.beyond(STORE_WIDTH));
    return { answered: near.length, holding: near.filter(({ reply }) => holds(reply, seq)).length };
  }

  /** The nodes closest to us that one node names. Null without an answer. */
  async neighborsFrom(contact: Address): Promise<readonly Address[] | null> {
    return (await this.#meet(contact))?.reply.nodes ?? null;
  }

  /** Lets a node know us. False without an answer. */
  async greet(contact: Address): Promise<boolean> {
    return (await this.neighborsFrom(contact)) !== null;
  }

  /** The key and QUIC address that a node states. Null without an answer or a QUIC port. */
  async identify(node: Address): Promise<NodeAt | null> {
    const { nodeKey, quicPort = 0 } = (await this.#meet(node))?.reply ?? {};
    if (nodeKey === undefined || quicPort === 0) return null;
    return { nodeKey, address: { host: node.host, port: quicPort } };
  }

  /**
   * Lets a node prove its key over another connection, because anyone on the path can forge a datagram. A node that
   * fails leaves the table, and the nodes that it names are ignored.
   */
  async prove(node: Address, nodeKey: Uint8Array): Promise<ProofState> {
    const { proveKey, engine } = this.#deps;
    const at = await this.identify(node);
    if (at === null) return 'silent';
    if (equalBytes(at.nodeKey, nodeKey) && (await proveKey(at))) return 'met';
    engine.drop(node);
    return 'other_key';
  }

  async #meet(node: Address): Promise<NodeAnswer | null> {
    const { client, engine } = this.#deps;
    return await client.find(node, nodeId(node), engine.id, encodeFindRequest(SURVEY));
  }

  #start(key: Uint8Array, request: FindRequest, pace: Pace, width = SEARCH_WIDTH): ClosestNodes {
    const { clock, health, engine, bootstrapNodes, client, isOwnHost } = this.#deps;
    const value = encodeFindRequest(request);
    // The table may be full of dead or colluding nodes, so the search starts with twice as many as must answer, and
    // with the configured nodes.
    const start = [...engine.closest(key, 2 * SEARCH_WIDTH), ...bootstrapNodes.addresses()];
    return new ClosestNodes(
      { target: key, width, ...pace, start },
      {
        clock: awakeClock(clock),
        health,
        ask: (address, id) => client.find(address, id, key, value),
        skips: (address) => engine.isOwn(address) || !engine.canReach(address),
        isOwnHost,
      },
    );
  }
}

/** Whether a node has this version of the only record in its answer, or a newer one. */
function holds({ count, records, summaries }: FindReply, seq: number): boolean {
  const versions = [...records.map(toRecord).filter((record) => record !== null), ...summaries];
  // There may be no room to describe a large record.
  return count > 0 && (versions.length === 0 || versions.some((version) => version.seq >= seq));
}
