/**
 * The connections of this daemon to bound services. A name may lead to another address than it did
 * when it was bound, and the daemon's own API may have moved to that address since: what ends there
 * would arrive as a program of this machine. So each connection is looked at once it stands, before a
 * byte is written to it; and the API asks here whether a connection to it is one of these.
 */
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { type Address, formatAddress, mayBeThisMachine } from './address.ts';
import { canonicalIp } from './ip.ts';

export interface ServiceSocketsDependencies {
  /** Where the daemon's own API listens; null where it has none. */
  readonly api: () => Address | null;
  /** The addresses of this machine's interfaces. */
  readonly interfaces: () => readonly string[];
}

type Ends = Partial<Record<'localAddress' | 'remoteAddress', string | undefined>> &
  Partial<Record<'localPort' | 'remotePort', number | undefined>>;

/** One end of a connection, however the system spells its address. */
function endOf(host: string | undefined, port: number | undefined): string {
  return formatAddress({ host: canonicalIp(host ?? '') ?? '', port: port ?? 0 });
}

export class ServiceSockets {
  readonly #deps: ServiceSocketsDependencies;
  /** Both ends of the connections that stand, ours first: one port of ours may be that of others to other places. */
  readonly #open = new Set<string>();

  constructor(dependencies: ServiceSocketsDependencies) {
    this.#deps = dependencies;
  }

  /** As `connect` of node:net. */
  readonly connect = (options: TcpNetConnectOpts): Socket => this.watch(connect(options));

  /** Watches a socket that is being connected to a service: it is destroyed where it has come to the API. */
  watch<S extends Socket>(socket: S): S {
    socket.prependOnceListener('connect', () => {
      if (this.#leadsToApi(socket)) return void socket.destroy(new Error('the API of the daemon cannot be a service'));
      const { localAddress, localPort, remoteAddress, remotePort } = socket;
      const ends = `${endOf(localAddress, localPort)} ${endOf(remoteAddress, remotePort)}`;
      this.#open.add(ends);
      socket.once('close', () => this.#open.delete(ends));
    });
    return socket;
  }

  /** True where a connection that was accepted is one that this daemon made to a service. */
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
