/**
 * The first byte of every reply, whatever the kind of stream: docs/protocol-links.md, "Status".
 * Texts never travel: what a user reads about a refusal is written here.
 */
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';

export const STATUS = {
  ok: 0,
  /** The caller names an agent that it has not proven on this connection, or not lately enough. */
  proofNeeded: 1,
  /** The called agent is not on this node. */
  notHere: 2,
  accessDenied: 3,
  rateLimited: 4,
  noInbound: 5,
  /** Nobody here takes streams of this purpose or kind. */
  unknownPurpose: 6,
  malformed: 7,
  /** The called side failed at its own work. */
  failed: 8,
  tooLarge: 9,
  otherVersion: 10,
  otherNetwork: 11,
  /** The proof does not verify, has expired, or a newer delegation of this agent is known. */
  badProof: 12,
  /** The bound service of the called agent takes calls, and no tunnels. */
  callsOnly: 13,
  /** By the clock of the node that refuses, the proof is not valid yet or has expired. */
  clockWrong: 14,
} as const;

export type ReplyStatus = (typeof STATUS)[keyof typeof STATUS];

interface Meaning {
  readonly code: ErrorCode;
  /** Left out where the catalogue says it well enough. */
  readonly message?: string;
}

const MEANING: Readonly<Record<Exclude<ReplyStatus, 0>, Meaning>> = {
  [STATUS.proofNeeded]: {
    code: 'protocol_error',
    message: 'The other node asks again for a proof that it was given.',
  },
  [STATUS.notHere]: { code: 'resolve_failed', message: 'The agent is no longer on the node that its record names.' },
  [STATUS.accessDenied]: { code: 'access_denied' },
  [STATUS.rateLimited]: { code: 'rate_limited', message: 'The other node limits us. Wait a little, then try again.' },
  [STATUS.noInbound]: { code: 'no_inbound' },
  [STATUS.callsOnly]: { code: 'calls_only' },
  [STATUS.unknownPurpose]: {
    code: 'protocol_error',
    message: 'The other node does not know what we ask for. It may run an older svcd.',
  },
  [STATUS.malformed]: { code: 'protocol_error', message: 'The other node did not understand us.' },
  [STATUS.failed]: { code: 'protocol_error', message: 'The other node failed while it answered.' },
  [STATUS.tooLarge]: { code: 'too_large' },
  [STATUS.otherVersion]: {
    code: 'protocol_error',
    message: 'The other node speaks another version of the link protocol. Update the older of the two.',
  },
  [STATUS.otherNetwork]: { code: 'connect_failed', message: 'The other node belongs to another network.' },
  [STATUS.badProof]: {
    code: 'access_denied',
    message: "The other node does not accept this agent's proof: its delegation has expired or was replaced.",
  },
  [STATUS.clockWrong]: {
    code: 'clock_wrong',
    message:
      'By the other node\'s clock, the delegation of this agent is not valid now; by the clock of this machine it is. One of the two clocks is wrong: "svc doctor" compares this machine\'s with others.',
  },
};

/** Statuses that an error thrown on the called side becomes; what is not listed is `failed`. */
const OF_ERROR: Partial<Record<ErrorCode, ReplyStatus>> = {
  access_denied: STATUS.accessDenied,
  rate_limited: STATUS.rateLimited,
  no_inbound: STATUS.noInbound,
  calls_only: STATUS.callsOnly,
  too_large: STATUS.tooLarge,
  bad_delegation: STATUS.badProof,
  clock_wrong: STATUS.clockWrong,
};

/** A refusal by its status: thrown on the called side to send it, on the calling side as it came. */
export class Refusal extends SvcError {
  /** One of `STATUS`, or what a newer version sends. */
  readonly refusal: number;

  /** @param said left out: what the status means to any caller */
  constructor(status: number, said?: string) {
    const meaning = isRefusal(status) ? MEANING[status] : undefined;
    const message = said ?? meaning?.message;
    super(meaning?.code ?? 'protocol_error', message === undefined ? {} : { message });
    this.refusal = status;
  }
}

function isRefusal(status: number): status is Exclude<ReplyStatus, 0> {
  return status !== STATUS.ok && Object.hasOwn(MEANING, status);
}

/** The other side did what no sound implementation does: it is refused, and this is held against its node. */
export class ProtocolBreach extends SvcError {
  readonly answer: ReplyStatus;

  constructor(message: string, options: { readonly cause?: unknown; readonly answer?: ReplyStatus } = {}) {
    super('protocol_error', { message, cause: options.cause });
    this.answer = options.answer ?? STATUS.malformed;
  }
}

/** The status that tells the other side why we refuse. */
export function statusOf(error: unknown): ReplyStatus {
  if (error instanceof ProtocolBreach) return error.answer;
  if (error instanceof Refusal && isRefusal(error.refusal)) return error.refusal;
  return (error instanceof SvcError ? OF_ERROR[error.code] : undefined) ?? STATUS.failed;
}
