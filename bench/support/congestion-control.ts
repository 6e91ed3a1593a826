/** Congestion control of new TCP connections in this network namespace. */
import { readFileSync, writeFileSync } from 'node:fs';

const SETTING = '/proc/sys/net/ipv4/tcp_congestion_control';

/** The default of the machine. */
export function standardCongestionControl(): string {
  return readFileSync(SETTING, 'utf8').trim();
}

/** Without root, the kernel offers only the algorithms that its administrator permits, at least Reno. */
export function useCongestionControl(name: string): void {
  writeFileSync(SETTING, name);
}
