/** Pairs of streams that can lose their connection, and both ends of a wide connection over them. */
import type { Duplex } from 'node:stream';
import { WideStream } from '../../src/capabilities/tunnels/wide/wide-stream.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { localPair } from '../../src/network/links/local.ts';
import { asLink } from '../../src/network/links/stream.ts';
import type { LinkStream } from '../../src/network/links/types.ts';
import { StreamError } from '../../src/network/transport/stream.ts';
import { newIdentity } from './identities.ts';

const [CALLER, CALLED] = [newIdentity().aid, newIdentity().aid];
/** The other node of every link. */
const NODE_KEY = new Uint8Array(32).fill(7);

/** Both ends of an in-memory link between two fixed agents. */
export function linkEnds(): readonly [LinkStream, LinkStream] {
  const path = () =>
    ({ kind: 'direct', remote: { host: '198.51.100.7', port: 4122 }, source: '198.51.100.7', rttMs: 1 }) as const;
  const names = { caller: CALLER, called: CALLED, purpose: 'tcp', accessToken: undefined, nodeKey: NODE_KEY } as const;
  const [near, far] = localPair();
  for (const end of [near, far]) end.on('error', () => {});
  return [asLink(near, names, path), asLink(far, names, path)];
}

interface PairOptions {
  readonly lanes?: number;
  /** Called for each lane before its use, for example to delay it. */
  readonly onLane?: (near: Duplex, far: Duplex) => void;
  /** True if windows may grow. */
  readonly widen?: () => boolean;
}

export class WidePair {
  readonly near: WideStream;
  readonly far: WideStream;
  readonly lanes: (readonly [LinkStream, LinkStream])[] = [];
  /** How often the far end has requested more lanes. */
  asked = 0;

  constructor({ lanes = 1, onLane = () => {}, widen = () => true }: PairOptions = {}) {
    const first = this.#pair(onLane);
    const options = { clock: systemClock, widen };
    this.near = new WideStream(first[0], {
      ...options,
      onWider: () => {
        this.asked++;
      },
    });
    this.far = new WideStream(first[1], options);
    for (let i = 1; i < lanes; i++) {
      const [near, far] = this.#pair(onLane);
      this.far.add(far);
      this.near.add(near);
    }
  }

  #pair(onLane: (near: Duplex, far: Duplex) => void): readonly [LinkStream, LinkStream] {
    const pair = linkEnds();
    onLane(...pair);
    this.lanes.push(pair);
    return pair;
  }

  /** Breaks the connection under a lane. Data in transit is lost, and both ends notice. */
  lose(index: number): void {
    for (const end of this.lanes[index] ?? []) end.destroy(new StreamError('connection_lost'));
  }
}
