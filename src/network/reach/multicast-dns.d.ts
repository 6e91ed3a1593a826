/** The parts of multicast-dns 7 that we use; the package brings no declarations of its own. */
declare module 'multicast-dns' {
  import type { RemoteInfo } from 'node:dgram';
  import type { EventEmitter } from 'node:events';

  namespace multicastDns {
    interface Options {
      readonly port?: number | undefined;
      /** The address of the interface to use; all of them where left out. */
      readonly interface?: string | undefined;
      /** The address to bind; false leaves the socket as it is. */
      readonly bind?: string | false;
      /** Where packets come and go; one of its own where left out. */
      readonly socket?: EventEmitter;
      readonly multicast?: boolean;
    }

    interface Question {
      readonly name: string;
      readonly type: string;
    }

    type Answer = { readonly name: string; readonly ttl?: number } & (
      | { readonly type: 'PTR'; readonly data: string }
      | { readonly type: 'SRV'; readonly data: { readonly port: number; readonly target: string } }
      | { readonly type: 'TXT'; readonly data: readonly (string | Buffer)[] }
    );

    /** What a stranger wrote. */
    interface Resource extends Question {
      readonly data: unknown;
    }

    /** A packet as it came: nothing of it is sure but its outline. */
    interface Packet {
      readonly questions: readonly Question[];
      readonly answers: readonly Resource[];
      readonly additionals: readonly Resource[];
    }

    interface MulticastDns extends EventEmitter {
      query(questions: readonly Question[]): void;
      respond(response: { readonly answers: readonly Answer[]; readonly additionals: readonly Answer[] }): void;
      destroy(done?: () => void): void;
      on(event: 'query' | 'response', handler: (packet: Packet, from: RemoteInfo) => void): this;
      on(event: 'error' | 'warning', handler: (error: Error) => void): this;
      on(event: 'ready', handler: () => void): this;
    }
  }

  function multicastDns(options?: multicastDns.Options): multicastDns.MulticastDns;
  export default multicastDns;
}
