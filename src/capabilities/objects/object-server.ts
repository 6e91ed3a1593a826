/**
 * Serves objects and offered files to other agents: accepts links of purpose `object` and responds to `GET` and `HEAD`.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Timer } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { SilenceWatch } from '../../foundation/stall.ts';
import {
  ERROR_HEADER,
  type IsNamed,
  LinkPlaces,
  linkHttpServer,
  NEXT_REQUEST_MS,
} from '../../network/links/http-server.ts';
import {
  type AccessRequest,
  accessRequestOf,
  askAgain,
  type CallerNotes,
  type LinkStream,
  type Links,
} from '../../network/links/types.ts';
import { sendObject } from './object-response.ts';
import { ReaderLimits } from './reader-limits.ts';
import type { OfferedPart, OpenedObject } from './types.ts';

/** Limit of open object links of one node. */
const MAX_LINKS_PER_NODE = 128;
/** Limits of request headers: bytes and count. */
const MAX_HEADER_BYTES = 8 * 1024;
const MAX_HEADER_COUNT = 64;
/** A reader that accepts no bytes for this time is disconnected, milliseconds. */
export const READ_STALL_MS = 60_000;
/** Error codes that are reported to callers, in addition to a missing object. */
const REPORTED_CODES: ReadonlySet<string> = new Set(['access_denied', 'rate_limited', 'timeout']);

/** The target of a request: an object, or a part of an offered file. */
export type ObjectTarget =
  | { readonly kind: 'object'; readonly id: string }
  | { readonly kind: 'offer'; readonly id: string; readonly part: OfferedPart };

export interface ObjectServerDependencies extends NodeParts {
  readonly links: Links;
  readonly objects: { open(aid: Aid, objectId: string): Promise<OpenedObject> };
  readonly offered: { open(aid: Aid, offerId: string, part: OfferedPart): Promise<OpenedObject> };
  /**
   * @param target the requested bytes, or null when a link opens
   * @throws SvcError `access_denied`, `rate_limited`
   */
  readonly authorize: (request: AccessRequest, target: ObjectTarget | null) => void | Promise<void>;
  /** Returns a callback for the progress of reading an offered file. */
  readonly reading?: (request: AccessRequest, offerId: string) => (bytes: number) => void;
  readonly isNamed: IsNamed;
  /** Records served and refused callers. */
  readonly callers: CallerNotes;
}

interface Connection {
  readonly link: LinkStream;
  /** Runs while no request is active. */
  timer: Timer;
  /** The target of the active request. */
  target: ObjectTarget | null;
}

export class ObjectServer implements Component {
  readonly #deps: ObjectServerDependencies;
  readonly #log: Log;
  readonly #server: Server;
  readonly #limits: ReaderLimits;
  readonly #connections = new Map<Duplex, Connection>();
  readonly #links: LinkPlaces;
  #stopped = false;

