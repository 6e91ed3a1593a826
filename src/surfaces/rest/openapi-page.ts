/** `GET /openapi.json`. */
import type { HttpStreamHandler } from '../../operations/handlers/exchange.ts';
import { JSON_TYPE } from './answer.ts';
import type { Document } from './openapi.ts';

/** Serves a document that is made at the first request for it. */
export function openApiHandler(make: () => Document): HttpStreamHandler {
  let text: string | undefined;
  return ({ response }) => {
    text ??= JSON.stringify(make());
    response.writeHead(200, { 'content-type': JSON_TYPE, 'content-length': Buffer.byteLength(text) }).end(text);
  };
}
