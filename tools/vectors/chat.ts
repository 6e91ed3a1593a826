import { toHex } from '../../src/foundation/bytes.ts';
import { type CborValue, encodeCbor } from '../../src/foundation/cbor.ts';
import { NOW, phraseBytes } from './common.ts';

const NOW_MS = NOW * 1000;
/** Streams of the two sides. */
const OURS = phraseBytes('stream of alice').slice(0, 16);
const THEIRS = phraseBytes('stream of bob').slice(0, 16);
const ENTRY = phraseBytes('id of an entry').slice(0, 16);
const SECOND = phraseBytes('id of a second entry').slice(0, 16);
const OBJECT = phraseBytes('object');

type Members = Readonly<Record<string, CborValue | undefined>>;

function framed(value: CborValue | Members): string {
  const body = encodeCbor(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  return toHex(Buffer.concat([length, body]));
}

const REQUEST = { k: 1, n: 1, s: OURS, o: 'Ada, about the report' };
const MESSAGE = { k: 4, s: OURS, i: ENTRY, t: NOW_MS, b: 'Grüße' };
const FILE: CborValue = [OBJECT, 'Übersicht.pdf', 1234];

/** Members of frames in a form that JSON holds: bytes are hex, under names that end in `_hex`. */
function frames() {
  const [stream_hex, re_hex, id_hex, after_hex] = [toHex(OURS), toHex(THEIRS), toHex(ENTRY), toHex(SECOND)];
  const file = { object_id: toHex(OBJECT), name: 'Übersicht.pdf', size: 1234 };
  return [
    { kind: 'request', n: 1, stream_hex, note: REQUEST.o, frame_hex: framed(REQUEST) },
    { kind: 'accept', n: 2, stream_hex, re_hex, frame_hex: framed({ k: 2, n: 2, s: OURS, r: THEIRS }) },
    { kind: 'gone', n: 3, stream_hex, re_hex, frame_hex: framed({ k: 3, n: 3, s: OURS, r: THEIRS }) },
    { kind: 'gone', n: 4, frame_hex: framed({ k: 3, n: 4 }) },
    { kind: 'message', stream_hex, id_hex, at_ms: NOW_MS, text: MESSAGE.b, frame_hex: framed(MESSAGE) },
    {
      kind: 'message',
      stream_hex,
      after_hex,
      id_hex,
      at_ms: NOW_MS,
      file,
      frame_hex: framed({ ...MESSAGE, p: SECOND, b: undefined, f: FILE }),
    },
    {
      kind: 'message',
      stream_hex,
      after_hex,
      id_hex,
      at_ms: NOW_MS,
      text: MESSAGE.b,
      file,
      frame_hex: framed({ ...MESSAGE, p: SECOND, f: FILE }),
    },
    { kind: 'heard', n: 1, answer: 'ok', frame_hex: framed({ k: 5, n: 1, c: 0 }) },
    { kind: 'heard', n: 2, answer: 'busy', frame_hex: framed({ k: 5, n: 2, c: 2 }) },
    {
      kind: 'receipt',
      stream_hex,
      last_hex: id_hex,
      answer: 'ok',
      frame_hex: framed({ k: 6, s: OURS, i: ENTRY, c: 0 }),
    },
    { kind: 'receipt', stream_hex, answer: 'unknown', frame_hex: framed({ k: 6, s: OURS, c: 3 }) },
    { kind: 'check', stream_hex, after_hex, frame_hex: framed({ k: 7, s: OURS, p: SECOND }) },
  ];
}

/** Frames that close the link, without the leading version byte. */
function malformed() {
  const at = (why: string, value: CborValue | Members) => ({ why, bytes_hex: `01${framed(value)}` });
  return [
    { why: 'version 2', bytes_hex: `02${framed(REQUEST)}` },
    { why: 'a frame of more than 66,560 bytes', bytes_hex: '0100010401' },
    { why: 'no CBOR', bytes_hex: '0100000001ff' },
    at('no map', [1]),
    at('no kind', { n: 1 }),
    at('an unknown kind', { ...REQUEST, k: 8 }),
    at('a stream of 15 bytes', { ...REQUEST, s: OURS.slice(1) }),
    at('a note of 281 characters', { ...REQUEST, o: 'ü'.repeat(281) }),
    at('an acceptance of nothing', { k: 2, n: 1, s: OURS }),
    at('a preceding id of 15 bytes', { ...MESSAGE, p: ENTRY.slice(1) }),
    at('a check of nothing', { k: 7, s: OURS }),
    at('an id of 15 bytes', { ...MESSAGE, i: ENTRY.slice(1) }),
    at('neither text nor file', { ...MESSAGE, b: undefined }),
    at('a file name with a slash', { ...MESSAGE, f: [OBJECT, 'a/b', 1] }),
    at('a file name with a control character', { ...MESSAGE, f: [OBJECT, 'a\nb', 1] }),
    at('a file without its size', { ...MESSAGE, f: [OBJECT, 'a'] }),
    at('an answer that is none', { k: 5, n: 1, c: 4 }),
  ];
}

/**
 * All frames of a conversation over two links. Alice opens both: a request that Bob accepts, two messages, a connection
 * lost before the second receipt, and the second message again.
 */
function conversation() {
  const second = { ...MESSAGE, p: ENTRY, i: SECOND, b: 'second' };
  const says = (from: 'alice' | 'bob', value: Members) => ({ from, frame_hex: framed(value) });
  return [
    [
      says('alice', REQUEST),
      says('bob', { k: 5, n: 1, c: 0 }),
      says('bob', { k: 2, n: 1, s: THEIRS, r: OURS }),
      says('alice', { k: 5, n: 1, c: 0 }),
      says('alice', MESSAGE),
      says('bob', { k: 6, s: OURS, i: ENTRY, c: 0 }),
      says('alice', second),
      { ...says('bob', { k: 6, s: OURS, i: SECOND, c: 0 }), lost: true },
    ],
    [says('alice', second), says('bob', { k: 6, s: OURS, i: SECOND, c: 0 })],
  ];
}

export function chatVectors(): unknown {
  return {
    version_hex: '01',
    frames: frames(),
    malformed: malformed(),
    streams: { alice_hex: toHex(OURS), bob_hex: toHex(THEIRS) },
    conversation: conversation(),
  };
}
