import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from '../../../../src/foundation/bytes.ts';
import { parseDefaultGateway } from '../../../../src/network/reachability/port-mapping/gateway.ts';
import {
  decodeNatPmpAddress,
  decodeNatPmpMap,
  encodeNatPmpAddress,
  encodeNatPmpMap,
} from '../../../../src/network/reachability/port-mapping/nat-pmp.ts';
import {
  decodePcpMapReply,
  encodePcpMap,
  isOtherVersion,
} from '../../../../src/network/reachability/port-mapping/pcp.ts';
import {
  decodeSearchAnswer,
  elementsOf,
  elementText,
  findWanService,
  parseExternalHost,
  parseFault,
  parseReservedPort,
  parseRouterUrl,
  soapRequest,
} from '../../../../src/network/reachability/port-mapping/upnp.ts';

const NONCE = '0102030405060708090a0b0c';
const FROM = '00000000000000000000ffff';

function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex, 'hex'));
}

function pcpReply(change: (bytes: Uint8Array) => void = () => {}): Uint8Array {
  const bytes = bytesOf(`0281000000000258${'00'.repeat(16)}${NONCE}1100000010191019${FROM}cb007207`);
  change(bytes);
  return bytes;
}

test('a PCP request matches RFC 6887, figures 2 and 9', () => {
  const request = encodePcpMap({
    nonce: bytesOf(NONCE),
    ownHost: '10.9.0.2',
    internalPort: 4121,
    suggestedPort: 4122,
    lifetimeS: 600,
  });
  const header = `0201000000000258${FROM}0a090002`;
  assert.equal(toHex(request), `${header}${NONCE}110000001019101a${FROM}00000000`);
});

test('a PCP response is decoded, and other bytes are rejected', () => {
  assert.deepEqual(decodePcpMapReply(pcpReply()), {
    result: 0,
    lifetimeS: 600,
    nonce: bytesOf(NONCE),
    internalPort: 4121,
    externalPort: 4121,
    externalHost: '203.0.114.7',
  });
  for (const [at, value] of [
    [0, 1],
    [1, 1],
    [1, 0x82],
    [36, 6],
  ] as const)
    assert.equal(decodePcpMapReply(pcpReply((bytes) => (bytes[at] = value))), null, `byte ${at}`);
  assert.equal(decodePcpMapReply(pcpReply().subarray(0, 56)), null);
  assert.equal(decodePcpMapReply(new Uint8Array([...pcpReply(), 0])), null);
  assert.equal(isOtherVersion(Uint8Array.of(0, 0x81, 0, 1, 0, 0, 0, 0)), true);
  assert.equal(isOtherVersion(pcpReply()), false);
});

test('NAT-PMP messages match RFC 6886, 3.2 and 3.3', () => {
  assert.equal(toHex(encodeNatPmpAddress()), '0000');
  assert.equal(toHex(encodeNatPmpMap(4121, 4122, 600)), '000100001019101a00000258');
  assert.deepEqual(decodeNatPmpAddress(bytesOf('0080000000000001cb007207')), {
    result: 0,
    externalHost: '203.0.114.7',
  });
  const reply = { result: 2, internalPort: 4121, externalPort: 4122, lifetimeS: 600 };
  assert.deepEqual(decodeNatPmpMap(bytesOf('00810002000000011019101a00000258')), reply);
  for (const wrong of [
    '',
    '0080',
    '0280000000000001cb007207',
    '0081000000000001cb007207',
    '0080000000000001cb00720700',
  ])
    assert.equal(decodeNatPmpAddress(bytesOf(wrong)), null, wrong);
});

function answer(...headers: string[]): Uint8Array {
  return Buffer.from(`HTTP/1.1 200 OK\r\n${headers.join('\r\n')}\r\n\r\n`);
}

test('a search response contains the URL of the description', () => {
  const st = 'ST: urn:schemas-upnp-org:device:InternetGatewayDevice:2';
  assert.equal(decodeSearchAnswer(answer('Location: http://10.9.0.1:5000/x', st)), 'http://10.9.0.1:5000/x');
  assert.equal(decodeSearchAnswer(answer('LOCATION: http://10.9.0.1/', 'ST: upnp:rootdevice')), null);
  assert.equal(decodeSearchAnswer(answer(st)), null);
  assert.equal(decodeSearchAnswer(Buffer.from('NOTIFY * HTTP/1.1\r\n\r\n')), null);
  assert.equal(decodeSearchAnswer(answer('Location: http://10.9.0.1/', st, `X: ${'x'.repeat(2048)}`)), null);
});

