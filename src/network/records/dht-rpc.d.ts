/** The parts of dht-rpc 6 that we use; the package brings no declarations of its own. */
declare module 'dht-rpc' {
  import type { EventEmitter } from 'node:events';

  namespace DHT {
    interface Address {
      readonly host: string;
      readonly port: number;
    }

    /** A node of the routing table. */
    interface TableNode extends Address {
      readonly id: Uint8Array;
      /** The tick at which it was last heard. */
      readonly seen: number;
      /** The tick at which it came into the table. */
      readonly added: number;
    }

    /** The nodes whose ids have so many leading bits in common with ours; `full` is told of who finds no room in it. */
    interface TableRow extends EventEmitter {
      readonly nodes: readonly TableNode[];
      on(event: 'full', handler: (newcomer: TableNode) => void): this;
    }

    interface Table {
      /** Most nodes of a row. */
      k: number;
      readonly rows: readonly (TableRow | undefined)[];
      on(event: 'row', handler: (row: TableRow) => void): this;
      readonly id: Uint8Array;
      get(id: Uint8Array): TableNode | null;
      /** The closest nodes to a target, so many at most; 20 where left out. */
      closest(target: Uint8Array, count?: number): TableNode[];
    }

    /** The nodes of the routing table, by when they were last heard. */
    interface NodeSet {
      readonly length: number;
      toArray(): TableNode[];
    }

    /** Counts which of our addresses the others report. */
    interface NatSampler {
      add(host: string, port: number): number;
      readonly constructor: new () => NatSampler;
    }

    interface Socket extends EventEmitter {
      readonly bound: boolean;
      bind(port: number, host: string): void;
      address(): Address | null;
      readonly packetsReceived?: number;
      close(): Promise<void>;
      trySend(buffer: Uint8Array, port: number, host: string, ttl?: number): void;
      /** As `trySend`; settles when the datagram has left (true) or will not. */
      send(buffer: Uint8Array, port: number, host: string, ttl?: number): Promise<boolean>;
    }

    interface Io {
      readonly serverSocket: Socket | null;
      clientSocket: Socket | null;
      readonly networkInterfaces: { destroy(): void };
      firewalled: boolean;
      ephemeral: boolean;
    }

    /** A reliable stream of bytes over a socket, with congestion control (BBR): a duplex of streamx. */
    interface Stream extends EventEmitter {
      readonly destroyed: boolean;
      readonly connected: boolean;
      /** Bytes that were sent and not yet acknowledged. */
      readonly inflight: number;
      readonly bytesTransmitted: number;
      readonly bytesReceived: number;
      readonly packetsReceived: number;
      /** To be written to only after it. */
      connect(socket: Socket, remoteId: number, port: number, host: string): void;
      /** Has an empty packet sent after so many milliseconds of silence. */
      setKeepalive(timeoutMs: number): void;
      /** False where 'drain' is to be waited for. The chunk is not copied. */
      write(chunk: Uint8Array): boolean;
      end(): void;
      destroy(): void;
    }

    interface StreamOptions {
      /** Asked for packets that name the stream and come to another socket than its own; true keeps them out. */
      readonly firewall?: (socket: Socket, port: number, host: string) => boolean;
    }

    interface Udx {
      createSocket(): Socket;
      /** @param id 32 bits by which packets name it */
      createStream(id: number, options?: StreamOptions): Stream;
    }

    interface Options {
      readonly host: string;
      readonly port: number;
      readonly anyPort: boolean;
      readonly bootstrap: readonly Address[];
      readonly adaptive: boolean;
      readonly firewalled: boolean;
      readonly maxWindow: number;
      readonly maxPingDelay: number;
      readonly filterNode: (node: Address) => boolean;
    }

    interface Reply {
      readonly from: Address & { readonly id: Uint8Array | null };
      /** Our address as the replier sees it. */
      readonly to: Address;
      readonly token: Uint8Array | null;
      readonly error: number;
      readonly value: Uint8Array | null;
    }

    interface ReplyOptions {
      readonly socket?: Socket | null;
      readonly to?: Address;
      readonly token?: boolean;
      readonly closerNodes?: boolean;
    }

    interface Request {
      readonly from: Address & { readonly id: Uint8Array | null };
      /** Our address as the sender wrote it. */
      readonly to: Address;
      /** Present only where it is valid: a wrong one never reaches the handler. */
      readonly token: Uint8Array | null;
      readonly command: number;
      readonly target: Uint8Array | null;
      readonly value: Uint8Array | null;
      readonly socket: Socket;
      reply(value: Uint8Array | null, options?: ReplyOptions): void;
    }

    interface Outgoing {
      readonly command: number;
      readonly token?: Uint8Array | null;
      readonly target?: Uint8Array | null;
      readonly value?: Uint8Array | null;
    }
  }

  class DHT extends EventEmitter {
    constructor(options: DHT.Options);
    readonly table: DHT.Table;
    readonly nodes: DHT.NodeSet;
    readonly io: DHT.Io;
    readonly udx: DHT.Udx;
    readonly destroyed: boolean;
    ephemeral: boolean;
    firewalled: boolean;
    /** Replaced when we know better than its samples which address we have. */
    _nat: DHT.NatSampler;
    /** Counts intervals of 5 s. */
    readonly _tick: number;
    /** Takes the address that `_nat` holds as our own and joins the routing tables with it. */
    _updateNetworkState(): Promise<boolean>;
    _addNode(node: DHT.TableNode): void;
    _removeNode(node: DHT.TableNode): void;
    addNode(node: DHT.Address): void;
    bind(): Promise<void>;
    destroy(): Promise<void>;
    ping(
      to: DHT.Address,
      options?: { readonly retry?: boolean; readonly socket?: DHT.Socket | null },
    ): Promise<DHT.Reply>;
    /** Reads a datagram that came to one of the sockets that were made with `createSocket`. */
    onmessage(socket: DHT.Socket, datagram: Uint8Array, from: DHT.Address): void;
    request(
      message: DHT.Outgoing,
      to: DHT.Address,
      options?: { readonly retry?: boolean; readonly socket?: DHT.Socket | null },
    ): Promise<DHT.Reply>;
    on(event: 'request', handler: (request: DHT.Request) => void): this;
    on(event: 'add-node' | 'remove-node', handler: (node: DHT.TableNode) => void): this;
    on(event: 'ready' | 'persistent', handler: () => void): this;
  }

  export default DHT;
}

declare module 'udx-native' {
  import type DHT from 'dht-rpc';

  /** An engine of sockets and streams. */
  const Udx: new () => DHT.Udx;
  export default Udx;
}

declare module 'dht-rpc/lib/peer.js' {
  const peer: {
    /** The routing id of an IPv4 address and port: BLAKE2b-256 of its six bytes. Called here by all of the engine. */
    id: (host: string, port: number) => Uint8Array;
  };
  export default peer;
}
