/** The first bytes at an entry: ClientHellos and PROXY headers; and the messages about names. */
import { ClientHelloReader, MAX_CLIENT_HELLO_BYTES } from '../../../src/capabilities/entry/client-hello.ts';
import { readProxyHeader } from '../../../src/capabilities/entry/proxy-header.ts';
import { canonicalIp } from '../../../src/foundation/ip.ts';
import {
  decodeConnection,
  decodeNameAnswer,
  decodeNameRequest,
  encodeConnection,
  encodeNameAnswer,
  encodeNameRequest,
} from '../../../src/foundation/public-name-messages.ts';
import { clientHelloOf, helloWith, inRecords, serverNames } from '../../support/client-hello.ts';
import { bytesOf, decoder, violation } from '../engine/properties.ts';
import { splitInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';

const NAME = 'demo.vps.example.org';

/** The state and the name after all pieces. */
function hello(pieces: readonly Uint8Array[]): string {
  const reader = new ClientHelloReader();
  for (const piece of pieces) {
    const state = reader.push(piece);
    if (state === 'more' && reader.head.length >= MAX_CLIENT_HELLO_BYTES) throw violation('no limit', piece);
    if (state !== 'more') return `${state} ${reader.serverName}`;
  }
  return 'more';
}

const clientHello: FuzzTarget = {
  name: 'entry-client-hello',
  inputs: 4000,
  maxBytes: 2 * MAX_CLIENT_HELLO_BYTES,
  prepare: async () => {
    const real = await clientHelloOf({ servername: NAME, ALPNProtocols: ['h2', 'http/1.1'] });
    return {
      seeds: [
        real,
        inRecords(real, 40),
        helloWith([serverNames(NAME)]),
        helloWith([]),
        helloWith([serverNames('a', 'b')]),
      ],
      run: (input) => {
        const before = Uint8Array.from(input);
        const outcome = hello(splitInput(input));
        if (Buffer.compare(before, input) !== 0) throw violation('the input was changed', before);
        const bytewise =
          input.length < MAX_CLIENT_HELLO_BYTES ? hello(Array.from(input, (byte) => Uint8Array.of(byte))) : null;
        // Bytes that follow in the same record make a hello invalid; if they arrive later, the hello is complete already.
        if (bytewise !== null && bytewise !== outcome) throw violation(`${outcome}, but bytewise ${bytewise}`, input);
        const [state = '', name = ''] = outcome.split(' ');
        if (name.length > 255 || name !== name.toLowerCase()) throw violation('a bad name', input);
        return `${state} ${name.length > 0}`;
      },
    };
  },
};

const proxyHeader: FuzzTarget = {
  name: 'entry-proxy-header',
  inputs: 6000,
  maxBytes: 2048,
  words: ['PROXY TCP4 ', 'PROXY TCP6 ', 'UNKNOWN', '\r\n', '2001:db8::9'],
  prepare: () => ({
    seeds: [
      ...bytesOf('PROXY TCP4 203.0.113.9 192.0.2.1 4711 443\r\n', 'PROXY UNKNOWN\r\n'),
      Buffer.from('0d0a0d0a000d0a515549540a2111000ccb007109c0000201126701bb', 'hex'),
      Buffer.from('0d0a0d0a000d0a515549540a20000000', 'hex'),
    ],
    run: (input) => {
      const bytes = Buffer.from(input);
      const read = readProxyHeader(bytes);
      if (typeof read === 'string') {
        if (read === 'more' && bytes.length >= 1024) throw violation('no limit', input);
        return read;
      }
      if (read.length > bytes.length) throw violation('longer than the input', input);
      const { client } = read;
      if (client !== null && canonicalIp(client.address) !== client.address) throw violation('a bad address', input);
      const cut = readProxyHeader(bytes.subarray(0, read.length));
      if (typeof cut === 'string' || cut.length !== read.length) throw violation('bytes after it count', input);
      return client === null ? 'local' : client.address.includes(':') ? 'ipv6' : 'ipv4';
    },
  }),
};

const nameRequest = decoder({
  name: 'entry-name-request',
  inputs: 3000,
  seeds: () =>
    [null, 'a'.repeat(22)].map((token) => encodeNameRequest({ action: 'claim', name: NAME, token }).subarray(2)),
  decode: decodeNameRequest,
  encode: (request) => encodeNameRequest(request).subarray(2),
});

const nameAnswer = decoder({
  name: 'entry-name-answer',
  inputs: 3000,
  seeds: () => [encodeNameAnswer({ verdict: 'full', name: NAME, leaseDays: 30 }).subarray(2)],
  decode: decodeNameAnswer,
  encode: (answer) => encodeNameAnswer(answer).subarray(2),
});

const connection = decoder({
  name: 'entry-connection',
  inputs: 3000,
  seeds: () => [encodeConnection({ name: NAME, clientAddress: '203.0.113.9', clientPort: 4711 }).subarray(2)],
  decode: decodeConnection,
  encode: (header) => encodeConnection(header).subarray(2),
});

export const entryTargets: readonly FuzzTarget[] = [clientHello, proxyHeader, nameRequest, nameAnswer, connection];
