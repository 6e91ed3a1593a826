/** A session after its hello, without a network. */
import type { Clock } from '../../src/foundation/clock.ts';
import { NodeSession } from '../../src/network/peers/session.ts';
import { type Path, plainPath } from '../../src/network/transport/path.ts';
import type { Connection } from '../../src/network/transport/types.ts';

export interface StubSession {
  readonly session: NodeSession;
  /** True if this side closed it. */
  readonly isClosed: () => boolean;
}

/** @param figures traffic of its connection */
export function stubSession(
  remoteKey: Uint8Array,
  outbound: boolean,
  clock: Clock,
  path: Path = plainPath('direct', { host: '198.51.100.1', port: 4122 }),
  figures = { bytesSent: 0, bytesReceived: 0, packetsSent: 0, packetsLost: 0 },
): StubSession {
  let closed = false;
  const ended = Promise.withResolvers<void>();
  const connection: Connection = {
    remoteKey,
    path,
    outbound,
    rtt: () => 7,
    stats: () => figures,
    openStream: () => Promise.reject(new Error('a stub has no streams')),
    onStream: () => {},
    closed: ended.promise,
    close: () => {
      closed = true;
      ended.resolve();
    },
  };
  const hello = { nonce: new Uint8Array(32), instance: new Uint8Array(16) };
  const session = new NodeSession({ connection, localKey: new Uint8Array(32), ours: hello, theirs: hello }, { clock });
  return { session, isClosed: () => closed };
}
