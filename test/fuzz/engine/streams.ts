/** Streams of a stranger's bytes, for protocols that are fed instead of called. */
import type { Duplex } from 'node:stream';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { localPair } from '../../../src/network/links/local.ts';
import { asLink } from '../../../src/network/links/stream.ts';
import type { LinkStream, Links, Purpose } from '../../../src/network/links/types.ts';
import { plainPath } from '../../../src/network/path.ts';
import { idle } from '../../support/idle.ts';
import { Random } from '../../support/random.ts';

/** Signals that never come. */
export const NEVER: AbortSignal = new AbortController().signal;

/** Pieces that an input is cut into at most. */
const MAX_PIECES = 6;

/** The input in pieces of any size; the same input is cut at the same places. */
export function cutUp(input: Uint8Array): Uint8Array[] {
  const random = new Random(input.length + 256 * (input[0] ?? 0) + (input.at(-1) ?? 0));
  const cuts = Array.from({ length: random.below(MAX_PIECES) }, () => random.below(input.length + 1)).sort(
    (a, b) => a - b,
  );
  return [...cuts, input.length].map((end, i) => input.subarray(cuts[i - 1] ?? 0, end));
}

export interface Names {
  readonly caller: Aid;
  readonly called: Aid;
}

/** A stranger's end of a link, and the end that the code under test gets. */
export function linkPair(names: Names, purpose: Purpose, nodeKey = new Uint8Array(32)): readonly [Duplex, LinkStream] {
  const [near, far] = localPair();
  near.on('error', () => {});
  far.on('error', () => {});
  const path = () => ({ ...plainPath('direct', { host: '198.51.100.7', port: 4122 }), rttMs: 1 });
  return [near, asLink(far, { ...names, purpose, accessToken: undefined, nodeKey }, path)];
}

/** Writes an input in pieces and ends the stranger's half. */
export function pour(input: Uint8Array, stream: Duplex): void {
  for (const piece of cutUp(input)) if (!stream.destroyed) stream.write(piece);
  if (!stream.destroyed) stream.end();
}

/** What comes back on a stranger's end, as far as it says something about what became of the input. */
export function listen(stream: Duplex): () => Buffer {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks);
}

/** Links on which only strangers call: nobody is reached from here. */
export class StrangersOnly implements Links {
  readonly #handlers = new Map<Purpose, (link: LinkStream) => void>();

  accept(purpose: Purpose, handler: (link: LinkStream) => void): void {
    this.#handlers.set(purpose, handler);
  }

  async open(): Promise<LinkStream> {
    throw new SvcError('connect_failed');
  }

  reset(): void {}

  /** A stranger's end of a new link. */
  dial(purpose: Purpose, names: Names): Duplex {
    const [near, link] = linkPair(names, purpose);
    this.#handlers.get(purpose)?.(link);
    return near;
  }

  /**
   * Calls with an input and lets it do what it does.
   * @returns what was answered
   */
  async call(purpose: Purpose, names: Names, input: Uint8Array): Promise<Buffer> {
    const near = this.dial(purpose, names);
    const answer = listen(near);
    pour(input, near);
    await idle();
    near.destroy();
    await idle();
    return answer();
  }
}
