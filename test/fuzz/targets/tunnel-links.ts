/** Tunnels of strangers to a bound service, plain and wide. */

import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { TunnelInbound } from '../../../src/capabilities/tunnels/inbound.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { TUNNEL_PURPOSES } from '../../../src/network/links/types.ts';
import { NO_LANES } from '../../support/bulk.ts';
import { testAgent } from '../engine/agents.ts';
import { untilQuiet } from '../engine/http.ts';
import { violation } from '../engine/properties.ts';
import { collectResponse, linkPair, writeInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';
import { LANE_SEEDS, LASTING_SEEDS } from './tunnels.ts';

const NAMES = { caller: testAgent(1).aid, called: testAgent(2).aid };
const TICKET = new Uint8Array(16).fill(7);

/** The first byte selects the purpose of the link. */
const inbound: FuzzTarget = {
  name: 'tunnel-links',
  inputs: 200,
  edit: () => null,
  prepare: async () => {
    const service = createServer((socket) => socket.on('error', () => {}).pipe(socket));
    service.listen(0, '127.0.0.1');
    await once(service, 'listening');
    const address = service.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    let open = true;
    const tunnels = new TunnelInbound({
      lanes: NO_LANES,
      clock: systemClock,
      log: silentLog,
      serviceOf: () => (open ? { host: '127.0.0.1', port, takesTunnels: true } : null),
      authorize: () => {},
      maxConnections: () => 100,
      connect,
      isNamed: () => false,
    });
    return {
      seeds: TUNNEL_PURPOSES.flatMap((_, i) =>
        [...LANE_SEEDS, ...LASTING_SEEDS].map(
          (seed) => new Uint8Array(Buffer.concat([Uint8Array.of(i), TICKET, seed])),
        ),
      ),
      run: async (input) => {
        const first = input[0] ?? 0;
        open = (first & 16) === 0;
        const [near, link] = linkPair(NAMES, TUNNEL_PURPOSES[(first & 7) % TUNNEL_PURPOSES.length] ?? 'tcp');
        const answer = collectResponse(near);
        tunnels.accept(link);
        writeInput(input.subarray(1), near);
        await untilQuiet(near, () => answer().length);
        const response = answer();
        if (
          !open &&
          response.length > 0 &&
          response[0] === 0 &&
          link.purpose !== 'tcp-wide' &&
          link.purpose !== 'tcp-resume'
        )
          throw violation('a service that is not bound', input);
        near.destroy();
        return `${link.purpose} ${response[0]} ${Math.ceil(Math.log2(response.length + 1))}`;
      },
      close: () => {
        tunnels.stop();
        service.close();
      },
    };
  },
};

export const tunnelLinkTargets: readonly FuzzTarget[] = [inbound];
