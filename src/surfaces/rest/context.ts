import type { ServerResponse } from 'node:http';
import type { AnswerBytes, CallContext } from '../../operations/operation.ts';
import type { AdmittedRequest } from './gate.ts';
import { InlinedBytes } from './inlined-bytes.ts';

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

  /** @param carriesBytes the response is written by `routes.ts` and may include bytes */
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

  onAnswered(settled: (arrived: boolean) => void): void {
    let told = false;
    const tell = (arrived: boolean): void => {
      if (!told) settled(arrived);
      told = true;
    };
    if (this.#response.closed) return tell(this.#response.writableFinished);
    this.#response.once('finish', () => tell(true)).once('close', () => tell(false));
  }

  showVersion(etag: string): void {
    this.#response.setHeader('etag', etag);
  }

  setStatus(status: number): void {
    this.status = status;
  }
}
