/**
 * The called side of calls. It accepts link streams, speaks HTTP/1.1 on them, checks access for every request, and
 * forwards requests to the bound service of the called agent.
 */

import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { askedCall } from '../../foundation/access-text.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import type { QuotaShare } from '../../foundation/quota.ts';
import { SilenceWatch } from '../../foundation/stall.ts';
import type { Traces } from '../../foundation/traces/traces.ts';
import { pairHolder } from '../../network/links/holder.ts';
import { LinkPlaces, linkHttpServer, NEXT_REQUEST_MS } from '../../network/links/http-server.ts';
import {
  type AccessRequest,
  type Admission,
  accessRequestOf,
  askAgain,
  type CallerNotes,
  type LinkStream,
  type Links,
  type Permissions,
} from '../../network/links/types.ts';
import { lingerThenDestroy } from '../../network/peers/wire.ts';
import { callQuota, eventStreamQuota, takeSlot } from './caller-limits.ts';
import { callerProof, PROOF_HEADER } from './caller-proof.ts';
import { daemonErrorResponse } from './error-response.ts';
import type { EvidenceCheck } from './evidence/evidence-check.ts';
import { CALL_STALL_MS, checkForm, type Forwarding, forward, requestUpgrade } from './forward.ts';
import { identityHeaders, isSteered, MAX_HTTP_HEADER_BYTES, type RawHeaders } from './headers.ts';
import { answerByProgram, type CallPrograms } from './program-answer.ts';
import { answerUpgrade, sendErrorAndClose } from './switch.ts';
import { checkLimited } from './tool-limit.ts';
import { type TracedHop, traceHop } from './trace-headers.ts';
import { maySwitch, protocolsIn } from './upgrades.ts';
import { type BoundService, Upstreams } from './upstream.ts';

/** Link streams for calls that one node may have open, not counting event streams. */
const MAX_STREAMS_PER_NODE = 1024;
/**
 * Abort reason after the response is complete. It is created once, because a stack trace per call would be expensive.
 */
const RESPONSE_COMPLETE = new Error('the response is complete');
/** Listeners for one event on a stream that switched protocols. */
const MAX_LISTENERS = 20;

export interface CallServerDependencies extends NodeParts, Permissions {
  readonly links: Links;
  /** The service bound to a local agent, or null. */
  serviceOf(aid: Aid): BoundService | null;
  /** The key with which the service of a local agent verifies caller proofs. */
  callerKey(aid: Aid): Uint8Array;
  /** Verifies the evidence of calls. */
  readonly evidence: EvidenceCheck;
  /** Observes each new connection to a service. */
  readonly watch: (socket: Socket) => void;
  /**
   * Checks a request as it begins, and returns its limits.
   * @param asked see `askedCall`; empty if the service could see another method or path
   * @throws SvcError as `authorize`
   */
  readonly enter: (request: AccessRequest, asked: () => string) => Promise<Admission>;
  /** Receives the callers that were served or refused. */
  readonly callers: CallerNotes;
  readonly traces: Traces;
}

export class CallServer implements Component {
  readonly #deps: CallServerDependencies;
  readonly #log: Log;
  readonly #server: Server;
  readonly #upstreams: Upstreams;
  readonly #calls = callQuota();
  readonly #eventStreams = eventStreamQuota();
  readonly #connections = new Map<Duplex, CallConnection>();
  readonly #streams: LinkPlaces;
  #programs: CallPrograms = () => null;
  #stopped = false;

