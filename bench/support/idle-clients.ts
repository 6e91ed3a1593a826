/** Clients of a helper that borrow two ports each and then stay idle, on a lab machine. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { systemClock } from '../../src/foundation/clock.ts';
import { detach } from '../../src/foundation/detached.ts';
import { networkTag } from '../../src/network/records/node-address.ts';
import { PacedSocket } from '../../src/network/transport/tls/pacing.ts';
import { TLS_STATUS } from '../../src/network/transport/tls/wire.ts';
import { borrow } from '../../test/network/transport/tls/borrower.ts';
import { eventually } from '../../test/support/eventually.ts';

export interface IdleClients {
  readonly url: string;
  /** The address from which they connect. */
  readonly host: string;
  readonly count: number;
}

const tag = networkTag('');
/** Connections that were lost. */
let lost = 0;

/** A port that answers. */
const far = createSocket('udp4', (datagram, { port, address }) => far.send(datagram, port, address));
far.bind(0);
await once(far, 'listening');

async function connect({ url, host }: IdleClients): Promise<void> {
  const client = await borrow({ after: () => {} }, url, { tag, localAddress: host });
  if (client.reply?.status !== TLS_STATUS.ok) throw new Error(`refused with status ${client.reply?.status}`);
  for (const number of [1, 2]) client.send(number, { host, port: far.address().port }, tag);
  await eventually('both ports', () => client.received.length === 2);
  // From here on, it sends pings as nodes do.
  const connection = new PacedSocket(
    client.socket,
    { onEntries: () => {}, onEnd: () => void lost++ },
    {
      clock: systemClock,
    },
  );
  connections.push(connection);
}

const connections: PacedSocket[] = [];

async function connectAll(clients: IdleClients): Promise<void> {
  for (let i = 0; i < clients.count; i++) await connect(clients);
  process.send?.({ lost });
}

process.on('message', (clients: IdleClients) => detach(connectAll(clients)));
process.on('disconnect', () => process.exit());
