/** Datagrams of the record network, byte for byte. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { toHex } from '../../../../src/foundation/bytes.ts';
import { networkTag, nodeId } from '../../../../src/network/records/node-address.ts';
import { type Datagram, decodeDatagram, encodeDatagram } from '../../../../src/network/records/rpc/messages.ts';

const TAG = networkTag('test');
const TO = { host: '127.0.0.1', port: 4121 };
const REQUEST: Datagram = {
  ...{ kind: 'request', requestId: 0x0102, to: TO, id: null, token: null },
  ...{ internal: false, command: 1, target: null, value: null },
};

const word = fc.option(fc.uint8Array({ minLength: 32, maxLength: 32 }));
const address = fc
  .tuple(fc.nat(255), fc.nat(255), fc.nat(65_535))
  .map(([a, b, port]) => ({ host: `${a}.0.${b}.9`, port }));
const header = { requestId: fc.nat(65_535), to: address, id: word, token: word };
const value = fc.option(fc.uint8Array({ maxLength: 1000 }));
const number = fc.oneof(fc.nat(300), fc.constantFrom(252, 253, 0xffff, 0x1_0000, 0xffff_ffff));
const request = fc.record({
  ...{ kind: fc.constant('request' as const), ...header, internal: fc.boolean(), command: number },
  ...{ target: word, value },
});
const answer = fc.record({
  ...{ kind: fc.constant('answer' as const), ...header, nodes: fc.array(address, { maxLength: 17 }) },
  ...{ error: number, value },
});

/** With bytes as hex digits, so that buffers and byte arrays compare equal. */
function plain(datagram: Datagram | null): unknown {
  if (datagram === null) return null;
  const members = Object.entries(datagram).map(([name, member]: [string, unknown]) => [
    name,
    member instanceof Uint8Array ? toHex(member) : member,
  ]);
  return Object.fromEntries(members);
}

test('an encoded message is decoded, and a truncated one is invalid', () => {
  fc.assert(
    fc.property(fc.oneof(request, answer), (datagram) => {
      const bytes = encodeDatagram(datagram, TAG);
      assert.deepEqual(plain(decodeDatagram(bytes, TAG)), plain(datagram));
      assert.equal(decodeDatagram(bytes.subarray(0, -1), TAG), null);
    }),
    { seed: 4121, numRuns: 500 },
  );
});

test('the encoding matches the protocol', () => {
  const id = new Uint8Array(32).fill(0xaa);
  const token = new Uint8Array(32).fill(0xbb);
  const target = new Uint8Array(32).fill(0xcc);
  const hex = (datagram: Datagram) => toHex(encodeDatagram(datagram, TAG)).slice(16);
  assert.ok(toHex(encodeDatagram(REQUEST, TAG)).startsWith(toHex(TAG)));
  assert.equal(hex(REQUEST), `030002017f000001191001`);
  const full = { ...REQUEST, id, token, internal: true, command: 2, target, value: Uint8Array.of(7, 8) };
  assert.equal(hex(full), `031f02017f0000011910${'aa'.repeat(32)}${'bb'.repeat(32)}02${'cc'.repeat(32)}020708`);
  const nodes = [{ host: '10.0.0.1', port: 0x1234 }];
  const reply: Datagram = {
    ...{ kind: 'answer', requestId: 1, to: TO, id, token, nodes },
    ...{ error: 2, value: new Uint8Array(300) },
  };
  assert.equal(
    hex(reply),
    `131f01007f0000011910${'aa'.repeat(32)}${'bb'.repeat(32)}010a000001341202fd2c01${'00'.repeat(300)}`,
  );
});

test('datagrams with another network, another type or unknown flags are invalid', () => {
  const bytes = encodeDatagram(REQUEST, TAG);
  assert.equal(decodeDatagram(bytes, networkTag('other')), null);
  for (const [at, byte] of [
    [8, 0x02],
    [8, 0x23],
    [9, 32],
    [9, 0x80],
    [9, 0xfd],
    [9, 0xff],
  ] as const) {
    const changed = Buffer.from(bytes);
    changed[at] = byte;
    assert.equal(decodeDatagram(changed, TAG), null, `${at}: ${byte}`);
  }
});

/** Datagrams from `dht-rpc` 6.27 on port 41211 to a node on port 41213: before and after it sends its routing id. */
const RECORDED_ID = '9a44deafc9f3b5b6e9fdfc11951a172907962940f38fd84cbe349ed3bfa3e7b5';
const RECORDED_TOKEN = '8e218b4cf543b64a62347e5ef39dda51970565e84b83b2219043a1c6c6dc977e';
const RECORDED_TO = { host: '127.0.0.1', port: 41213 };
const recorded = (before: string, after: string): Uint8Array =>
  Buffer.from(`47b57c801d6260ed${before}${RECORDED_ID}${after}`, 'hex');

test('datagrams of dht-rpc are decoded, and re-encoded to the same bytes', () => {
  const header = { to: RECORDED_TO, id: Buffer.from(RECORDED_ID, 'hex'), token: null };
  const answer = { ...header, kind: 'answer' as const, requestId: 0x0201, nodes: [], error: 0, value: null };
  const token = Buffer.from(RECORDED_TOKEN, 'hex');
  const target = new Uint8Array(32).fill(7);
  const request = { ...header, kind: 'request' as const, target: null, value: null };
  const pairs: readonly [Uint8Array, Datagram][] = [
    [recorded('130101027f000001fda0', ''), answer],
    [recorded('130501027f000001fda0', '017f000001fca0'), { ...answer, nodes: [{ host: '127.0.0.1', port: 41212 }] }],
    [recorded('130b01027f000001fda0', `${RECORDED_TOKEN}02`), { ...answer, token, error: 2 }],
    [
      recorded('131301027f000001fda0', `${RECORDED_TOKEN}fd0401${'05'.repeat(260)}`),
      { ...answer, token, value: new Uint8Array(260).fill(5) },
    ],
    [recorded('030554e87f000001fda0', '00'), { ...request, requestId: 0xe854, internal: true, command: 0 }],
    [
      recorded('031b53e87f000001fda0', `${'08'.repeat(32)}09${'07'.repeat(32)}fd0401${'06'.repeat(260)}`),
      {
        ...{ ...request, requestId: 0xe853, internal: false, command: 9, target },
        ...{ token: new Uint8Array(32).fill(8), value: new Uint8Array(260).fill(6) },
      },
    ],
  ];
  for (const [bytes, datagram] of pairs) {
    assert.deepEqual(plain(decodeDatagram(bytes, TAG)), plain(datagram));
    assert.equal(toHex(encodeDatagram(datagram, TAG)), toHex(bytes));
  }
  assert.equal(toHex(nodeId({ host: '127.0.0.1', port: 41211 })), RECORDED_ID);
});
