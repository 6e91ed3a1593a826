/** The parts of udx-native that we use. The package has no declarations. */
declare module 'udx-native' {
  import type { EventEmitter } from 'node:events';
  import type { UdpSocket } from './udp-socket.ts';

  /** A reliable stream of bytes over a socket, with congestion control (BBR): a duplex of streamx. */
  export interface Stream extends EventEmitter {
    readonly destroyed: boolean;
    readonly connected: boolean;
    /** Bytes that were sent and not yet acknowledged. */
    readonly inflight: number;
    /** Smoothed round-trip time, milliseconds. */
    readonly rtt: number;
    readonly bytesTransmitted: number;
    readonly bytesReceived: number;
    readonly packetsReceived: number;
    /** Must be called before the first write. */
    connect(socket: UdpSocket, remoteId: number, port: number, host: string): void;
    /** Sends an empty packet after this time without packets, milliseconds. */
    setKeepalive(timeoutMs: number): void;
    /** Returns false if the writer must wait for 'drain'. The chunk is not copied. */
    write(chunk: Uint8Array): boolean;
    end(): void;
    destroy(): void;
  }

  export interface StreamOptions {
    /** Called for packets that name the stream and arrive at another socket than its own. True rejects them. */
    readonly firewall?: (socket: UdpSocket, port: number, host: string) => boolean;
  }

  /** An engine of sockets and streams. */
  export default class Udx {
    createSocket(): UdpSocket;
    /** @param id its number in packets, 32 bits */
    createStream(id: number, options?: StreamOptions): Stream;
  }
}
