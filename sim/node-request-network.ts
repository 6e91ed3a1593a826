/** Requests between simulated nodes over connections. Each needs one round trip. */
import { toHex } from '../src/foundation/bytes.ts';
import { SvcError } from '../src/foundation/errors.ts';
import type { NodeRequestHandler, NodeRequests } from '../src/network/node-requests.ts';
import { plainPath } from '../src/network/transport/path.ts';
import type { Schedule } from './schedule.ts';
import type { Machine } from './udp-network.ts';

/** Milliseconds each way, and until a dead node is given up. */
const ONE_WAY_MS = 40;
const TIMEOUT_MS = 5000;

interface Member {
  readonly machine: Machine;
  readonly nodeKey: Uint8Array;
  handler: NodeRequestHandler | null;
}

export class NodeRequestNetwork {
  readonly #members = new Map<string, Member>();
  readonly #schedule: Schedule;

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
  }

  join(nodeKey: Uint8Array, machine: Machine): NodeRequests {
    const member: Member = { machine, nodeKey, handler: null };
    this.#members.set(toHex(nodeKey), member);
    return {
      request: async (_kind, to, body, { timeoutMs = TIMEOUT_MS } = {}) => {
        await this.#pause(ONE_WAY_MS);
        const other = this.#members.get(toHex(to.nodeKey));
        const handler = other?.machine.isOnline === true ? other.handler : null;
        if (!machine.isOnline || handler === null) {
          await this.#pause(timeoutMs);
          throw new SvcError('connect_failed');
        }
        const path = plainPath('direct', { host: machine.host, port: 4122 });
        const answer = await handler(body, { nodeKey, path });
        await this.#pause(ONE_WAY_MS);
        return answer;
      },
      onRequest: (_kind, handler) => {
        member.handler = handler;
      },
    };
  }

  leave(nodeKey: Uint8Array): void {
    this.#members.delete(toHex(nodeKey));
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#schedule.after(ms, resolve));
  }
}
