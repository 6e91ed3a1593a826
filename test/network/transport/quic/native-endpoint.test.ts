import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { silentLog } from '../../../../src/foundation/log.ts';
import { NativeQuicEndpoint } from '../../../../src/network/transport/quic/native-endpoint.ts';
import { endpointConformance } from '../conformance.ts';
import { clockWithoutDialTimeouts, type Harness } from '../world.ts';

/** Longer than any test runs, even if the process stalls. */
const IDLE_TIMEOUT_MS = 600_000;

const harness: Harness = {
  create: (key, { clock = clockWithoutDialTimeouts, ...options }) =>
    new NativeQuicEndpoint(
      { key, host: '127.0.0.1', port: 0, idleTimeoutMs: IDLE_TIMEOUT_MS, ...options },
      { log: silentLog, clock },
    ),
  async silentAddress(t) {
    const socket = createSocket('udp4').bind(0, '127.0.0.1');
    await once(socket, 'listening');
    t.after(() => socket.close());
    return { host: '127.0.0.1', port: socket.address().port };
  },
};

endpointConformance('native engine', harness);
