/** Messages of callers and others to the TURN rendezvous of a node without helpers. */

import { ATTEMPT_BYTES } from '../../../src/network/reachability/signals.ts';
import {
  decodeRendezvousAnswer,
  decodeRendezvousRequest,
  encodeRendezvousAnswer,
  encodeRendezvousRequest,
  MAX_RENDEZVOUS_BYTES,
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
  maxBytes: MAX_RENDEZVOUS_BYTES,
  seeds: () =>
    [AT, null].map((listensAt) =>
      encodeRendezvousRequest({ caller: KEY, attempt: ATTEMPT, answerTo: KEY, host: '203.0.113.9', listensAt }),
    ),
  decode: decodeRendezvousRequest,
  encode: encodeRendezvousRequest,
  canonical: true,
});

const answer = decoder({
  name: 'knock-answer',
  inputs: INPUTS,
  maxBytes: MAX_RENDEZVOUS_BYTES,
  seeds: () => [encodeRendezvousAnswer({ attempt: ATTEMPT, listensAt: AT })],
  decode: decodeRendezvousAnswer,
  encode: encodeRendezvousAnswer,
  canonical: true,
});

export const turnRendezvousTargets: readonly FuzzTarget[] = [knock, answer];
