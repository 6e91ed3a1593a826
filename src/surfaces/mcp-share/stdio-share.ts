/**
 * Serves a wrapped stdio server as Streamable HTTP: one process per session in the older revisions, one per caller in
 * the newer. Callers never share a process.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  classifyInboundRequest,
  isInitializeRequest,
  PROTOCOL_VERSION_META_KEY,
  UnsupportedProtocolVersionError,
} from '@modelcontextprotocol/server';
import { decodedHeader } from '../../capabilities/calls/tool-limit.ts';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { Quota, type QuotaShare } from '../../foundation/quota.ts';
import { MODERN_REVISIONS } from '../mcp/stdio-transport.ts';
import { sendWebResponse, webRequest } from '../mcp/web-exchange.ts';
import type { Backend, SharedRequest } from './backend.ts';
import { CallerProcess } from './caller-process.ts';
import type { ToolRules } from './gate.ts';
import {
  Backlog,
  MAX_PROCESSES_PER_CALLER,
  MAX_SHARED_PROCESSES,
  MAX_SHARED_REQUESTS,
  SHARED_IDLE_MS,
} from './limits.ts';
import {
  fromCaller,
  idOf,
  isRequest,
  isResponse,
  metaOf,
  RPC,
  type RpcId,
  type RpcMessage,
  readMessage,
  rpcError,
  rpcParamsOf,
  sendMessage,
  sendRejection,
} from './messages.ts';
import type { ServerCommand } from './server-process.ts';
import { Session } from './session.ts';

// One HTTP request of the revisions since 2026-07-28: validates it, and sends the response as JSON or as an event
// stream.

/** The parameter that the name header must match, by method. */
const NAMED: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
};

/** HTTP status for an error response, if it is not 200. */
const STATUS_OF: ReadonlyMap<number, number> = new Map([
  [RPC.unknownMethod, 404],
  [RPC.headerMismatch, 400],
  [RPC.missingCapability, 400],
  [RPC.unsupportedVersion, 400],
]);

