/** Loads `udx-native`, whose native part is missing on rare systems. */
import type Udx from 'udx-native';
import { codeOf, SvcError } from '../../foundation/errors.ts';

type UdxClass = typeof Udx;

async function load(): Promise<UdxClass | SvcError> {
  try {
    return (await import('udx-native')).default;
  } catch (cause) {
    const system = `${process.platform}-${process.arch}`;
    const why = codeOf(cause, cause instanceof Error ? cause.name : 'unknown failure');
    const message = `The native part of udx-native for ${system} cannot be loaded (${why}). Install svcd again on a system that udx-native supports, then restart it. Until then, no other node can be reached.`;
    return new SvcError('connect_failed', { message, cause });
  }
}

const found = await load();

/** The missing package and the remedy, or null. */
export const missingUdx: string | null = found instanceof SvcError ? found.message : null;

/** @throws SvcError `connect_failed` if the package cannot be loaded */
export function createUdx(): Udx {
  if (found instanceof SvcError) throw found;
  return new found();
}
