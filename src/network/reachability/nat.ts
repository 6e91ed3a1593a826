/** What stands between a port of ours and the Internet, from what others see of it. */
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { NatMapping } from '../../foundation/domain/directory.ts';

export interface SeenPort {
  readonly mapping: NatMapping;
  /** Where others see it; null where nobody said, or each sees it elsewhere. */
  readonly address: Address | null;
}

/**
 * What several hosts that see one port make of it. One of them alone cannot tell a cone from a symmetric translation.
 * @param seen what each of them said, at most one word of each host; null for silence
 * @param isOwn true for an address that the port has without any translation
 */
export function mappingOf(seen: readonly (Address | null)[], isOwn: (address: Address) => boolean): SeenPort {
  const words = seen.filter((address) => address !== null);
  const [first = null] = words;
  if (first === null) return { mapping: 'unknown', address: null };
  if (words.some((address) => formatAddress(address) !== formatAddress(first)))
    return { mapping: 'symmetric', address: null };
  if (words.length < 2) return { mapping: 'unknown', address: first };
  return { mapping: isOwn(first) ? 'open' : 'cone', address: first };
}

/** True where others reach a port of ours at the address that third ones see. */
export function keepsPort(mapping: NatMapping): boolean {
  return mapping !== 'symmetric';
}

/** NAT types of endpoint records. */
export const NAT_TYPE = { reachable: 1, portRestricted: 3, symmetric: 4 } as const;

/**
 * The NAT type that an endpoint record names, from what the record network has found out and what was seen of a port of
 * ours. Both look by themselves, at other times: that of the port, which is looked at again and again, goes first.
 * @param ofRecords 0 unknown, 1 public or full cone, 2 restricted, 3 port-restricted, 4 symmetric
 * @param isRefuted true where others reach the record network at our host, and our QUIC port they do not
 */
export function natTypeOf(mapping: NatMapping, ofRecords: number, isRefuted: boolean = false): number {
  const natType = isRefuted && ofRecords === NAT_TYPE.reachable ? NAT_TYPE.portRestricted : ofRecords;
  if (natType === NAT_TYPE.reachable || mapping === 'unknown') return natType;
  if (mapping === 'symmetric') return NAT_TYPE.symmetric;
  return natType === 0 || natType === NAT_TYPE.symmetric ? NAT_TYPE.portRestricted : natType;
}
