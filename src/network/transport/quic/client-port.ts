/** The port of a client socket, which the engine does not say: a server of our own on this machine is dialled, and sees it. */
import { equalBytes } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { abortable } from '../../../foundation/deadline.ts';
import { detach } from '../../../foundation/detached.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { awakeTimeout } from '../../../foundation/stall.ts';
import type { EngineClient, EngineConnection, EngineServer, QuicEngine } from './engine.ts';
import { parsePeer } from './peer.ts';

/** How long a handshake with oneself may take, milliseconds. */
const OWN_HANDSHAKE_MS = 3_000;
const LOOPBACK_V6 = '::1';

/**
 * The local port of a client for IPv6.
 * @throws SvcError `connect_failed` where this machine has no IPv6, `timeout`
 */
export async function clientPort(
  client: EngineClient,
  { engine, config }: { readonly engine: QuicEngine; readonly config: object },
  clock: Clock,
): Promise<number> {
  let server: EngineServer;
  try {
    server = new engine.Server(config, LOOPBACK_V6, 0);
  } catch (cause) {
    throw new SvcError('connect_failed', { message: 'This machine has no IPv6.', cause });
  }
  const ends: EngineConnection[] = [];
  const keep = (connection: EngineConnection): EngineConnection => {
    ends.push(connection);
    return connection;
  };
  try {
    using limit = awakeTimeout(clock, OWN_HANDSHAKE_MS);
    const dialled = client.outboundConnection(LOOPBACK_V6, server.port()).then(keep);
    const [out, back] = await abortable(Promise.all([dialled, server.inboundConnection().then(keep)]), limit.signal);
    const [there, here] = [parsePeer(out.remoteMultiaddr()), parsePeer(back.remoteMultiaddr())];
    // Another program of this machine may have come to the port first: it has not our key.
    if (there === null || here === null || !equalBytes(there.key, here.key)) throw new SvcError('connect_failed');
    return here.address.port;
  } catch (cause) {
    throw cause instanceof SvcError ? cause : new SvcError('connect_failed', { cause });
  } finally {
    for (const end of ends) end.abort();
    detach(server.abort());
  }
}
