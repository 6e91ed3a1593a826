/** Identifiers that people paste from messages. Imports nothing, so that a page and a short command load it cheaply. */

/** Characters without a width, and control characters except the blanks. */
const INVISIBLE = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;
/** Quotes and brackets around a word in a message. Square brackets belong to IPv6 addresses. */
const OPENING = /^[\s"'`“”„‘’‚«»‹›「『<(*]+/u;
/** The same at the end, with the punctuation of the sentence. */
const CLOSING = /[\s"'`“”‘’«»‹›」』>).,;:!?…*]+$/u;

/** Longest pasted text that is cleaned, characters. A longer one is returned unchanged, and its reader rejects it. */
const MAX_PASTED_CHARS = 4096;

/** A pasted word without invisible characters, quotes and the punctuation of the sentence around it. Blanks inside stay. */
export function cleanPasted(text: string): string {
  if (text.length > MAX_PASTED_CHARS) return text;
  return text.replaceAll(INVISIBLE, '').replace(OPENING, '').replace(CLOSING, '');
}

/** A pasted identifier that contains no blanks: also without the line breaks that a mail program adds. */
export function cleanPastedId(text: string): string {
  return text.length > MAX_PASTED_CHARS ? text : cleanPasted(text).replaceAll(/[ \t]*[\r\n]\s*/g, '');
}

/** A word that names what follows, as in "AID: aid1…". */
const CAPTION = /^(?:aid|agent(?: id)?)\s*[:=]\s*/i;
/** Marks of a text format, which an AID cannot contain. */
const MARKS = /^[[\]_~|]+|[[\]_~|]+$/g;

/**
 * A pasted AID: also without a caption, the marks of a text format, and the form of a link, `svc://<aid>/`. The path of a
 * link stays, because it names more than the agent.
 */
export function cleanPastedAid(text: string): string {
  const unmarked = (word: string): string => cleanPastedId(cleanPastedId(word).replaceAll(MARKS, ''));
  return unmarked(unmarked(unmarked(text).replace(CAPTION, '')).replace(/^svc:\/\/([^/]*)\/*$/i, '$1'));
}
