/** Whom a stranger's haste is held against. */
import type { Duplex } from 'node:stream';
import type { Clock } from '../../foundation/clock.ts';
import { shareOf } from './shared-quota.ts';
import type { LinkStream } from './types.ts';

/** Milliseconds that the other side has to end its half of a stream that is done with. */
const LET_GO_MS = 5000;

/** Whose share a link uses up, as `shareOf`; null for an agent on the same daemon too. */
export function sourceOfLink(link: Pick<LinkStream, 'path'>): string | null {
  const { source } = link.path();
  return source === null ? null : shareOf(source);
}

/** Lets go of a link whose own half has ended: reads what is left of it, and cuts it off where that does not end. */
export function letGo(link: Duplex, clock: Clock): void {
  if (link.destroyed) return;
  const timer = clock.after(LET_GO_MS, () => link.destroy());
  link.once('close', () => timer.cancel());
  link.resume();
}
