/** Streams with input bytes, for protocols that read from streams. */
import type { Duplex } from 'node:stream';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { asLink, localPair } from '../../../src/network/links/stream.ts';
import type { LinkStream, Links, Purpose } from '../../../src/network/links/types.ts';
import { plainPath } from '../../../src/network/transport/path.ts';
import { idle } from '../../support/idle.ts';
import { Random } from '../../support/random.ts';

/** A signal that never aborts. */
export const NEVER: AbortSignal = new AbortController().signal;

/** Maximum number of pieces of an input. */
const MAX_PIECES = 6;

/** Splits the input into pieces of random sizes. The same input is split at the same offsets. */
export function splitInput(input: Uint8Array): Uint8Array[] {
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

/** The remote end of a link, and the end for the code under test. */
export function linkPair(names: Names, purpose: Purpose, nodeKey = new Uint8Array(32)): readonly [Duplex, LinkStream] {
  const [near, far] = localPair();
  near.on('error', () => {});
  far.on('error', () => {});
  const path = () => ({ ...plainPath('direct', { host: '198.51.100.7', port: 4122 }), rttMs: 1 });
  return [near, asLink(far, { ...names, purpose, accessToken: undefined, nodeKey }, path)];
}

/** Writes an input in pieces and ends the writable half. */
export function writeInput(input: Uint8Array, stream: Duplex): void {
  for (const piece of splitInput(input)) if (!stream.destroyed) stream.write(piece);
  if (!stream.destroyed) stream.end();
}

/** Collects the response on a remote end, without parts that do not depend on the input. */
export function collectResponse(stream: Duplex): () => Buffer {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks);
}

/** Links for incoming calls only: outgoing calls fail. */
export class IncomingOnly implements Links {
  readonly #handlers = new Map<Purpose, (link: LinkStream) => void>();

  accept(purpose: Purpose, handler: (link: LinkStream) => void): void {
    this.#handlers.set(purpose, handler);
  }

  async open(): Promise<LinkStream> {
    throw new SvcError('connect_failed');
  }

  reset(): void {}

  /** Opens a new link and returns its remote end. */
  dial(purpose: Purpose, names: Names): Duplex {
    const [near, link] = linkPair(names, purpose);
    this.#handlers.get(purpose)?.(link);
    return near;
  }

  /**
   * Calls with an input and waits for the effects.
   * @returns the response
   */
  async call(purpose: Purpose, names: Names, input: Uint8Array): Promise<Buffer> {
    const near = this.dial(purpose, names);
    const answer = collectResponse(near);
    writeInput(input, near);
    await idle();
    near.destroy();
    await idle();
    return answer();
  }
}
