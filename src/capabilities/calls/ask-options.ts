/** Headers with which a request asks the owner of the called agent for access: a note, and how long to wait. */
import { MAX_DECISION_WAIT_S } from '../../foundation/domain/access.ts';
import type { AskOptions } from '../../network/links/types.ts';

/** The header with a note to the owner, UTF-8. Services do not receive it. */
export const NOTE_HEADER = 'svc-access-note';

/** The wait of a `Prefer` header (RFC 7240), seconds; 0 if it has none. */
function waitOf(prefer: string): number {
  const seconds = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i.exec(prefer)?.[1];
  return Math.min(Number(seconds ?? 0), MAX_DECISION_WAIT_S);
}

/** @param header returns the value of a header, or undefined */
export function askOptions(header: (name: string) => string | string[] | undefined): AskOptions {
  const text = (name: string): string => [header(name) ?? ''].flat().join(', ');
  return { waitS: waitOf(text('prefer')), note: Buffer.from(text(NOTE_HEADER), 'latin1').toString('utf8') };
}
