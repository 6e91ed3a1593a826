/** Handlers of the file offer operations. */
import type { FileOffers, OfferReceiver } from '../../capabilities/file-offers/file-offers.ts';
import type { FileOffer, OfferSource } from '../../capabilities/file-offers/types.ts';
import { headersOf } from '../../capabilities/objects/object-response.ts';
import { type RemoteObject, verifiedFile } from '../../capabilities/objects/remote-objects.ts';
import { type Clock, isoTime } from '../../foundation/clock.ts';
import { OBJECT_ID_BYTES } from '../../foundation/domain/objects.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import type { fileOfferOperations, fileOfferStreams } from '../file-offers.ts';
import type { Handlers } from '../operation.ts';
import type { StreamExchange, StreamHandlers } from './exchange.ts';
import { sendBody, sendJson, uploadOf } from './objects.ts';
import { afterAnswer } from './values.ts';

export interface FileOfferHandlerDependencies {
  readonly offers: FileOffers;
  readonly taker: OfferReceiver<RemoteObject>;
}

/** A file offer as it is returned to clients. */
export function fileOfferView(offer: FileOffer, taker: Pick<OfferReceiver<RemoteObject>, 'received'>) {
  return {
    id: offer.id,
    direction: offer.direction,
    peer: offer.peer,
    object_id: offer.objectId ?? undefined,
    name: offer.name,
    size: offer.size,
    message: offer.message === '' ? undefined : offer.message,
    state: offer.state,
    at: isoTime(offer.at),
    expires_at: isoTime(offer.expiresAt),
    received_bytes: taker.received(offer) ?? undefined,
    sent_bytes: offer.sentBytes ?? undefined,
    hashed_bytes: offer.hashedBytes ?? undefined,
    problem: offer.problem ?? undefined,
  };
}

export function fileOfferHandlers(dependencies: FileOfferHandlerDependencies): Handlers<typeof fileOfferOperations> {
  const { offers, taker } = dependencies;
  const view = (offer: FileOffer) => fileOfferView(offer, taker);
  return {
    fileOffer: async ({ aid, recipient, name, message, temporary = false, ...rest }, context) => {
      context.requireToken();
      const request = { recipient, source: sourceOf(rest), name, message, temporary };
      const { offer, delivered, settle } = await offers.offer(aid, request);
      afterAnswer(context, settle);
      return { id: offer.id, delivered };
    },
    fileOfferList: ({ aid, direction, all = false }) => ({ offers: offers.list(aid, direction, !all).map(view) }),
    fileOfferGet: ({ aid, id }) => view(offers.get(aid, id)),
    fileOfferAccept: async ({ aid, id }, context) => {
      context.requireToken();
      return { path: await taker.accept(aid, id, context.signal) };
    },
    fileOfferTaken: ({ aid, id }, context) => {
      context.requireToken();
      return view(offers.taken(aid, id));
    },
    fileOfferDecline: ({ aid, id }) => view(offers.decline(aid, id)),
    fileOfferWithdraw: ({ aid, id }) => view(offers.withdraw(aid, id)),
  };
}

/** @throws SvcError `invalid_request` */
function sourceOf(file: { readonly object_id?: string; readonly path?: string; readonly size?: number }): OfferSource {
  const { object_id: objectId, path, size } = file;
  if ([objectId, path, size].filter((one) => one !== undefined).length !== 1)
    throw new SvcError('invalid_request', {
      message: 'Send exactly one of object_id, path and size.',
      details: { in: 'body', path: '/object_id' },
    });
  if (objectId !== undefined) return { objectId };
  return path === undefined ? { size: size ?? 0 } : { path };
}

// Streams: the bytes of an offered file, and their hashes.

export interface FileOfferStreamDependencies extends FileOfferHandlerDependencies {
  readonly clock: Clock;
}

function offerIn(input: StreamExchange['input']): readonly [Aid, string] {
  return [parseAid(String(input['aid'])), String(input['id'])];
}

async function upload({ request, response, input, context }: StreamExchange, parts: FileOfferStreamDependencies) {
  const { offers, taker, clock } = parts;
  context.requireToken();
  const offer = await offers.upload(...offerIn(input), uploadOf(request, clock));
  sendJson(response, fileOfferView(offer, taker));
}

async function content({ request, response, input, context }: StreamExchange, taker: OfferReceiver<RemoteObject>) {
  context.requireToken();
  const [aid, id] = offerIn(input);
  const file = await taker.read(aid, id, request.headers.range, context.signal);
  const hashes = taker.hashes(aid, id, context.signal);
  response.once('close', () => {
    file.body.destroy();
    hashes.close();
  });
  response.writeHead(file.status, headersOf(file, id));
  if (file.status === 416) {
    file.body.resume();
    response.end();
  } else await sendBody(file.status === 200 ? verifiedFile(file.body, hashes, hashes.size) : file.body, response);
}

async function hashes({ response, input, context }: StreamExchange, taker: OfferReceiver<RemoteObject>) {
  context.requireToken();
  const from = Number(input['from'] ?? 0);
  const { at, close, count } = taker.hashes(...offerIn(input), context.signal);
  response.once('close', close);
  if (from >= count)
    throw new SvcError('invalid_request', {
      message: `The file has ${count} hashes.`,
      details: { in: 'query', path: '/from' },
    });
  const first = await at(from);
  const headers = { 'content-type': 'application/octet-stream', 'content-length': (count - from) * OBJECT_ID_BYTES };
  response.writeHead(200, headers).write(first);
  for (let index = from + 1; index < count && !response.destroyed; index++) response.write(await at(index));
  response.end();
}

export function fileOfferStreamHandlers(parts: FileOfferStreamDependencies): StreamHandlers<typeof fileOfferStreams> {
  return {
    fileOfferUpload: (exchange) => upload(exchange, parts),
    fileOfferContent: (exchange) => content(exchange, parts.taker),
    fileOfferHashes: (exchange) => hashes(exchange, parts.taker),
  };
}
