/** The behavior of the native engine whose endpoints all dial through borrowed ports of one helper. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { after, before } from 'node:test';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../../src/foundation/log.ts';
import { NativeQuicEndpoint } from '../../../../src/network/transport/quic/native-endpoint.ts';
import { borrowedPorts, connectTo } from '../../../support/borrowed-ports.ts';
import { TlsHelper } from '../../../support/tls-helper.ts';
import { endpointConformance } from '../conformance.ts';
import { clockWithoutDialTimeouts, type Harness } from '../world.ts';

const HOST = '127.0.0.1';
/** Longer than any test runs, even if the process stalls. */
const IDLE_TIMEOUT_MS = 600_000;
let helper: TlsHelper;

before(async () => {
  helper = await TlsHelper.start(KeyPair.generate());
});

after(() => helper[Symbol.asyncDispose]());

const harness: Harness = {
  create(key, { clock = clockWithoutDialTimeouts, ...options }) {
    const borrowed = borrowedPorts(key);
    const endpoint = new NativeQuicEndpoint(
      { key, host: HOST, port: 0, idleTimeoutMs: IDLE_TIMEOUT_MS, ...options },
      { log: silentLog, clock, borrowed },
    );
    return {
      get address() {
        return endpoint.address;
      },
      start: async () => {
        await connectTo(helper, borrowed);
        await endpoint.start();
      },
      stop: async () => {
        await endpoint.stop();
        borrowed.disconnect();
      },
      dial: async (...to) => {
        const connection = await endpoint.dial(...to);
        assert.equal(connection.path.mayBeWithdrawn, true, 'it uses a borrowed port');
        return connection;
      },
      onConnection: (handler) => endpoint.onConnection(handler),
    };
  },
  async silentAddress(t) {
    const socket = createSocket('udp4').bind(0, HOST);
    await once(socket, 'listening');
    t.after(() => socket.close());
    return { host: HOST, port: socket.address().port };
  },
};

endpointConformance('native engine over borrowed ports', harness);
