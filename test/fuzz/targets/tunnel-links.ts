/** Tunnels of strangers to a bound service, plain and wide. */

import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { TunnelInbound } from '../../../src/capabilities/tunnels/inbound.ts';
import { OPENING } from '../../../src/capabilities/tunnels/opening.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { TUNNEL_PURPOSES } from '../../../src/network/links/types.ts';
import { NO_LANES } from '../../support/bulk.ts';
import { testAgent } from '../engine/agents.ts';
import { untilQuiet } from '../engine/http.ts';
import { violation } from '../engine/properties.ts';
import { collectResponse, linkPair, writeInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';
import { TUNNEL_SEEDS } from './tunnels.ts';

const NAMES = { caller: testAgent(1).aid, called: testAgent(2).aid };
const TICKET = new Uint8Array(16).fill(7);
const OPENINGS: readonly number[] = [...Object.values(OPENING), 0];
const DATA_HEAD_BYTES = 4;

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
      bulk: NO_LANES,
      entered: () => {},
      clock: systemClock,
      log: silentLog,
      serviceOf: () => (open ? { host: '127.0.0.1', port, takesTunnels: true } : null),
      authorize: () => {},
      enter: async () => () => () => {},
      maxConnections: () => 100,
      connect,
      isNamed: () => false,
    });
    return {
      seeds: TUNNEL_PURPOSES.flatMap((_, i) =>
        OPENINGS.flatMap((opening) =>
          TUNNEL_SEEDS.map((seed) => new Uint8Array(Buffer.concat([Uint8Array.of(i, opening), TICKET, seed]))),
        ),
      ),
      run: async (input) => {
        const first = input[0] ?? 0;
        open = (first & 16) === 0;
        const [near, link] = linkPair(NAMES, TUNNEL_PURPOSES[first % TUNNEL_PURPOSES.length] ?? 'tcp');
        const answer = collectResponse(near);
        tunnels.accept(link);
        writeInput(input.subarray(1), near);
        await untilQuiet(near, () => answer().length);
        const response = answer();
        // The outcome is the only byte of a probe, and the first one behind the head of a data frame.
        const outcome = response[link.purpose === 'tcp' ? DATA_HEAD_BYTES : 0];
        if (!open && outcome === 0) throw violation('a service that is not bound', input);
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
