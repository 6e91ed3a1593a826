/** The other process of the QUIC benchmark: serves QUIC, QUIC with small reads, and plain TCP. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { loadEngine } from '../../src/network/transport/quic/engine.ts';
import { NativeQuicEndpoint } from '../../src/network/transport/quic/native-endpoint.ts';
import { withSmallReads } from './small-reads.ts';
import { serve } from './transfer.ts';

export interface Hello {
  readonly key: string;
  readonly quicPort: number;
  readonly stockPort: number;
  readonly tcpPort: number;
}

export interface Usage {
  readonly cpuSeconds: number;
  readonly rss: number;
}

export function usage(): Usage {
  const { user, system } = process.cpuUsage();
  return { cpuSeconds: (user + system) / 1e6, rss: process.memoryUsage.rss() };
}

async function main(): Promise<void> {
  const key = KeyPair.generate();
  const endpoint = async (engine = loadEngine()): Promise<NativeQuicEndpoint> => {
    const created = new NativeQuicEndpoint(
      { key, host: '127.0.0.1', port: 0, limits: { connectionsPerKey: 1000 } },
      { log: silentLog, engine },
    );
    created.onConnection((connection) => connection.onStream((stream) => void serve(stream)));
    await created.start();
    return created;
  };
  const quic = await endpoint();
  const stock = await endpoint(withSmallReads(loadEngine()));
  const tcp = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => void serve(socket)).listen(
    0,
    '127.0.0.1',
  );
  await once(tcp, 'listening');
  process.on('message', () => process.send?.(usage()));
  process.send?.({
    key: Buffer.from(key.publicKey).toString('hex'),
    quicPort: quic.address.port,
    stockPort: stock.address.port,
    tcpPort: (tcp.address() as AddressInfo).port,
  } satisfies Hello);
}

if (process.send !== undefined) await main();