  constructor(dependencies: CallServerDependencies) {
    this.#deps = dependencies;
    this.#log = dependencies.log.child('calls');
    this.#streams = new LinkPlaces(MAX_STREAMS_PER_NODE, dependencies.isNamed);
    this.#upstreams = new Upstreams(dependencies.clock, dependencies.watch);
    // Node would silently drop headers over its limit. checkForm rejects such requests instead.
    this.#server = linkHttpServer({
      maxHeaderBytes: MAX_HTTP_HEADER_BYTES,
      maxHeaderCount: 0,
      isNamed: dependencies.isNamed,
      serve: (request, response) => detach(this.#serve(request, response)),
    });
    this.#server.on('upgrade', (request, stream, head) => detach(this.#switch(request, stream, head)));
    this.#server.on('clientError', (error, stream) => this.#malformed(error, stream));
  }

  /** Starts to accept links. Call it before the endpoint starts. */
  async start(): Promise<void> {
    this.#deps.links.accept('http', (link) => this.#accept(link));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const stream of this.#connections.keys()) stream.destroy();
    this.#upstreams.stop();
  }

  /** Sets the programs that answer calls. They have priority over bound services. */
  answerBy(programs: CallPrograms): void {
    this.#programs = programs;
  }

  /** Number of requests in progress, event streams included. */
  get active(): number {
    return this.#calls.used + this.#eventStreams.used;
  }

  /** Repeats the access check for all callers connected to an agent, and disconnects callers that are now denied. */
  async recheck(called: Aid): Promise<void> {
    // protocol-calls.md, step 3
    const connections = this.#connections.values().filter(({ link }) => link.called === called);
    await askAgain(connections, this.#deps.authorize, (connection, error) => connection.abortAll(known(error)));
  }

  /** Disconnects all callers of an agent that was removed. */
  drop(called: Aid): void {
    for (const connection of this.#connections.values())
      if (connection.link.called === called) connection.abortAll(new SvcError('no_inbound'));
  }

  #accept(link: LinkStream): void {
    if (this.#stopped || !this.#enter(link)) return void link.destroy();
    this.#connections.set(link, new CallConnection(link, this.#deps.clock));
    link.once('close', () => this.#connections.delete(link));
    this.#server.emit('connection', link);
  }

  /** The steps of a call: trace, form, permission, slot, evidence, tools, program or service. */
  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const connection = this.#connections.get(request.socket);
    if (connection === undefined) return void response.destroy();
    if (connection.violated) return;
    const { link } = connection;
    const { clock } = this.#deps;
    const abort = new AbortController();
    connection.begin(abort);
    response.once('close', () => {
      // A new error for each call would cost more than the rest of its cleanup.
      if (!response.writableFinished || !request.complete) abort.abort(RESPONSE_COMPLETE);
      connection.end(abort);
      if (!request.complete || connection.violated) lingerThenDestroy(link, clock);
    });
    let slot: Pick<QuotaShare, 'release'> | null = null;
    let end: (() => void) | null = null;

    // Trace.
    const trace = this.#trace(request, link);
    try {
      // Form. protocol-calls.md, step 4
      checkForm(request);

      // Permission.
      const { tools, isServer, begin } = await this.#admit(request, connection);

      // Slot.
      slot = this.#enterCall(connection);

      // Evidence.
      const program = this.#programs(connection.request);
      const service = program === null ? this.#service(link.called) : null;
      const evidence = await this.#evidence(request, link);

      // Tools.
      const limited = tools === null ? null : await checkLimited(request, { tools, isServer }, clock, abort.signal);
      if (begin !== null && limited?.isToolCall !== false) end = begin();
      this.#deps.callers.entered(connection.request);

      // Program or service.
      if (program !== null) {
        trace.request?.next('service');
        return await answerByProgram(program, { request, response, limited, trace, clock, signal: abort.signal });
      }
      if (service === null) return;
      const asStream = (): void => {
        const asCall = slot;
        slot = this.#asStream(connection, abort);
        asCall?.release();
      };
      const parts = this.#forwarding(request, link, service, evidence, trace, abort);
      await forward({ ...parts, limited }, response, connection.stall(), asStream);
    } catch (error) {
      this.#answerError(connection, response, request, trace, error);
    } finally {
      if (trace.request !== null) finishCancelled(trace);
      end?.();
      slot?.release();
    }
  }

  /**
   * Counts a call as an event stream and no longer as a call.
   * @returns the slot
   * @throws SvcError `rate_limited`
   */
  #asStream(connection: CallConnection, abort: AbortController): Pick<QuotaShare, 'release'> {
    const { link } = connection;
    const holder = pairHolder(link, this.#deps.isNamed(link));
    const onEvict = (): void => abort.abort(new SvcError('rate_limited'));
    const slot = takeSlot(this.#eventStreams.share(holder, onEvict), 'event streams');
    this.#streams.leave(link);
    connection.isForwarding = false;
    const release = (): void => {
      slot.release();
      if (!link.destroyed && !this.#enter(link)) lingerThenDestroy(link, this.#deps.clock);
    };
    return { release };
  }

  /**
   * Counts a call. The calls of a link use one slot, one after the other.
   * @throws SvcError `rate_limited`
   */
  #enterCall(connection: CallConnection): QuotaShare {
    const { link, slot } = connection;
    const named = this.#deps.isNamed(link);
    const isFree = slot !== null && slot.named === named && slot.share.amount === 0;
    const onEvict = (): void => connection.abortCalls(new SvcError('rate_limited'));
    const share = isFree ? slot.share : this.#calls.share(pairHolder(link, named), onEvict);
    connection.slot = { named, share };
    return takeSlot(share);
  }

  /** @throws SvcError `access_denied`, `rate_limited` */
  #admit({ method = '', url = '', rawHeaders }: IncomingMessage, { request }: CallConnection): Promise<Admission> {
    // An owner who allowed a call once did not see such headers.
    return this.#deps.enter(request, () => (isSteered(rawHeaders, url) ? '' : askedCall(method, url)));
  }

  /** Counts a stream of a remote node. Returns false if the node has too many streams open. */
  #enter(link: LinkStream): boolean {
    return link.nodeKey === null || this.#streams.enter(link);
  }

  /** Traces a request from the check of its access. */
  #trace(request: IncomingMessage, link: LinkStream): TracedHop {
    const { caller, called } = link;
    const holderOf = () => (link.nodeKey === null ? 'own' : this.#deps.isNamed(link) ? 'named' : 'stranger');
    const { method = 'GET', rawHeaders } = request;
    const trace = traceHop(this.#deps.traces, rawHeaders, { side: 'called', caller, called, method }, holderOf);
    if (trace.request === null) return trace;
    trace.request.path = link.path().kind;
    trace.request.next('access');
    return trace;
  }

  /** The service of a called agent. @throws SvcError `no_inbound`, `tunnels_only` */
  #service(called: Aid): BoundService {
    const service = this.#deps.serviceOf(called);
    if (service === null) throw new SvcError('no_inbound');
    if (!service.acceptsCalls) throw new SvcError('tunnels_only');
    return service;
  }

  /** The headers of the verified evidence of a call. @throws SvcError `bad_evidence` */
  #evidence(request: IncomingMessage, { caller, called }: LinkStream): Promise<RawHeaders> {
    const { method = 'GET', url: target = '/', rawHeaders: headers } = request;
    return this.#deps.evidence.check({ caller, called, method, target, headers });
  }

  #forwarding(
    request: IncomingMessage,
    link: LinkStream,
    service: BoundService,
    evidence: RawHeaders,
    trace: TracedHop,
    abort: AbortController,
  ): Forwarding {
    const { clock } = this.#deps;
    const { caller, called } = link;
    const callerKey = this.#deps.callerKey(called);
    const { method = 'GET', url: target = '/' } = request;
    // protocol-calls.md, step 7
    const proof = callerProof(callerKey, { caller, called, method, target, at: unixSeconds(clock) });
    const identity = [...identityHeaders(caller, called), PROOF_HEADER, proof];
    const of = { owner: caller, called, service, upstreams: this.#upstreams, clock, callerKey };
    return { request, stream: link, ...of, identity, evidence, trace, abort };
  }

  #answerError(
    connection: CallConnection,
    response: ServerResponse,
    request: IncomingMessage,
    trace: TracedHop,
    cause: unknown,
  ): void {
    const error = this.#note(connection, cause);
    if (trace.request !== null) trace.request.status = error.status;
    trace.request?.finish(error);
    if (response.destroyed) return;
    if (response.headersSent) return void response.destroy();
    connection.violated = error.code === 'protocol_error';
    const { status, headers, body } = daemonErrorResponse(error);
    // Close the stream if the request was not read to its end.
    const last = connection.violated || !request.complete;
    // An earlier attempt to pass the response on may have set the service's reason phrase.
    response.writeHead(status, STATUS_CODES[status] ?? '', last ? ['Connection', 'close', ...headers] : headers);
    response.end(body);
  }

  #note({ link, request }: CallConnection, cause: unknown): SvcError {
    const { caller, called } = link;
    const error = known(cause);
    this.#deps.callers.refused(request, error.code);
    const fields = { caller, called, code: error.code, ...error.details };
    if (error.code === 'internal') this.#log.error({ ...fields, error: cause }, 'a call failed');
    else this.#log.debug(fields, 'a call was rejected');
    return error;
  }

  /** After the switch, the caller and the service exchange bytes directly. */
  async #switch(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    stream.on('error', () => stream.destroy());
    // The listeners of the parser, of two feeds and our own exceed Node's default warning threshold.
    stream.setMaxListeners(MAX_LISTENERS);
    // For a request with a body, the upgrade stream differs from `request.socket`.
    const connection = this.#connections.get(request.socket);
    if (connection === undefined) return void stream.destroy();
    const { link } = connection;
    const abort = new AbortController();
    connection.begin(abort);
    stream.once('close', () => abort.abort());
    const trace = this.#trace(request, link);
    stream.once('close', () => finishCancelled(trace));
    try {
      checkForm(request);
      if (!maySwitch(request)) throw new SvcError('protocol_error');
      const { tools, begin } = await this.#admit(request, connection);
      if (tools !== null) throw new SvcError('access_denied');
      if (stream.destroyed) return;
      const onEvict = (): void => abort.abort(new SvcError('rate_limited'));
      const holder = pairHolder(link, this.#deps.isNamed(link), 'switched ');
      const slot = takeSlot(this.#calls.share(holder, onEvict));
      stream.once('close', () => slot.release());
      const service = this.#service(link.called);
      const evidence = await this.#evidence(request, link);
      const forwarding = this.#forwarding(request, link, service, evidence, trace, abort);
      if (stream.destroyed) return;
      if (begin !== null) stream.once('close', begin());
      this.#deps.callers.entered(connection.request);
      const { message, switched } = await requestUpgrade(forwarding, protocolsIn(request.headers.upgrade));
      if (stream.destroyed) return void (switched?.socket ?? message).destroy();
      if (trace.request !== null) trace.request.status = message.statusCode ?? null;
      trace.request?.finish();
      abort.signal.addEventListener('abort', () => stream.destroy(), { once: true });
      answerUpgrade(stream, head, { message, switched }, this.#deps.clock);
    } catch (cause) {
      const error = this.#note(connection, cause);
      trace.request?.finish(error);
      if (!stream.destroyed) sendErrorAndClose(stream, error, this.#deps.clock);
    }
  }

  #malformed(error: Error, stream: Duplex): void {
    const idle = this.#connections.get(stream)?.busy === false;
    if (!idle || !stream.writable || !codeOf(error).startsWith('HPE_')) return void stream.destroy();
    sendErrorAndClose(stream, new SvcError('protocol_error'), this.#deps.clock);
  }
}

/** Ends a traced request that was broken off. */
function finishCancelled({ request }: TracedHop): void {
  if (request?.end === null) request.finish(new SvcError('cancelled'));
}

function known(error: unknown): SvcError {
  return error instanceof SvcError ? error : new SvcError('internal', { cause: error });
}

// One link stream on the called side, during and between its requests.

/** Timeout for the complete head of the first request on a stream, in milliseconds. */
export const FIRST_HEAD_MS = 15_000;

class CallConnection {
  readonly link: LinkStream;
  /** The link as the subject of access checks. */
  readonly request: AccessRequest;
  readonly #clock: Clock;
  readonly #calls = new Set<AbortController>();
  /** Set if the caller's node broke the protocol. The rest of its data is ignored. */
  violated = false;
  /** The slot of its calls, and whether the caller was named when it was taken. */
  slot: { readonly named: boolean; readonly share: QuotaShare } | null = null;
  /** `stall` applies: the service serves a call, and the response is no event stream, which has its own timeout. */
  isForwarding = false;
  #hasServed = false;
  /** Close the link without a request, and abort silent calls. They are not restarted for each request. */
  #idle: SilenceWatch | null;
  #stall: SilenceWatch | null = null;

  constructor(link: LinkStream, clock: Clock) {
    this.link = link;
    this.request = accessRequestOf(link);
    this.#clock = clock;
    this.#idle = new SilenceWatch(clock, FIRST_HEAD_MS, () => link.destroy());
    link.once('close', () => {
      this.#idle?.stop();
      this.#stall?.stop();
      for (const call of this.#calls) call.abort();
    });
  }

  /** True while a request is being served. */
  get busy(): boolean {
    return this.#calls.size > 0;
  }

  /** Registers a request. */
  begin(call: AbortController): void {
    if (!this.#hasServed) this.#idle?.stop();
    this.#calls.add(call);
  }

  /** Unregisters a request. The stream then waits for the next one. */
  end(call: AbortController): void {
    this.#calls.delete(call);
    this.isForwarding = false;
    if (this.#calls.size > 0 || this.link.destroyed) return;
    if (this.#hasServed && this.#idle !== null) return this.#idle.heard();
    this.#hasServed = true;
    this.#idle = new SilenceWatch(this.#clock, NEXT_REQUEST_MS, () => {
      this.#idle = null;
      if (!this.busy) this.link.destroy();
    });
  }

  /** The timeout of a call without a byte in either direction. It begins again. */
  stall(): SilenceWatch {
    this.isForwarding = true;
    this.#stall?.heard();
    this.#stall ??= new SilenceWatch(this.#clock, CALL_STALL_MS, () => {
      this.#stall = null;
      if (this.isForwarding) this.abortCalls(new SvcError('timeout'));
    });
    return this.#stall;
  }

  /** Aborts all requests of the stream. Callers that have no response yet receive the reason. */
  abortCalls(reason: SvcError): void {
    for (const call of this.#calls) call.abort(reason);
  }

  /** The same, or closes an idle stream. */
  abortAll(reason: SvcError): void {
    if (!this.busy) this.link.destroy();
    this.abortCalls(reason);
  }
}
