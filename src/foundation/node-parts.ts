/** What almost every part of a node uses. */
import type { Clock } from './clock.ts';
import type { Log } from './log.ts';

export interface NodeParts {
  readonly clock: Clock;
  readonly log: Log;
}

/** For parts that spread their work at random. */
export interface RandomParts extends NodeParts {
  /** A number from 0 up to but not including 1. */
  readonly random: () => number;
}
