/** Limits on concurrent calls per caller, node, source and network, and in total. */
import { SvcError } from '../../foundation/errors.ts';
import { Quota, type QuotaShare } from '../../foundation/quota.ts';

/**
 * Concurrent requests of one calling agent to one called agent. Connections that switched protocols count separately.
 */
export const MAX_CALLS_PER_CALLER = 64;
/** Concurrent requests of all agents of one node. */
export const MAX_CALLS_PER_NODE = 512;
/** Concurrent requests of strangers on one IPv4 address or IPv6 /64. */
export const MAX_CALLS_PER_SOURCE = 1024;
/** Concurrent requests of strangers in one IPv4 /24 or IPv6 /48. */
export const MAX_CALLS_PER_NETWORK = 1536;
/** Concurrent requests that this daemon forwards. */
export const MAX_CALLS = 4096;
/** Part of `MAX_CALLS` that is reserved for callers allowed by name. */
export const RESERVED_CALLS = 1024;
/** `Retry-After` for a rejected caller, in seconds. */
const BUSY_RETRY_S = 1;

export function callQuota(): Quota {
  return new Quota({
    perKey: MAX_CALLS_PER_CALLER,
    perNode: MAX_CALLS_PER_NODE,
    perSource: MAX_CALLS_PER_SOURCE,
    perNetwork: MAX_CALLS_PER_NETWORK,
    total: MAX_CALLS,
    reserved: RESERVED_CALLS,
  });
}

// Limits on open event streams. An event stream may be silent for a day and uses memory and a connection to the
// service. Its limits are separate, so that idle streams do not block calls.

/** Concurrent event streams to all agents of one node. */
export const MAX_EVENT_STREAMS_PER_NODE = 1024;
/** Concurrent event streams to strangers on one IPv4 address or IPv6 /64. */
export const MAX_EVENT_STREAMS_PER_SOURCE = 1536;
/** Concurrent event streams that this daemon forwards. */
export const MAX_EVENT_STREAMS = 2048;

export function eventStreamQuota(): Quota {
  return new Quota({
    perNode: MAX_EVENT_STREAMS_PER_NODE,
    perSource: MAX_EVENT_STREAMS_PER_SOURCE,
    total: MAX_EVENT_STREAMS,
  });
}

/**
 * Takes a slot, to be released by the caller.
 * @throws SvcError `rate_limited`
 */
export function takeSlot(slot: QuotaShare, what: 'calls' | 'event streams' = 'calls'): QuotaShare {
  if (slot.set(1)) return slot;
  throw new SvcError('rate_limited', {
    message: `Too many concurrent ${what}. Try again in a second.`,
    details: { retry_after_s: BUSY_RETRY_S },
  });
}