test('a URL of a router must point to that router', () => {
  const base = new URL('http://10.9.0.1:5000/rootDesc.xml');
  assert.equal(parseRouterUrl('/ctl', '10.9.0.1', base)?.href, 'http://10.9.0.1:5000/ctl');
  assert.equal(parseRouterUrl('http://10.9.0.1:81/ctl', '10.9.0.1', base)?.href, 'http://10.9.0.1:81/ctl');
  for (const text of [
    'http://127.0.0.1:2121/config',
    '//10.9.0.3/',
    'http://router.example/',
    'https://10.9.0.1/',
    'file:///etc/passwd',
    'http://a:b@10.9.0.1/',
    'http://',
  ])
    assert.equal(parseRouterUrl(text, '10.9.0.1', base), null, text);
});

test('the best port mapping service in a description is found', () => {
  const service = (type: string, url: string): string =>
    `<service><serviceType>urn:schemas-upnp-org:service:${type}</serviceType><controlURL>${url}</controlURL></service>`;
  const list = (...services: string[]): string =>
    `<root><device><serviceList>${services.join('')}</serviceList></device></root>`;
  const ppp = service('WANPPPConnection:1', '/ppp');
  const type = (name: string): string => `urn:schemas-upnp-org:service:${name}`;
  assert.deepEqual(findWanService(list(ppp)), {
    type: type('WANPPPConnection:1'),
    control: '/ppp',
    choosesPort: false,
  });
  const two = findWanService(list(ppp, service('WANIPConnection:2', '/ip?a=1&amp;b=2')));
  assert.deepEqual(two, { type: type('WANIPConnection:2'), control: '/ip?a=1&b=2', choosesPort: true });
  assert.equal(findWanService(list(service('Layer3Forwarding:1', '/l3'))), null);
  assert.equal(findWanService('<service><serviceType>'), null);
});

test('SOAP responses are decoded by the local names of their elements', () => {
  assert.equal(
    parseExternalHost('<u:R><NewExternalIPAddress> 203.0.114.7 </NewExternalIPAddress></u:R>'),
    '203.0.114.7',
  );
  assert.equal(parseExternalHost('<NewExternalIPAddress></NewExternalIPAddress>'), null);
  assert.equal(parseReservedPort('<NewReservedPort>4121</NewReservedPort>'), 4121);
  assert.equal(parseReservedPort('<NewReservedPort>0</NewReservedPort>'), null);
  assert.equal(parseReservedPort('<NewReservedPort>65536</NewReservedPort>'), null);
  assert.equal(parseFault('<e:UPnPError xmlns:e="x"><e:errorCode>718</e:errorCode></e:UPnPError>'), 718);
  assert.equal(parseFault('<errorCode>many</errorCode>'), null);
  const request = soapRequest('urn:t:1', 'Do', { A: 1, B: '<&>' });
  assert.match(request, /<u:Do xmlns:u="urn:t:1"><A>1<\/A><B>&lt;&amp;&gt;<\/B><\/u:Do>/);
});

test('elements are found with any content, up to a limit', () => {
  assert.deepEqual(elementsOf('<a>1</a><b/><p:a x="2"><a>2</a></p:a><a/><a />', 'a', 9), ['1', '<a>2</a>']);
  assert.deepEqual(elementsOf('<a>1</a><a>2</a>', 'a', 1), ['1']);
  assert.equal(elementText('<a>x&amp;lt;</a>', 'a'), 'x&lt;');
  assert.equal(elementText('<a><b>x</b></a>', 'a'), null);
});

test('the router is the gateway of the default route with the lowest metric', () => {
  const head = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n';
  const route = (destination: string, gateway: string, flags: string, metric: number, mask = '00000000'): string =>
    `eth0\t${destination}\t${gateway}\t${flags}\t0\t0\t${metric}\t${mask}\t0\t0\t0\n`;
  const table = [
    route('0000090A', '00000000', '0001', 0, '00FFFFFF'),
    route('00000000', '0200090A', '0003', 200),
    route('00000000', '0100090A', '0003', 100),
    route('00000000', '0300090A', '0002', 1),
  ];
  assert.equal(parseDefaultGateway(head + table.join('')), '10.9.0.1');
  assert.equal(parseDefaultGateway(head + table.slice(0, 1).join('')), null);
  assert.equal(parseDefaultGateway(''), null);
});
