/** A daemon with fixed responses, to test requests and output of `svc`. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { DaemonProver, isProofRequest } from '../../src/surfaces/daemon-prover.ts';

/** The response to a request line such as `GET /status`. */
export type Answering = (line: string, body: unknown, headers: IncomingHttpHeaders) => Answer | Promise<Answer>;
type Answer = readonly [status: number, body: unknown];

export class AnsweringDaemon {
  readonly api: string;
  /** Received requests: method and path. */
  readonly asked: string[];

  private constructor(port: number, asked: string[]) {
    this.api = `http://127.0.0.1:${port}`;
    this.asked = asked;
  }

  /** @param token with which it proves its identity */
  static async start(t: TestContext, answering: Answering, token = ''): Promise<AnsweringDaemon> {
    const asked: string[] = [];
    const prover = new DaemonProver({ key: randomBytes(32), token: () => token });
    const server = createServer((request, response) => {
      if (isProofRequest(request)) return prover.answer(request, response, (_request, isRight) => void isRight());
      const line = `${request.method} ${request.url}`;
      asked.push(line);
      void text(request).then(async (sent) => {
        const [status, body] = await answering(line, sent === '' ? undefined : JSON.parse(sent), request.headers);
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.after(() => (server.closeAllConnections(), server.close()));
    return new AnsweringDaemon((server.address() as AddressInfo).port, asked);
  }
}
