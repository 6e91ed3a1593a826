/** `GET /openapi.json`. */
import * as pages from '../../operations/pages.ts';
import type { BoundStream } from '../../operations/stream.ts';
import { JSON_TYPE } from './answer.ts';
import type { Document } from './openapi.ts';

/** Serves a document that is made at the first request for it. */
export function openApiStream(make: () => Document): BoundStream {
  let text: string | undefined;
  return {
    declaration: pages.openApi,
    handle({ response }) {
      text ??= JSON.stringify(make());
      response.writeHead(200, { 'content-type': JSON_TYPE, 'content-length': Buffer.byteLength(text) }).end(text);
    },
  };
}
