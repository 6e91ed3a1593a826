/**
 * Links for bulk data. Both sides exchange an offer and an answer over an open link, which then has no other use, and
 * continue on a new stream between the same agents. docs/protocol-tunnels.md, steps 13 to 15.
 */
import { SvcError } from '../../foundation/errors.ts';
import { readExactly } from '../peers/wire.ts';
import type { Path } from '../transport/path.ts';
import type { BulkStream, BulkStreams } from '../transport/types.ts';
import { asLink } from './stream.ts';
import type { LinkStream } from './types.ts';

/** The path of a link to another node. Null for a link on this daemon. */
function pathOf(link: LinkStream): Path | null {
  const { kind, remote, source } = link.path();
  return kind === 'local' || remote === null || source === null ? null : { kind, remote, source };
}

/** @throws SvcError `connect_failed` if the proof of the first link was replaced meanwhile */
function bulkLink(stream: BulkStream, first: LinkStream, path: Path): LinkStream {
  const { caller, called, purpose, accessToken, nodeKey } = first;
  // protocol-links.md, step 14
  first.coverByProof?.(stream);
  if (stream.destroyed) throw new SvcError('connect_failed', { message: 'The lane was closed as it opened.' });
  const names = { caller, called, purpose, accessToken, nodeKey };
  return asLink(stream, names, () => ({ ...path, isSlowForBulk: false, isUpgraded: false, rttMs: stream.rtt() }));
}

/**
 * Requests a link for bulk data from the other side of a link.
 * @throws SvcError `connect_failed` if none is possible, `protocol_error`, or the signal's reason
 */
export async function askForBulkLink(link: LinkStream, streams: BulkStreams, signal: AbortSignal): Promise<LinkStream> {
  const path = pathOf(link);
  const offered = path === null ? null : streams.offer(path);
  if (path === null || offered === null)
    throw new SvcError('connect_failed', { message: 'There is no room for another lane.' });
  try {
    link.write(offered.offer);
    const answer = await readExactly(link, streams.answerBytes, signal);
    return bulkLink(await offered.answered(answer, signal), link, path);
  } catch (error) {
    offered.cancel();
    throw error;
  }
}

/**
 * Answers a request for a link for bulk data. Null if none is possible.
 * @throws SvcError as `askForBulkLink`
 */
export async function answerForBulkLink(
  link: LinkStream,
  streams: BulkStreams,
  signal: AbortSignal,
): Promise<LinkStream | null> {
  const offer = await readExactly(link, streams.offerBytes, signal);
  const path = pathOf(link);
  const taken = path === null ? null : streams.take(offer, path, signal);
  link.write(taken?.answer ?? new Uint8Array(streams.answerBytes));
  return path === null || taken === null ? null : bulkLink(await taken.stream, link, path);
}
