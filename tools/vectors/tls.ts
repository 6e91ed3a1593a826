import { toHex } from '../../src/foundation/bytes.ts';
import {
  closingEntry,
  EXPORTER_LABEL,
  encodeClientHello,
  encodeEntry,
  encodeHelperHello,
  encodeNonce,
  encodePing,
  NODE_HEADER,
  NONCE_BYTES,
  NONCE_HEADER,
  TLS_PATH,
  TLS_PURPOSE,
  TLS_STATUS,
  TLS_TOKEN_BYTES,
} from '../../src/network/transport/tls/wire.ts';
import { NETWORK_TAG_BYTES } from '../../src/network/transport/udp-socket.ts';
import { phraseBytes, phrasePair } from './common.ts';

const client = phrasePair('tls client');
const helper = phrasePair('tls helper');
const helperNonce = phraseBytes('helper nonce').subarray(0, NONCE_BYTES);
const clientNonce = phraseBytes('client nonce').subarray(0, NONCE_BYTES);
const exporter = phraseBytes('exporter');
const token = phraseBytes('resume').subarray(0, TLS_TOKEN_BYTES);

function clientHellos() {
  const first = {
    tag: phraseBytes('tag').subarray(0, NETWORK_TAG_BYTES),
    nodeKey: client.publicKey,
    nonce: clientNonce,
  };
  const hellos = [
    { ...first, purpose: TLS_PURPOSE.ports, helperKey: helper.publicKey, exporter, token: null },
    {
      ...first,
      purpose: TLS_PURPOSE.ports,
      helperKey: helper.publicKey,
      exporter: new Uint8Array(exporter.length),
      token,
    },
    { ...first, purpose: TLS_PURPOSE.lane, helperKey: helper.publicKey, exporter, token },
  ];
  return hellos.map((hello) => ({
    purpose: hello.purpose,
    helper_key_hex: toHex(hello.helperKey),
    exporter_hex: toHex(hello.exporter),
    token_hex: hello.token === null ? null : toHex(hello.token),
    message_hex: toHex(encodeClientHello(hello, helperNonce, client)),
  }));
}

function helperHellos() {
  const first = { nodeKey: helper.publicKey, exporter };
  const none = new Uint8Array(TLS_TOKEN_BYTES);
  const hellos = [
    { ...first, status: TLS_STATUS.ok, resume: token, isResumed: false, ports: 32, host: '203.0.113.7' },
    { ...first, status: TLS_STATUS.ok, resume: token, isResumed: true, ports: 127, host: '2001:db8::1' },
    { ...first, status: TLS_STATUS.full, resume: none, isResumed: false, ports: 0, host: null },
  ];
  return hellos.map((hello) => ({
    status: hello.status,
    resumed: hello.isResumed,
    ports: hello.ports,
    host: hello.host,
    message_hex: toHex(encodeHelperHello(hello, clientNonce, helper)),
  }));
}

function entries() {
  const datagram = Uint8Array.of(1, 2, 3);
  const all = [
    { number: 1, remote: { host: '203.0.113.7', port: 4121 }, datagram },
    { number: 127, remote: { host: '2001:db8::ff', port: 443 }, datagram },
    { number: 2, remote: { host: '192.0.2.1', port: 65_535 }, datagram: new Uint8Array() },
    closingEntry(3),
  ];
  return all.map((entry) => ({
    number: entry.number,
    host: entry.remote?.host ?? null,
    port: entry.remote?.port ?? null,
    datagram_hex: toHex(entry.datagram),
    entry_hex: toHex(encodeEntry(entry)),
  }));
}

export function tlsVectors(): unknown {
  return {
    path: TLS_PATH,
    exporter_label: EXPORTER_LABEL,
    nonce_header_name: NONCE_HEADER,
    node_header_name: NODE_HEADER,
    client_key_hex: toHex(client.publicKey),
    helper_key_hex: toHex(helper.publicKey),
    helper_nonce_hex: toHex(helperNonce),
    nonce_header: encodeNonce(helperNonce),
    client_nonce_hex: toHex(clientNonce),
    client_hellos: clientHellos(),
    helper_hellos: helperHellos(),
    entries: entries(),
    pings: [0, 65_537, Number.MAX_SAFE_INTEGER].map((written) => ({
      written,
      payload_hex: toHex(encodePing(written)),
    })),
  };
}
