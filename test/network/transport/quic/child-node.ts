/** A node in its own process, driven over IPC. Some pitfalls appear only between processes, or at exit. */
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../../src/foundation/log.ts';
import { NativeQuicEndpoint } from '../../../../src/network/transport/quic/native-endpoint.ts';
import type { Stream } from '../../../../src/network/transport/types.ts';

export type Command =
  /** Dials the parent, opens a stream and writes one byte on it. */
  | { readonly do: 'dial'; readonly port: number; readonly key: string }
  /** Dials an address that never answers, and does not wait for it. */
  | { readonly do: 'dial-silence'; readonly port: number }
  /** Answers after a stream was accepted: concurrent streams arrive in any order. */
  | { readonly do: 'accepted' }
  /** Answers with the resident memory. */
  | { readonly do: 'memory' }
  /** Reads the accepted stream to its end, and answers with the number of bytes. */
  | { readonly do: 'drain' }
  /** Stops the endpoint, then exits immediately or waits for the natural end of the process. */
  | { readonly do: 'stop'; readonly exit: boolean };

export interface Reply {
  readonly port?: number;
  readonly key?: string;
  readonly rss?: number;
  readonly bytes?: number;
  readonly done?: boolean;
}

function reply(message: Reply): void {
  process.send?.(message);
}

const key = KeyPair.generate();
const endpoint = new NativeQuicEndpoint(
  { key, host: '127.0.0.1', port: 0, idleTimeoutMs: Number(process.argv[2]) },
  { log: silentLog },
);
/** The first accepted stream, paused after its first bytes. Later streams are echoed. */
let paused: Stream | undefined;
const accepted = Promise.withResolvers<void>();
let bytes = 0;
endpoint.onConnection((connection) =>
  connection.onStream((stream) => {
    if (paused !== undefined) return void stream.on('error', () => {}).pipe(stream);
    paused = stream;
    accepted.resolve();
    stream.once('data', (chunk: Buffer) => {
      bytes += chunk.length;
      stream.pause();
    });
  }),
);
await endpoint.start();

async function obey(command: Command): Promise<void> {
  switch (command.do) {
    case 'dial': {
      const address = { host: '127.0.0.1', port: command.port };
      const connection = await endpoint.dial(address, Buffer.from(command.key, 'hex'));
      const stream = await connection.openStream();
      stream.write('!', () => reply({ done: true }));
      return;
    }
    case 'dial-silence':
      endpoint.dial({ host: '127.0.0.1', port: command.port }, key.publicKey).catch(() => {});
      reply({ done: true });
      return;
    case 'accepted':
      await accepted.promise;
      reply({ done: true });
      return;
    case 'memory':
      reply({ rss: process.memoryUsage.rss() });
      return;
    case 'drain': {
      for await (const chunk of paused ?? []) bytes += (chunk as Buffer).length;
      reply({ bytes });
      return;
    }
    case 'stop':
      await endpoint.stop();
      if (command.exit) process.exit(0);
      process.disconnect?.();
  }
}
process.on('message', (command: Command) => void obey(command));
reply({ port: endpoint.address.port, key: Buffer.from(key.publicKey).toString('hex') });