  constructor(dependencies: ObjectServerDependencies) {
    this.#deps = dependencies;
    this.#log = dependencies.log.child('objects');
    this.#limits = new ReaderLimits(dependencies);
    this.#links = new LinkPlaces(MAX_LINKS_PER_NODE, dependencies.isNamed);
    this.#server = linkHttpServer({
      maxHeaderBytes: MAX_HEADER_BYTES,
      maxHeaderCount: MAX_HEADER_COUNT,
      isNamed: dependencies.isNamed,
      serve: (request, response) => detach(this.#serve(request, response)),
    });
    this.#server.on('upgrade', (_request, stream) => stream.destroy());
    this.#server.on('clientError', (_error, stream) => stream.destroy());
  }

  /** Accepts links. Call it before the endpoint starts. */
  async start(): Promise<void> {
    this.#deps.links.accept('object', (link) => this.#accept(link));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const stream of this.#connections.keys()) stream.destroy();
  }

  /** Checks access again for all readers of an agent's objects, and disconnects readers that are now refused. */
  async recheck(called: Aid): Promise<void> {
    const connections = this.#connections.values().filter(({ link }) => link.called === called);
    const authorize = (request: AccessRequest, { target }: Connection) => this.#deps.authorize(request, target);
    await askAgain(connections, authorize, ({ link }) => link.destroy());
  }

  #accept(link: LinkStream): void {
    if (this.#stopped || !this.#links.enter(link)) return void link.destroy();
    this.#connections.set(link, { link, timer: this.#idle(link), target: null });
    link.once('close', () => {
      this.#connections.get(link)?.timer.cancel();
      this.#connections.delete(link);
    });
    this.#server.emit('connection', link);
  }

  #idle(link: LinkStream): Timer {
    return this.#deps.clock.after(NEXT_REQUEST_MS, () => link.destroy());
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const connection = this.#connections.get(request.socket);
    if (connection === undefined) return void response.destroy();
    const { link } = connection;
    const stall = new SilenceWatch(this.#deps.clock, READ_STALL_MS, () => link.destroy());
    connection.timer.cancel();
    response.once('close', () => {
      stall.stop();
      connection.target = null;
      if (!link.destroyed) connection.timer = this.#idle(link);
    });
    let leave = (): void => {};
    try {
      const target = targetOf(request);
      connection.target = target;
      await this.#deps.authorize(accessRequestOf(link), target);
      leave = this.#limits.enter(link, () => link.destroy());
      this.#deps.callers.entered(accessRequestOf(link));
      const object = await this.#open(link.called, target);
      const isFile = target.kind === 'offer' && target.part === 'file';
      // Within one daemon, the reader receives the written buffer itself.
      const reading = isFile ? this.#deps.reading?.(accessRequestOf(link), target.id) : undefined;
      const moved = (bytes: number): void => {
        stall.heard();
        reading?.(bytes);
      };
      await sendObject(request, response, object, { moved, copies: link.release !== undefined });
    } catch (error) {
      this.#refuse(link, request, response, error);
    } finally {
      leave();
    }
  }

  #open(called: Aid, target: ObjectTarget): Promise<OpenedObject> {
    const { objects, offered } = this.#deps;
    return target.kind === 'object' ? objects.open(called, target.id) : offered.open(called, target.id, target.part);
  }

  #refuse(link: LinkStream, request: IncomingMessage, response: ServerResponse, cause: unknown): void {
    const { caller, called } = link;
    const error = cause instanceof SvcError ? cause : new SvcError('internal', { cause });
    this.#deps.callers.refused(accessRequestOf(link), error.code);
    if (error.code === 'internal') this.#log.error({ caller, called, err: cause }, 'an object could not be sent');
    if (response.headersSent || response.destroyed) return void response.destroy();
    const retryAfter = error.details?.['retry_after_s'];
    const headers = {
      'content-length': '0',
      ...(REPORTED_CODES.has(error.code) ? { [ERROR_HEADER]: error.code } : {}),
      ...(typeof retryAfter === 'number' ? { 'retry-after': String(retryAfter) } : {}),
      // A request body, or data after a malformed request, is not read.
      ...(request.complete ? {} : { connection: 'close' }),
    };
    response.writeHead(error.status, headers).end();
  }
}

const TARGET = /^\/(?:cas\/([0-9a-f]{64})|offers\/([0-9a-f]{16})(\/hashes)?)$/;

/** @throws SvcError `not_found`, `method_not_allowed` */
function targetOf({ method, url = '' }: IncomingMessage): ObjectTarget {
  // protocol-notes.md, step 15
  const [, objectId, offerId, hashes] = TARGET.exec(url) ?? [];
  if (objectId === undefined && offerId === undefined) throw new SvcError('not_found');
  if (method !== 'GET' && method !== 'HEAD') throw new SvcError('method_not_allowed');
  if (objectId !== undefined) return { kind: 'object', id: objectId };
  return { kind: 'offer', id: offerId ?? '', part: hashes === undefined ? 'file' : 'hashes' };
}
