/** Event streams, as a client decodes them from a daemon or from another program at its port. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { followEvents } from '../../../src/operations/event-client.ts';
import { bytesOf, refusal, shapeOf } from '../engine/properties.ts';
import { splitInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';

/** Maximum number of events from one stream. */
const MAX_EVENTS = 50;

const stream: FuzzTarget = {
  name: 'event-stream',
  inputs: 250,
  maxBytes: 4096,
  edit: () => null,
  words: [
    'event: ',
    'data: ',
    'id: ',
    'retry: ',
    '\n\n',
    '\r\n',
    '\r',
    ':',
    '\ufeff',
    '\u0000',
    '{"a":1}',
    '99999999999999999999',
    '__proto__',
  ],
  prepare: async () => {
    let answer: Uint8Array = new Uint8Array();
    const server = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const piece of splitInput(answer)) response.write(piece);
      response.end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    return {
      seeds: bytesOf(
        'event: pending\ndata: {"mailbox":1}\n\nid: 7\nevent: chat.invites\ndata: {"count":1}\n\n',
        ': alive\n\nid: 8\ndata: {"a":\ndata: 1}\n\nretry: 5\n\n',
      ),
      run: async (input) => {
        answer = input;
        const over = new AbortController();
        const options = { signal: over.signal, onBroken: () => over.abort() };
        const received: unknown[] = [];
        try {
          for await (const event of followEvents({ baseUrl: `http://127.0.0.1:${port}` }, options)) {
            received.push(event);
            if (received.length >= MAX_EVENTS) break;
          }
          return shapeOf(received);
        } catch (error) {
          return `${shapeOf(received)} ${refusal(error, ['cancelled', 'protocol_error', 'invalid_json', 'daemon_unreachable'])}`;
        }
      },
      close: () => {
        server.closeAllConnections();
        server.close();
      },
    };
  },
};

export const eventTargets: readonly FuzzTarget[] = [stream];
