/** A small picture of an AID, to distinguish agents with the same name. */
export { SHOWN_AID_CHARS, shortAid } from '../../../src/foundation/labels.ts';

export interface Bar {
  /** Half the height, 1 to 5. */
  readonly reach: number;
  /** One of four colors. */
  readonly hue: number;
}

const BARS = 6;
const REACHES = 5;
const HUES = 4;

/** Six bars from a hash (FNV-1a) of the text. */
export function barsOf(aid: string): readonly Bar[] {
  let hash = 0x811c9dc5;
  for (let i = 0; i < aid.length; i++) hash = Math.imul(hash ^ aid.charCodeAt(i), 0x01000193) >>> 0;
  return Array.from({ length: BARS }, () => {
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0;
    hash = (hash ^ (hash >>> 13)) >>> 0;
    return { reach: 1 + (hash % REACHES), hue: (hash >>> 8) % HUES };
  });
}
