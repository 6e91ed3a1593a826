/**
 * Links of purpose `ask`. The calling side opens one after the called side refused a link, before it sends a call or
 * connects a tunnel. The called side stores the request, and holds the link until the owner decides or the time of the
 * caller expires. Format: docs/protocol-links.md, "Asking for access".
 */
import { requestText } from '../../foundation/access-text.ts';
import { calledName, isCalledName } from '../../foundation/called-name.ts';
import {
  CborMap,
  converted,
  fromBytes,
  type Kind,
  nullable,
  optional,
  text,
  toBytes,
  uint,
  word,
} from '../../foundation/cbor-map.ts';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import {
  ASK_KINDS,
  isToolName,
  MAX_ACCESS_NOTE_BYTES,
  MAX_ASKED_BYTES,
  MAX_DECISION_WAIT_S,
} from '../../foundation/domain/access.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { LISTED_ID_PATTERN } from '../../foundation/ids.ts';
import type { Log } from '../../foundation/log.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import {
  type AccessAsk,
  type AccessRequest,
  type AskOwner,
  accessRequestOf,
  type LinkStream,
  type Links,
} from '../../network/links/types.ts';
import { drainAndDestroy } from '../../network/peers/stream-dispatcher.ts';
import { ProtocolBreach, readFrame, u16 } from '../../network/peers/wire.ts';
import type { AccessControl } from './access-control.ts';
import { type AccessRequests, ASK_AGAIN_S, VERDICTS, type Verdict } from './requests.ts';

/** Time to reach the other node, milliseconds. */
const OPEN_TIMEOUT_MS = 15_000;
/** Time for each message beyond the wait for a decision, milliseconds. */
const MESSAGE_TIMEOUT_MS = 10_000;

// The messages.

/** Longest message, bytes. */
export const MAX_ASK_BYTES = 1536;
const REQUEST_ID = new RegExp(LISTED_ID_PATTERN);

/** A short text without control characters. */
function line(maxBytes: number): Kind<string> {
  return text((value) => value.isWellFormed() && Buffer.byteLength(value) <= maxBytes && !/\p{Cc}/u.test(value));
}

const ASK = new CborMap(
  {
    kind: ['k', word(ASK_KINDS)],
    asked: ['a', line(MAX_ASKED_BYTES)],
    tool: ['t', nullable(text(isToolName))],
    note: ['n', line(MAX_ACCESS_NOTE_BYTES)],
    name: ['m', optional(text(isCalledName))],
    waitS: [
      'w',
      converted(
        uint(),
        (waitS) => Math.min(waitS, MAX_DECISION_WAIT_S),
        (waitS) => waitS,
      ),
    ],
  },
  { isOpen: true },
);
const VERDICT = new CborMap(
  { state: ['s', word(VERDICTS)], id: ['i', nullable(text((id) => REQUEST_ID.test(id)))] },
  { isOpen: true },
);

function framed(body: Uint8Array): Uint8Array {
  return Buffer.concat([u16(body.length), body]);
}

/** Encodes a request with its length. */
export function encodeAsk(ask: AccessAsk): Uint8Array {
  return framed(toBytes(ASK, ask));
}

/** Null if it is malformed. */
export function decodeAsk(bytes: Uint8Array): AccessAsk | null {
  return fromBytes(ASK, bytes, MAX_ASK_BYTES);
}

/** Encodes an answer with its length. */
export function encodeVerdict(verdict: Verdict): Uint8Array {
  return framed(toBytes(VERDICT, verdict));
}

/** Null if it is malformed. */
export function decodeVerdict(bytes: Uint8Array): Verdict | null {
  return fromBytes(VERDICT, bytes, MAX_ASK_BYTES);
}

// The called side.

/** Serves callers that ask. Returns a function that ends all waits. */
export function serveAsks(
  links: Links,
  requests: AccessRequests,
  access: AccessControl,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): () => void {
  const stop = new AbortController();
  const check = (request: AccessRequest): void => {
    const decision = access.decide(request.called, request.caller);
    if (access.isClosedTo(request) || (decision !== 'ask' && decision !== 'allow')) throw new SvcError('access_denied');
  };
  const serve = (link: LinkStream): void => {
    link.on('error', () => {});
    detach(
      answer(link, requests, clock, stop.signal).catch((error: unknown) => {
        log.debug({ caller: link.caller, error }, 'a request for access failed');
        link.destroy();
      }),
    );
  };
  links.accept('ask', serve, check);
  return () => stop.abort();
}

async function answer(link: LinkStream, requests: AccessRequests, clock: Clock, stop: AbortSignal): Promise<void> {
  using limit = awakeTimeout(clock, MESSAGE_TIMEOUT_MS, stop);
  const ask = decodeAsk(await readFrame(link, MAX_ASK_BYTES, limit.signal));
  if (ask === null) throw new ProtocolBreach('A request for access is malformed.');
  const from = accessRequestOf(link);
  let verdict = requests.ask(from, ask);
  if (verdict.state === 'pending' && ask.waitS > 0 && !link.destroyed) {
    const gone = new AbortController();
    const end = (): void => gone.abort();
    link.once('close', end);
    verdict = await requests.wait(from, ask, ask.waitS, AbortSignal.any([stop, gone.signal]));
    link.off('close', end);
  }
  if (link.destroyed) return;
  link.end(encodeVerdict(verdict));
  drainAndDestroy(link, clock);
}

// The calling side.

/** Asks the owners of remote agents. @param nameOf the name that a local agent gives itself; empty without one */
export function askOwnerOver(links: Links, clock: Clock, nameOf: (local: Aid) => string): AskOwner {
  return async (local, remote, ask, signal) => {
    const link = await openAsk(links, local, remote, { ...ask, name: calledName(nameOf(local)) }, signal);
    const { state, id } = await verdictOf(link, ask.waitS, clock, signal);
    switch (state) {
      case 'allowed':
        return;
      case 'pending':
        throw new SvcError('access_pending', {
          details: { retry_after_s: ASK_AGAIN_S, ...(id === null ? {} : { request: id }) },
        });
      case 'refused':
        throw new SvcError('access_denied', { message: 'The owner of the remote agent refused this caller.' });
      case 'busy':
        throw new SvcError('rate_limited', {
          message: 'The remote agent has too many requests for access. Try again later.',
          details: { retry_after_s: ASK_AGAIN_S },
        });
    }
  };
}

async function openAsk(
  links: Links,
  local: Aid,
  remote: Aid,
  ask: AccessAsk,
  signal?: AbortSignal,
): Promise<LinkStream> {
  const asked = requestText(ask.asked, MAX_ASKED_BYTES);
  const request = encodeAsk({ ...ask, asked, note: requestText(ask.note, MAX_ACCESS_NOTE_BYTES) });
  const options = { timeoutMs: OPEN_TIMEOUT_MS, first: { bytes: () => request }, ...(signal ? { signal } : {}) };
  const link = await links.open(local, remote, 'ask', options);
  return link.on('error', () => {});
}

async function verdictOf(link: LinkStream, waitS: number, clock: Clock, signal?: AbortSignal): Promise<Verdict> {
  using limit = awakeTimeout(clock, MESSAGE_TIMEOUT_MS + waitS * 1000, signal);
  try {
    const verdict = decodeVerdict(await readFrame(link, MAX_ASK_BYTES, limit.signal));
    if (verdict === null) throw new SvcError('protocol_error');
    link.end();
    drainAndDestroy(link, clock);
    return verdict;
  } catch (error) {
    link.destroy();
    throw error;
  }
}
