/** The words of several helpers on where a node is, where random ports of its host are to be written to. */
import type { Clock, Timer } from '../../foundation/clock.ts';
import { OTHER_HELPERS_MS } from './reachable-helpers.ts';

/**
 * Waits for what helpers say: for all of them or, from the first word on, as long as for one that is dialled, so that a
 * silent one holds up nobody.
 * @param words true for each that has said something; none rejects
 */
export async function hearWitnesses(words: readonly Promise<boolean>[], clock: Clock): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  let timer: Timer | undefined;
  const all = words.map(async (word) => {
    if (await word) timer ??= clock.after(OTHER_HELPERS_MS, resolve);
  });
  try {
    await Promise.race([late, Promise.all(all)]);
  } finally {
    timer?.cancel();
  }
}
