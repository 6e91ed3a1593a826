/** Which congestion control new TCP connections of this network namespace use. */
import { readFileSync, writeFileSync } from 'node:fs';

const SETTING = '/proc/sys/net/ipv4/tcp_congestion_control';

/** What the machine uses where nothing else is said. */
export function standardCongestionControl(): string {
  return readFileSync(SETTING, 'utf8').trim();
}

/** Without root the kernel offers only what its administrator allows, which is Reno at least. */
export function useCongestionControl(name: string): void {
  writeFileSync(SETTING, name);
}
