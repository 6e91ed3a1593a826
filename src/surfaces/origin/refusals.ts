/**
 * Detects whether a server rejected a request. HTTP has a status for that. JSON-RPC has status 200, possibly with a
 * long response or an event stream, which is inspected while it passes.
 */
import { createParser } from 'eventsource-parser';
import { headerOf, isEventStream, isJsonType } from '../../capabilities/calls/headers.ts';
import type { CallResponse } from '../../capabilities/calls/http-caller.ts';
import { isObject, readJson } from '../../foundation/json.ts';

/** Longest error, bytes, or characters of an event. A longer response is a result. */
const MAX_REFUSAL_BYTES: number = 64 * 1024;

/** True for a JSON-RPC error response. */
export function isErrorAnswer(text: string): boolean {
  const answer = readJson(text);
  return isObject(answer) && answer['error'] !== undefined && answer['result'] === undefined;
}

/**
 * Calls `refused` if a response is an error; for a stream its first event decides. The response passes unchanged, and
 * its consumer must resume it.
 */
export function onRefused({ status, headers, body }: CallResponse, refused: () => void): void {
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
  // Attached before any other reader, so that no chunk is missed.
  body.pause().on('data', take).once('end', ended);
}
