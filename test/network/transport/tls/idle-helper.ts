/** A helper in its own process, which reports its memory. */

import { systemClock } from '../../../../src/foundation/clock.ts';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../../src/foundation/log.ts';
import { releaseMemory } from '../../../../src/foundation/release-memory.ts';
import { TlsServer } from '../../../../src/network/transport/tls/server.ts';
import { TAG } from './borrower.ts';

const server = new TlsServer(
  {
    key: KeyPair.generate(),
    tag: TAG,
    sessions: 4096,
    certificate: { cert: '', key: '' },
    hosts: { ipv4: '127.0.0.1', ipv6: '::1' },
  },
  {
    clock: systemClock,
    log: silentLog,
    listeners: () => [{ host: '127.0.0.1', port: 0, isTls: true, isNamed: true }],
    helps: () => true,
    isKnown: () => false,
    openAccount: () => ({ spend: () => true, close: () => {} }),
    mayDial: () => true,
    places: { localHost: () => null, localPort: () => null, seenHost: '127.0.0.1' },
    usesLoopback: () => true,
    descriptors: () => 65_536,
  },
);
await server.start();

/** Resident memory after unused memory was released, as an idle daemon does, bytes. */
function memory(): number {
  releaseMemory();
  return process.memoryUsage.rss();
}

process.on('message', (message) => {
  process.send?.(message === 'ports' ? server.usage.ports : memory());
});
process.on('disconnect', () => process.exit());
process.send?.(server.addresses[0]?.port);
