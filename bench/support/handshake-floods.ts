/** Floods of the QUIC port with unfinished handshakes, from one socket and address. */
import { randomBytes, randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { InitialForge } from '../../test/support/quic-initial.ts';
import { type Flood, paced } from './flood.ts';

const PER_SECOND = 5000;
/** Enough for all floods: each is a separate connection. */
const INITIALS = 75_000;
/** Not the address of other floods, which is refused for a while. */
const FLOODER = '127.0.0.3';
const LONG_HEADER = 0xc0;
const SHORT_HEADER = 0x40;

function floodWith(next: (index: number) => Uint8Array): Flood {
  return async ({ quic }) => {
    const socket = createSocket('udp4').bind(0, FLOODER);
    await once(socket, 'listening');
    return (until, sent) =>
      paced(PER_SECOND, until, (index) => {
        socket.send(next(index), quic.port, quic.host);
        sent(1);
      });
  };
}

const handshakes: Flood = async (target) => {
  const forge = await InitialForge.create();
  const ready = Array.from({ length: INITIALS }, () => forge.next());
  return await floodWith((index) => ready[index % INITIALS] ?? forge.next())(target);
};

/** First bytes of a QUIC packet, and noise. */
function noise(index: number): Uint8Array {
  const packet = randomBytes(randomInt(20, 1250));
  packet[0] = index % 2 ? LONG_HEADER | randomInt(64) : SHORT_HEADER | randomInt(64);
  // Half of the long headers have the supported version. The other half needs version negotiation.
  if (index % 4 === 1) packet.writeUInt32BE(1, 1);
  return packet;
}

export const handshakeFloods: Readonly<Record<string, Flood>> = {
  'QUIC, half handshakes': handshakes,
  'QUIC, noise': floodWith(noise),
};
