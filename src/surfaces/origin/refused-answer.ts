/**
 * Whether a server did not take what it was told. HTTP says so by its status, JSON-RPC in an answer with status 200, which
 * may be long, or a stream of events: it is looked at while it goes by.
 */
import { createParser } from 'eventsource-parser';
import { headerOf, isEventStream, isJsonType } from '../../capabilities/calls/headers.ts';
import type { CallAnswer } from '../../capabilities/calls/http-caller.ts';
import { isObject, readJson } from '../../foundation/json.ts';

/** Longest error that is looked at, bytes, and characters of an event: a longer answer is a result. */
const MAX_REFUSAL_BYTES: number = 64 * 1024;

/** True for an answer of JSON-RPC that is an error. */
export function isErrorAnswer(text: string): boolean {
  const answer = readJson(text);
  return isObject(answer) && answer['error'] !== undefined && answer['result'] === undefined;
}

/**
 * Calls `refused` where an answer turns out to be an error, which for a stream its first event says; it goes by as it is.
 * Whoever hands it on has to resume it.
 */
export function whenRefused({ status, headers, body }: CallAnswer, refused: () => void): void {
  if (status >= 400) return refused();
  const type = headerOf(headers, 'content-type');
  const isStream = isEventStream(type);
  if (!isStream && !isJsonType(type)) return;
  const decoder = new TextDecoder();
  let text = '';
  let isDecided = false;
  const leave = (): void => {
    body.off('data', take).off('end', ended);
  };
  const decide = (answer: string): void => {
    leave();
    if (!isDecided && isErrorAnswer(answer)) refused();
    isDecided = true;
  };
  const ended = (): void => decide(text);
  const parser = createParser({
    maxBufferSize: MAX_REFUSAL_BYTES,
    onEvent: ({ data }) => decide(data),
    onError: leave,
  });
  const take = (chunk: Buffer): void => {
    const part = decoder.decode(chunk, { stream: true });
    if (isStream) return parser.feed(part);
    text += part;
    if (text.length > MAX_REFUSAL_BYTES) leave();
  };
  // Before anybody else reads it, so that no chunk is missed.
  body.pause().on('data', take).once('end', ended);
}
