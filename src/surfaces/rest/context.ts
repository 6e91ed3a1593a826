import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { base64Length, writeBase64 } from '../../foundation/base64.ts';
import { allocateTransferable } from '../../foundation/collected-bytes.ts';
import { type TraceHeaders, traceHeadersIn } from '../../foundation/traces/trace-context.ts';
import type { AnswerBytes, CallContext } from '../../operations/operation.ts';
import type { AdmittedRequest } from './gate.ts';

// Bytes that a response carries as base64, written directly into the response. As separate JavaScript strings, they
// would stay in the heap until a garbage collection, which may not happen in an idle daemon.

/** Random bytes of the placeholder. Data from the remote side must not contain it. */
const MARK_BYTES = 16;

export class InlinedBytes {
  /** The placeholder in the response. */
  readonly mark: string = randomBytes(MARK_BYTES).toString('hex');
  readonly #bytes: AnswerBytes;

  constructor(bytes: AnswerBytes) {
    this.#bytes = bytes;
  }

  /** Replaces the placeholder, which must occur once in the JSON text, with the bytes and frees them. */
  into(json: string): Buffer<ArrayBuffer> {
    const [before = '', after = ''] = json.split(this.mark);
    const bytes = this.#bytes.bytes();
    const head = Buffer.byteLength(before);
    const answer = allocateTransferable(head + base64Length(bytes.length) + Buffer.byteLength(after));
    answer.write(before);
    answer.write(after, writeBase64(answer, head, bytes));
    this.#bytes.free();
    return answer;
  }
}

/** Results of the gate. */
type Admission = Pick<AdmittedRequest, 'origin' | 'requireToken' | 'trySecret'> &
  Partial<Pick<AdmittedRequest, 'session' | 'fromPage'>>;

/** The context of one request. The signal is created only when a handler uses it. */
export class RestContext implements CallContext {
  readonly origin: CallContext['origin'];
  /** @throws SvcError `unauthorized`, `rate_limited` if an API token is set and the request does not carry it */
  readonly requireToken: () => void;
  readonly session: string | null;
  readonly fromPage: boolean;
  readonly ifMatch?: string;
  readonly trySecret?: (isRight: () => boolean) => void;
  /** Called for each tool that the request calls. */
  readonly onTool: (tool: string) => void;
  /** The status that the handler set, if any. */
  status: number | undefined;
  /** Bytes to write into the response, if any. */
  inlined: InlinedBytes | undefined;
  readonly inline?: (bytes: AnswerBytes) => string;
  readonly #response: ServerResponse;
  #controller: AbortController | undefined;

  /** @param carriesBytes the response is written by `router.ts` and may include bytes */
  constructor(
    { origin, requireToken, session = null, fromPage = false, trySecret }: Admission,
    response: ServerResponse,
    onTool: (tool: string) => void = () => {},
    carriesBytes = false,
  ) {
    this.origin = origin;
    this.requireToken = requireToken;
    this.session = session;
    this.fromPage = fromPage;
    if (trySecret !== undefined) this.trySecret = trySecret;
    const { 'if-match': ifMatch } = response.req.headers;
    if (ifMatch !== undefined) this.ifMatch = ifMatch;
    this.#response = response;
    this.onTool = onTool;
    if (carriesBytes)
      this.inline = (bytes) => {
        this.inlined = new InlinedBytes(bytes);
        return this.inlined.mark;
      };
  }

  /** Aborts if the connection closes before the response is complete. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      const abortIfOpen = (): void => {
        if (!this.#response.writableFinished) controller.abort();
      };
      if (this.#response.closed) abortIfOpen();
      else this.#response.once('close', abortIfOpen);
    }
    return this.#controller.signal;
  }

  get trace(): TraceHeaders | undefined {
    return traceHeadersIn(this.#response.req.headers);
  }

  onAnswered(settled: (arrived: boolean) => void): void {
    let isSettled = false;
    const settle = (arrived: boolean): void => {
      if (!isSettled) settled(arrived);
      isSettled = true;
    };
    if (this.#response.closed) return settle(this.#response.writableFinished);
    // A client that has closed its connection reads no response, although the system still takes the bytes.
    const { socket } = this.#response.req;
    this.#response.once('finish', () => settle(!socket.readableEnded)).once('close', () => settle(false));
  }

  showVersion(etag: string): void {
    this.#response.setHeader('etag', etag);
  }

  setStatus(status: number): void {
    this.status = status;
  }
}
