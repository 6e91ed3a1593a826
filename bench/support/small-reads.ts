/** The engine as its original JavaScript wrapper uses it, with reads of 4 KiB. */
import type { EngineConnection, EngineStream } from '../../src/network/transport/engine-connection.ts';
import type { QuicEngine } from '../../src/network/transport/quic/engine.ts';

const STOCK_READ_BYTES = 4096;

function smallReads(stream: EngineStream): EngineStream {
  return {
    read: () => stream.read(STOCK_READ_BYTES),
    write: (data) => stream.write(data),
    finishWrite: () => stream.finishWrite(),
    resetWrite: () => stream.resetWrite(),
    stopRead: () => stream.stopRead(),
  };
}

function connection(native: EngineConnection): EngineConnection {
  return {
    inboundStream: async () => smallReads(await native.inboundStream()),
    outboundStream: async () => smallReads(await native.outboundStream()),
    remoteMultiaddr: () => native.remoteMultiaddr(),
    rtt: () => native.rtt(),
    stats: () => native.stats(),
    closed: () => native.closed(),
    abort: () => native.abort(),
  };
}

/** Limits every read of an engine to 4 KiB. */
export function withSmallReads(engine: QuicEngine): QuicEngine {
  return {
    QuinnConfig: engine.QuinnConfig,
    Server: class {
      readonly #server;
      constructor(config: object, host: string, port: number) {
        this.#server = new engine.Server(config, host, port);
      }
      inboundConnection = async (): Promise<EngineConnection> => connection(await this.#server.inboundConnection());
      port = (): number => this.#server.port();
      stats = (): { readonly acceptedHandshakes: number } => this.#server.stats();
      abort = (): Promise<void> => this.#server.abort();
    },
    Client: class {
      readonly #client;
      constructor(config: object, family: 0 | 1) {
        this.#client = new engine.Client(config, family);
      }
      outboundConnection = async (host: string, port: number): Promise<EngineConnection> =>
        connection(await this.#client.outboundConnection(host, port));
      abort = (): void => this.#client.abort();
    },
  };
}
