/** UDP ports that a node borrows of a `TlsHelper`. */
import { systemClock } from '../../src/foundation/clock.ts';
import type { KeyPair } from '../../src/foundation/identity/keys.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { networkTag } from '../../src/network/records/node-address.ts';
import { UdpOverTls } from '../../src/network/transport/tls/client.ts';
import { Proxies } from '../../src/network/transport/tls/proxy.ts';
import type { TlsHelper } from './tls-helper.ts';

const SIGNAL = new AbortController().signal;

/** The ports of the node with this key. They can be used after `connectTo`. */
export function borrowedPorts(key: KeyPair): UdpOverTls {
  const settings = { proxy: 'none', proxy_command: '', tls_ca: '' };
  return new UdpOverTls({
    clock: systemClock,
    log: silentLog,
    identity: { key, tag: networkTag('') },
    proxies: new Proxies(() => settings, {}),
    ca: () => '',
  });
}

export async function connectTo(helper: TlsHelper, ports: UdpOverTls): Promise<void> {
  ports.use(await ports.open({ host: '127.0.0.1', port: helper.port }, SIGNAL));
}
