/** The way out of this network, as the API shows it. */
import { formatAddress } from '../foundation/address.ts';
import type { Exit } from '../foundation/domain/exit.ts';
import type { UdpFallbackStatus } from '../network/reachability/udp-fallback.ts';

export function exitOf({ state, trouble, helper, proxy, hasSpare, isInspected, error }: UdpFallbackStatus): Exit {
  return {
    state,
    trouble,
    helper: helper === null ? null : formatAddress(helper.address),
    proxy,
    has_spare: hasSpare,
    is_inspected: isInspected,
    error,
  };
}
