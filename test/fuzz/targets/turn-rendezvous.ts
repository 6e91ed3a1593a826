/** Messages of callers and others to the TURN rendezvous of a node without helpers. */

import { ATTEMPT_BYTES } from '../../../src/network/reachability/signals.ts';
import {
  decodeKnock,
  decodeKnockAnswer,
  encodeKnock,
  encodeKnockAnswer,
  MAX_KNOCK_BYTES,
} from '../../../src/network/reachability/turn-rendezvous.ts';
import { decoder } from '../engine/properties.ts';
import type { FuzzTarget } from '../engine/target.ts';

const INPUTS = 5000;
const KEY = new Uint8Array(32).fill(5);
const ATTEMPT = new Uint8Array(ATTEMPT_BYTES).fill(6);
const AT = { host: '192.0.2.1', port: 4122 };

const knock = decoder({
  name: 'knock',
  inputs: INPUTS,
  maxBytes: MAX_KNOCK_BYTES,
  seeds: () =>
    [AT, null].map((listensAt) =>
      encodeKnock({ caller: KEY, attempt: ATTEMPT, answerTo: KEY, host: '203.0.113.9', listensAt }),
    ),
  decode: decodeKnock,
  encode: encodeKnock,
  canonical: true,
});

const answer = decoder({
  name: 'knock-answer',
  inputs: INPUTS,
  maxBytes: MAX_KNOCK_BYTES,
  seeds: () => [encodeKnockAnswer({ attempt: ATTEMPT, listensAt: AT })],
  decode: decodeKnockAnswer,
  encode: encodeKnockAnswer,
  canonical: true,
});

export const turnRendezvousTargets: readonly FuzzTarget[] = [knock, answer];
