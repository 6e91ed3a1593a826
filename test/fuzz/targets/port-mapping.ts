/** Responses of routers, and of hosts that claim to be a router. */
import { parseDefaultGateway } from '../../../src/network/reachability/port-mapping/gateway.ts';
import { decodeNatPmpAddress, decodeNatPmpMap } from '../../../src/network/reachability/port-mapping/nat-pmp.ts';
import { decodePcpMapReply } from '../../../src/network/reachability/port-mapping/pcp.ts';
import {
  decodeSearchAnswer,
  findWanService,
  parseExternalHost,
  parseFault,
  parseReservedPort,
  parseRouterUrl,
} from '../../../src/network/reachability/port-mapping/upnp.ts';
import { decoder, textOf, violation } from '../engine/properties.ts';
import type { FuzzTarget } from '../engine/target.ts';

const INPUTS = 5000;
const ROUTER = '10.9.0.1';
const DESCRIPTION_URL = new URL(`http://${ROUTER}:5000/rootDesc.xml`);

const pcpReply = decoder({
  name: 'pcp-reply',
  inputs: INPUTS,
  seeds: () => {
    const bytes = new Uint8Array(60);
    bytes.set([2, 0x81]);
    bytes.set([17, 0, 0, 0, 16, 25, 16, 25], 36);
    bytes.set([0xff, 0xff, 203, 0, 114, 7], 54);
    return [bytes];
  },
  decode: decodePcpMapReply,
});

const natPmpReply = decoder({
  name: 'nat-pmp-reply',
  inputs: INPUTS,
  seeds: () => [Buffer.from('0080000000000001cb007207', 'hex'), Buffer.from('00810000000000011019101900000258', 'hex')],
  decode: (bytes) => decodeNatPmpAddress(bytes) ?? decodeNatPmpMap(bytes),
});

const WORDS = [
  'http://',
  '127.0.0.1',
  ROUTER,
  '@',
  '//',
  '\\',
  '%2f',
  '[::1]',
  'LOCATION:',
  'ST:',
  '\r\n',
  '#',
  '?',
  ':2121',
];

/** A router's response must not point to another host. */
function assertRouterUrl(text: string): string {
  const url = parseRouterUrl(text, ROUTER, DESCRIPTION_URL);
  if (url !== null && (url.hostname !== ROUTER || url.protocol !== 'http:'))
    throw violation('it points elsewhere', text);
  return url === null ? 'nowhere' : 'there';
}

const searchAnswer = decoder({
  name: 'ssdp-answer',
  inputs: INPUTS,
  words: WORDS,
  seeds: () => [
    Buffer.from(
      `HTTP/1.1 200 OK\r\nST: urn:schemas-upnp-org:device:InternetGatewayDevice:1\r\nLOCATION: ${DESCRIPTION_URL.href}\r\n\r\n`,
    ),
  ],
  decode: decodeSearchAnswer,
  check: assertRouterUrl,
});

const description = decoder({
  name: 'upnp-description',
  inputs: INPUTS,
  words: [
    ...WORDS,
    '<service>',
    '</service>',
    '<controlURL>',
    '</controlURL>',
    '<!--',
    ']]>',
    '&amp;',
    '&lt;',
    '/>',
    '<a:',
  ],
  seeds: () => [
    Buffer.from(
      '<?xml version="1.0"?><root><service><serviceType>urn:schemas-upnp-org:service:WANIPConnection:2</serviceType>' +
        '<controlURL>/ctl/IPConn</controlURL></service></root>',
    ),
  ],
  decode: (bytes) => findWanService(textOf(bytes)),
  check: ({ control }) => assertRouterUrl(control),
});

const soapAnswer = decoder({
  name: 'upnp-answer',
  inputs: INPUTS,
  words: ['<errorCode>', '</errorCode>', '718', '<NewReservedPort>', '65536', '&amp;', '/>', '-1', '1e9', '0x10'],
  seeds: () => [
    Buffer.from('<s:Body><u:R><NewExternalIPAddress>203.0.114.7</NewExternalIPAddress></u:R></s:Body>'),
    Buffer.from('<s:Body><u:R><NewReservedPort>4121</NewReservedPort></u:R></s:Body>'),
    Buffer.from('<s:Fault><errorCode>718</errorCode></s:Fault>'),
  ],
  decode: (bytes) => {
    const text = textOf(bytes);
    return parseExternalHost(text) ?? parseReservedPort(text) ?? parseFault(text);
  },
});

const routes = decoder({
  name: 'routes',
  inputs: 2000,
  words: ['00000000', '\t', '\n', '0003', 'FFFFFFFF'],
  seeds: () => [Buffer.from('Iface\nwan0\t00000000\t0100090A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n')],
  decode: (bytes) => parseDefaultGateway(textOf(bytes)),
});

export const portMappingTargets: readonly FuzzTarget[] = [
  pcpReply,
  natPmpReply,
  searchAnswer,
  description,
  soapAnswer,
  routes,
];
