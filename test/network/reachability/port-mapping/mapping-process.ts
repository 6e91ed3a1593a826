/** A port mapper on a lab machine. It reports its state on request, and stops on request. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { formatAddress } from '../../../../src/foundation/address.ts';
import { systemClock } from '../../../../src/foundation/clock.ts';
import { MAPPING_PROTOCOLS } from '../../../../src/foundation/domain/reach.ts';
import { silentLog } from '../../../../src/foundation/log.ts';
import { findGateway } from '../../../../src/network/reachability/port-mapping/gateway.ts';
import { grantorFinders, PortMapper } from '../../../../src/network/reachability/port-mapping/port-mapper.ts';

const [, , portText = '', protocol = ''] = process.argv;
const port = Number(portText);
/** Echoes datagrams, as seen by a client outside. */
const socket = createSocket('udp4');
socket.on('message', (datagram, from) => socket.send(datagram, from.port, from.address));
socket.bind(port, '0.0.0.0');
await once(socket, 'listening');
const interfaces = () => Object.values(networkInterfaces()).flatMap((all) => all ?? []);
const mapper = new PortMapper({
  clock: systemClock,
  log: silentLog,
  ports: () => [port, port + 1],
  findGateway,
  grantors: (gateway) => {
    const all = grantorFinders(gateway, systemClock, Math.random, interfaces);
    return all.filter((_, i) => MAPPING_PROTOCOLS[i] === protocol || protocol === '');
  },
  onMapped: () => {},
});
/** The state, then each port: protocol, internal port, external address. */
function shown(): string {
  const { state, ports } = mapper.view();
  const each = ports.map((one) => `${one.protocol} ${one.internalPort} ${formatAddress(one.external)}`);
  return [state, ...each].join(', ');
}

await mapper.start();
process.on('message', (message) => {
  if (message === 'stop') void mapper.stop().then(() => process.send?.('stopped'));
  else process.send?.(shown());
});
process.send?.('started');