function header({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value.trim() : undefined;
}

/** Type of a message according to its headers and body. */
type MessageKind =
  | { readonly kind: 'legacy' | 'modern' }
  | { readonly kind: 'refused'; readonly status: number; readonly answer: RpcMessage };

function mismatch(id: RpcId | undefined, name: string): MessageKind {
  const text = `The header ${name} does not match the body.`;
  return { kind: 'refused', status: 400, answer: rpcError(id ?? null, RPC.headerMismatch, text) };
}

/**
 * Distinguishes requests of the older and newer revisions. Rejects requests with headers that do not match the body.
 */
function kindOf(request: IncomingMessage, message: RpcMessage): MessageKind {
  const [version, method, name] = ['mcp-protocol-version', 'mcp-method', 'mcp-name'].map((one) => header(request, one));
  const outcome = classifyInboundRequest({
    httpMethod: request.method ?? 'POST',
    ...(version === undefined ? {} : { protocolVersionHeader: version }),
    ...(method === undefined ? {} : { mcpMethodHeader: method }),
    ...(name === undefined ? {} : { mcpNameHeader: name }),
    body: message,
  });
  const id = idOf(message);
  if (outcome.kind === 'legacy') return { kind: 'legacy' };
  if (outcome.kind === 'reject') {
    const { httpStatus: status, code, message: text, data } = outcome;
    return { kind: 'refused', status, answer: rpcError(id ?? null, code, text, data) };
  }
  if (id === undefined) return { kind: 'modern' };
  const requested = metaOf(message)[PROTOCOL_VERSION_META_KEY];
  // On stdio the SDK only checks the revision of the first request.
  if (typeof requested === 'string' && !MODERN_REVISIONS.includes(requested)) {
    const {
      code,
      message: text,
      data,
    } = new UnsupportedProtocolVersionError({ supported: MODERN_REVISIONS, requested });
    return { kind: 'refused', status: 400, answer: rpcError(id, code, text, data) };
  }
  if (version === undefined) return mismatch(id, 'MCP-Protocol-Version');
  if (method !== message['method']) return mismatch(id, 'Mcp-Method');
  const member = NAMED[String(message['method'])];
  const named = member === undefined ? undefined : rpcParamsOf(message)[member];
  if (typeof named === 'string' && (name === undefined || decodedHeader(name) !== named))
    return mismatch(id, 'Mcp-Name');
  return { kind: 'modern' };
}

/** Sends a message about a request: one JSON text if the response comes first, otherwise an event stream. */
function sendModern(response: ServerResponse, message: RpcMessage): void {
  if (response.destroyed || response.writableEnded) return;
  const { error } = message;
  if (isResponse(message) && !response.headersSent) {
    const code = typeof error === 'object' && error !== null ? Number(Reflect.get(error, 'code')) : 0;
    return sendMessage(response, STATUS_OF.get(code) ?? 200, message);
  }
  if (!response.headersSent)
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform' });
  response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
  if (isResponse(message)) response.end();
}

export interface StdioShareParts {
  readonly command: ServerCommand;
  /** False if the server only supports revisions with sessions. */
  readonly isModern: boolean;
  readonly rules: ToolRules;
  readonly clock: Clock;
}

/** Why no process was started. */
interface Rejection {
  readonly status: number;
  readonly code: number;
  readonly why: string;
}

const TOO_MANY: Rejection = {
  status: 503,
  code: RPC.busy,
  why: 'Too many sessions of this server are open. End some of them first.',
};
/** Only the owner sees the reason, on the terminal. */
const CANNOT_START: Rejection = { status: 502, code: RPC.serverGone, why: 'Cannot start the MCP server.' };

/** A running process with its user. */
interface HeldProcess {
  readonly caller: string;
  readonly keeper: Session | CallerProcess;
  readonly share: QuotaShare;
  /** Open requests and streams of clients. */
  open: number;
  idle: Timer | null;
}

/** Receives the process to which a message was sent. */
type OnSent = (to: HeldProcess['keeper']) => void;

function sessionIdOf({ headers }: IncomingMessage): string | undefined {
  const id = headers['mcp-session-id'];
  return typeof id === 'string' ? id : undefined;
}

export class StdioShare implements Backend {
  readonly #parts: StdioShareParts;
  readonly #backlog = new Backlog();
  readonly #processes = new Quota({ perNode: MAX_PROCESSES_PER_CALLER, total: MAX_SHARED_PROCESSES });
  readonly #held = new Set<HeldProcess>();
  readonly #sessions = new Map<string, HeldProcess>();
  readonly #callers = new Map<string, Promise<HeldProcess | Rejection>>();
  #closed = false;

  constructor(parts: StdioShareParts) {
    this.#parts = parts;
  }

  /** Number of running processes. */
  get processes(): number {
    return this.#held.size;
  }

  async serve(shared: SharedRequest): Promise<void> {
    if (shared.request.method !== 'POST') return this.#serveSession(shared);
    const read = await readMessage(shared, this.#backlog);
    if (read === null) return;
    const { message, release } = read;
    let isHandedOver = false;
    const delivered = (to: HeldProcess['keeper']): void => {
      isHandedOver = true;
      detach(to.read.then(release));
    };
    try {
      await this.#serveMessage(shared, message, delivered);
    } finally {
      if (!isHandedOver) release();
    }
  }

  async #serveMessage(shared: SharedRequest, message: RpcMessage, handedOver: OnSent): Promise<void> {
    const { request, response } = shared;
    const refusal = this.#parts.rules.refusal(shared.caller, message, request);
    if (refusal !== null) return sendMessage(response, 200, refusal);
    const kind = this.#parts.isModern ? kindOf(request, message) : { kind: 'legacy' as const };
    if (kind.kind === 'refused') return sendMessage(response, kind.status, kind.answer);
    if (kind.kind === 'legacy') return await this.#serveSession(shared, message, handedOver);
    return await this.#serveModern(shared, message, handedOver);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#held].map(({ keeper }) => keeper.end()));
  }

  async #serveSession(shared: SharedRequest, message?: RpcMessage, handedOver?: OnSent): Promise<void> {
    const { request, response, caller, signal } = shared;
    const id = sessionIdOf(request);
    const begins = message !== undefined && isInitializeRequest(message);
    const held = begins ? await this.#begin(caller) : this.#sessions.get(id ?? '');
    if (held !== undefined && 'why' in held) return this.#refuse(shared, message, held);
    // A caller must not learn that a session of another caller exists.
    if (held === undefined || held.caller !== caller || !(held.keeper instanceof Session)) {
      if (id === undefined)
        return sendRejection(response, 400, RPC.serverGone, 'Bad Request: Mcp-Session-Id header is required');
      return sendRejection(response, 404, RPC.sessionUnknown, 'Session not found');
    }
    if (message !== undefined && this.#isBusy(shared, message, held.keeper.waiting)) return;
    const release = this.#use(held);
    try {
      const web = webRequest({ request });
      const answer = await held.keeper.serve(web, message);
      handedOver?.(held.keeper);
      await sendWebResponse(answer, response, { signal });
    } finally {
      release();
    }
  }

  async #begin(caller: string): Promise<HeldProcess | Rejection> {
    const { command, rules } = this.#parts;
    const held = await this.#hold(caller, () =>
      Session.start(command, { caller, rules, onEnd: (gone) => this.#forget(gone) }),
    );
    if ('keeper' in held && held.keeper instanceof Session) this.#sessions.set(held.keeper.id, held);
    return held;
  }

  /** The process of a caller. Its first request starts it. */
  #ofCaller(caller: string): Promise<HeldProcess | Rejection> {
    const known = this.#callers.get(caller);
    if (known !== undefined) return known;
    const { command } = this.#parts;
    const held = this.#hold(caller, () => CallerProcess.start(command, caller, (gone) => this.#forget(gone)));
    this.#callers.set(caller, held);
    detach(held.then((one) => ('why' in one ? this.#callers.delete(caller) : undefined)));
    return held;
  }

  async #serveModern(shared: SharedRequest, message: RpcMessage, handedOver: OnSent): Promise<void> {
    const { response, caller, signal } = shared;
    const held = await this.#ofCaller(caller);
    if ('why' in held) return this.#refuse(shared, message, held);
    const { keeper } = held;
    if (!(keeper instanceof CallerProcess) || this.#isBusy(shared, message, keeper.waiting)) return;
    const sent = fromCaller(message, caller);
    if (!isRequest(sent)) {
      keeper.tell(sent);
      handedOver(keeper);
      return void response.writeHead(202).end();
    }
    const release = this.#use(held);
    const giveUp = keeper.ask({
      request: sent,
      take: (answered) => sendModern(response, this.#parts.rules.shown(caller, answered)),
    });
    handedOver(keeper);
    const gone = (): void => {
      giveUp();
      release();
    };
    if (signal.aborted) gone();
    else response.once('close', gone);
  }

  /** Starts a process if the quota allows it. This may stop a process of the caller with the most processes. */
  async #hold(caller: string, start: () => Promise<HeldProcess['keeper']>): Promise<HeldProcess | Rejection> {
    if (this.#closed) return TOO_MANY;
    let keeper: HeldProcess['keeper'] | null = null;
    const onEvict = (): void => {
      if (keeper !== null) detach(keeper.end());
    };
    const holder = { node: caller, source: caller, named: false };
    if (this.#processes.fullLevel(holder) === 'total') this.#endIdle();
    const share = this.#processes.take(holder, { onEvict });
    if (share === null) return TOO_MANY;
    try {
      keeper = await start();
      const held: HeldProcess = { caller, keeper, share, open: 0, idle: null };
      this.#held.add(held);
      return held;
    } catch {
      share.release();
      return CANNOT_START;
    }
  }

  /** Stops the process that has been idle longest, if there is one. Those with a pending request come last. */
  #endIdle(): void {
    const unused = [...this.#held].filter(({ open }) => open === 0);
    const idle = unused.find(({ keeper }) => keeper.waiting === 0) ?? unused[0];
    if (idle === undefined) return;
    idle.share.release();
    detach(idle.keeper.end());
  }

  #refuse({ response }: SharedRequest, message: RpcMessage | undefined, { status, code, why }: Rejection): void {
    const id = message === undefined ? undefined : idOf(message);
    sendMessage(response, status, rpcError(id ?? null, code, why));
  }

  #isBusy({ response }: SharedRequest, message: RpcMessage, waiting: number): boolean {
    if (!isRequest(message) || waiting < MAX_SHARED_REQUESTS) return false;
    const text = `${MAX_SHARED_REQUESTS} requests are pending. Try again after some have a response.`;
    sendMessage(response, 429, rpcError(idOf(message) ?? null, RPC.busy, text));
    return true;
  }

  /** Marks a process as in use. The returned function releases it. */
  #use(held: HeldProcess): () => void {
    held.open++;
    held.idle?.cancel();
    held.idle = null;
    let used = true;
    return () => {
      if (!used) return;
      used = false;
      held.open--;
      held.share.touch();
      // Move it to the end: the most recently used process is stopped last.
      if (this.#held.delete(held)) this.#held.add(held);
      if (held.open === 0 && this.#held.has(held)) this.#planEnd(held);
    };
  }

  /** Stops an idle process. A request whose client has lost its stream may still get its response. */
  #planEnd(held: HeldProcess): void {
    held.idle = this.#parts.clock.after(SHARED_IDLE_MS, () => {
      if (held.keeper.waiting > 0) this.#planEnd(held);
      else detach(held.keeper.end());
    });
  }

  #forget(gone: HeldProcess['keeper']): void {
    for (const held of this.#held) {
      if (held.keeper !== gone) continue;
      held.idle?.cancel();
      held.share.release();
      this.#held.delete(held);
      if (gone instanceof Session) this.#sessions.delete(gone.id);
      else this.#callers.delete(held.caller);
    }
  }
}
