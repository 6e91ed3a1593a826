/** Messages between nodes and their helpers. */
import {
  ATTEMPT_BYTES,
  decodeHelperReply,
  decodeHelperRequest,
  decodeIntroduction,
  decodeIntroductionAnswer,
  encodeHelperReply,
  encodeHelperRequest,
  encodeIntroduction,
  encodeIntroductionAnswer,
} from '../../../src/network/reachability/signals.ts';
import { decoder } from '../engine/properties.ts';
import type { FuzzTarget } from '../engine/target.ts';

const INPUTS = 5000;
const KEY = new Uint8Array(32).fill(5);
const ATTEMPT = new Uint8Array(ATTEMPT_BYTES).fill(6);
const TOKEN = new Uint8Array(16).fill(7);
const SEEN = { host: '192.0.2.1', port: 4122 };
const SEEN_V6 = { host: '2001:db8::1', port: 4122 };

const request = decoder({
  name: 'helper-request',
  inputs: INPUTS,
  seeds: () => [
    encodeHelperRequest({ kind: 'hello' }),
    encodeHelperRequest({ kind: 'reach', port: 4122 }),
    encodeHelperRequest({
      kind: 'introduce',
      to: KEY,
      attempt: ATTEMPT,
      means: 'punch',
      mapping: 'symmetric',
      listensAt: null,
      needsFullHops: true,
    }),
    encodeHelperRequest({
      kind: 'introduce',
      to: KEY,
      attempt: ATTEMPT,
      means: 'listening',
      mapping: 'cone',
      listensAt: SEEN,
      needsFullHops: false,
    }),
    encodeHelperRequest({
      kind: 'introduce',
      to: KEY,
      attempt: ATTEMPT,
      means: 'ipv6',
      mapping: 'symmetric',
      listensAt: SEEN_V6,
      needsFullHops: false,
    }),
  ],
  decode: decodeHelperRequest,
  encode: encodeHelperRequest,
  canonical: true,
});

const introduction = decoder({
  name: 'introduction',
  inputs: INPUTS,
  seeds: () => [
    encodeIntroduction({
      caller: KEY,
      attempt: ATTEMPT,
      means: 'relay',
      mapping: 'unknown',
      seenAt: SEEN_V6,
      listensAt: null,
      needsFullHops: false,
      relay: { port: 40_000, token: TOKEN },
    }),
    encodeIntroduction({
      caller: KEY,
      attempt: ATTEMPT,
      means: 'listening',
      mapping: 'open',
      seenAt: SEEN,
      listensAt: SEEN,
      needsFullHops: true,
      relay: null,
    }),
    encodeIntroduction({
      caller: KEY,
      attempt: ATTEMPT,
      means: 'ipv6',
      mapping: 'symmetric',
      seenAt: SEEN,
      listensAt: SEEN_V6,
      needsFullHops: false,
      relay: null,
    }),
  ],
  decode: decodeIntroduction,
  encode: encodeIntroduction,
  canonical: true,
});

const answer = decoder({
  name: 'introduction-answer',
  inputs: INPUTS,
  seeds: () => [
    encodeIntroductionAnswer({ outcome: 'ready', mapping: 'cone', listensAt: SEEN, isSprayed: true }),
    encodeIntroductionAnswer({ outcome: 'noted', mapping: 'unknown', listensAt: null, isSprayed: false }),
  ],
  decode: decodeIntroductionAnswer,
  encode: encodeIntroductionAnswer,
  canonical: true,
});

const called = { outcome: 'ready', mapping: 'cone', listensAt: SEEN, isSprayed: true, seenAt: SEEN_V6 } as const;
const reply = decoder({
  name: 'helper-reply',
  inputs: INPUTS,
  seeds: () => [
    encodeHelperReply({
      seenAt: SEEN,
      relays: true,
      reached: true,
      called: null,
      relayPort: null,
      tlsPorts: [443, 4121],
    }),
    encodeHelperReply({ seenAt: SEEN, relays: false, reached: false, called, relayPort: 40_000, tlsPorts: [] }),
  ],
  decode: decodeHelperReply,
  encode: encodeHelperReply,
  canonical: true,
});

export const signalTargets: readonly FuzzTarget[] = [request, introduction, answer, reply];
