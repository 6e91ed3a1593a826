/**
 * The connections of this daemon to bound services. A host name can resolve to another address than at the time of the
 * bind, and the daemon's own API may listen there now. Such a connection would reach the API as a local program. So
 * each connection is checked after it connects and before anything is sent. The API also asks here whether an accepted
 * connection is one of these.
 */
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { type Address, formatAddress, mayBeThisMachine } from './address.ts';
import { UNPROVEN } from './daemon-proof.ts';
import { canonicalIp } from './ip.ts';

export interface ServiceSocketsDependencies {
  /** Address of the daemon's API; null if it serves none. */
  readonly api: () => Address | null;
  /** The addresses of this machine's interfaces. */
  readonly interfaces: () => readonly string[];
}

type Ends = Partial<Record<'localAddress' | 'remoteAddress', string | undefined>> &
  Partial<Record<'localPort' | 'remotePort', number | undefined>>;

/** One end of a connection in canonical form. */
function endOf(host: string | undefined, port: number | undefined): string {
  return formatAddress({ host: canonicalIp(host ?? '') ?? '', port: port ?? 0 });
}

export class ServiceSockets {
  readonly #deps: ServiceSocketsDependencies;
  /**
   * Both ends of the open connections, ours first: different processes can use the same local port for different
   * destinations.
   */
  readonly #open = new Set<string>();

  constructor(dependencies: ServiceSocketsDependencies) {
    this.#deps = dependencies;
  }

  /** Like `connect` of node:net. */
  readonly connect = (options: TcpNetConnectOpts): Socket => this.watch(connect(options));

  /** Watches a socket that is connecting to a service, and destroys it if it reaches the API. */
  watch<S extends Socket>(socket: S): S {
    socket.prependOnceListener('connect', () => {
      if (this.#leadsToApi(socket))
        return void socket.destroy(
          Object.assign(new Error('the API of the daemon cannot be a service'), { code: UNPROVEN }),
        );
      const { localAddress, localPort, remoteAddress, remotePort } = socket;
      const ends = `${endOf(localAddress, localPort)} ${endOf(remoteAddress, remotePort)}`;
      this.#open.add(ends);
      socket.once('close', () => this.#open.delete(ends));
    });
    return socket;
  }

  /** True if an accepted connection was made by this daemon to a service. */
  isOurs({ localAddress, localPort, remoteAddress, remotePort }: Ends): boolean {
    if (this.#open.size === 0) return false;
    return this.#open.has(`${endOf(remoteAddress, remotePort)} ${endOf(localAddress, localPort)}`);
  }

  #leadsToApi({ remoteAddress = '', remotePort }: Socket): boolean {
    if (remotePort !== this.#deps.api()?.port) return false;
    const there = canonicalIp(remoteAddress);
    return mayBeThisMachine(remoteAddress) || this.#deps.interfaces().some((own) => canonicalIp(own) === there);
  }
}
