/** How a node would be reached, path by path, in the order of attempts. Pure. */
import { type Address, formatAddress } from '../../foundation/address.ts';
import { isRelayed, type PathKind } from '../../foundation/domain/tunnels.ts';
import { type DialAddress, MAX_ADDRESSES, type NodePlace, STAGGER_MS } from '../../network/peers/dial.ts';
import type { ConnectionView, WayView } from '../../network/peers/peer-table.ts';
import { NOT_DIRECT_TEXT, punchable, type Sides } from './not-direct.ts';

export interface PathAttempt {
  readonly path: PathKind;
  /** Delay from the start of the dial, in milliseconds. It is skipped when all earlier attempts have failed. */
  readonly afterMs: number;
  /** The addresses to dial, or the helpers to ask. */
  readonly to: readonly Address[];
  /** Null if it cannot be known in advance. */
  readonly mayLead: boolean | null;
  readonly note: string;
}

export interface PathFacts {
  readonly place: NodePlace;
  /** As returned by `ConnectionPool.ways`. */
  readonly ways: readonly WayView[];
  readonly sides: Sides;
  /** The current connection to the node. */
  readonly link: Pick<ConnectionView, 'path'> | null;
  readonly relaysAllowed: boolean;
  /** False if no interface of this machine has an IPv6 address beyond loopback. */
  readonly hasIpv6: boolean;
  /** The kind of a path from this node to an address. */
  readonly kindOf: (address: DialAddress) => PathKind;
}

function isIpv6({ host }: Address): boolean {
  return host.includes(':');
}

/** The addresses of the node, one entry for each kind and family. They are dialed with a short delay between them. */
function directAttempts({ delayMs }: WayView, { place, kindOf, hasIpv6 }: PathFacts): PathAttempt[] {
  const dialled = place.addresses
    .slice(0, MAX_ADDRESSES)
    .map((address, i) => ({ address, afterMs: delayMs + i * STAGGER_MS }));
  const groups = Map.groupBy(dialled, ({ address }) => `${kindOf(address)} ${isIpv6(address)}`);
  return [...groups.values()].flatMap((group): PathAttempt[] => {
    const [first] = group;
    if (first === undefined) return [];
    const { address, afterMs } = first;
    const isUnusable = isIpv6(address) && !hasIpv6;
    const to = group.map(({ address: { host, port } }) => ({ host, port }));
    const note = isUnusable ? 'This machine has no IPv6 address.' : 'The addresses of the node, in sequence.';
    return [{ path: kindOf(address), afterMs, to, mayLead: isUnusable ? false : null, note }];
  });
}

function punchedAttempt({ kind, delayMs }: WayView, { place, sides }: PathFacts): PathAttempt {
  const { may, reason } = punchable(sides);
  const text = may === null ? 'The NATs of both nodes are not known yet.' : 'A helper introduces both nodes.';
  const note = reason === null ? text : NOT_DIRECT_TEXT[reason];
  return { path: kind, afterMs: delayMs, to: place.helpers.map(({ address }) => address), mayLead: may, note };
}

function relayedAttempt({ kind, delayMs, mayLead }: WayView, { place, relaysAllowed }: PathFacts): PathAttempt {
  const may = mayLead && relaysAllowed;
  const missing = kind === 'turn' ? 'Neither node has a TURN server.' : 'No relay is known.';
  const reason = relaysAllowed ? missing : 'disable_relay forbids relays.';
  const to = kind === 'relay' ? place.helpers.map(({ address }) => address) : [];
  return {
    path: kind,
    afterMs: delayMs,
    to,
    mayLead: may,
    note: may ? 'A helper forwards encrypted packets until another path works.' : reason,
  };
}

/** Whether the current connection is the result of this attempt, or of an equal one before. */
function isInUse({ path, to }: PathAttempt, { link }: PathFacts): boolean {
  if (link?.path.kind !== path) return false;
  const remote = formatAddress(link.path.remote);
  return path === 'punched' || isRelayed(path) || to.some((address) => formatAddress(address) === remote);
}

export function pathAttempts(facts: PathFacts): readonly PathAttempt[] {
  const attempts = facts.ways.flatMap((way) => {
    if (isRelayed(way.kind)) return [relayedAttempt(way, facts)];
    return way.kind === 'punched' ? [punchedAttempt(way, facts)] : directAttempts(way, facts);
  });
  return attempts.map((attempt) =>
    isInUse(attempt, facts) ? { ...attempt, mayLead: true, note: 'This path is in use.' } : attempt,
  );
}
