/** The kinds of NAT in words. */
import { type Key, t } from './i18n.ts';

const KINDS: readonly Key[] = ['nat.0', 'nat.1', 'nat.2', 'nat.3', 'nat.4'];

/** @param natType 0 to 4, as in endpoint records */
export function natText(natType: number): string {
  return t(KINDS[natType] ?? 'nat.0');
}
