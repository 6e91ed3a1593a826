/** Handlers of the file offer operations. */
import type { FileOffers, OfferReceiver } from '../../capabilities/file-offers/file-offers.ts';
import type { FileOffer } from '../../capabilities/file-offers/types.ts';
import { headersOf } from '../../capabilities/objects/object-response.ts';
import type { RemoteObject } from '../../capabilities/objects/remote-objects.ts';
import { isoTime } from '../../foundation/clock.ts';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import type { fileOfferOperations, fileOfferStreams } from '../file-offers.ts';
import type { Handlers } from '../operation.ts';
import type { StreamExchange, StreamHandlers } from './exchange.ts';
import { sendBody } from './objects.ts';
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
    object_id: offer.objectId,
    name: offer.name,
    size: offer.size,
    message: offer.message === '' ? undefined : offer.message,
    state: offer.state,
    at: isoTime(offer.at),
    expires_at: isoTime(offer.expiresAt),
    received_bytes: taker.received(offer) ?? undefined,
    sent_bytes: offer.sentBytes ?? undefined,
  };
}

export function fileOfferHandlers(dependencies: FileOfferHandlerDependencies): Handlers<typeof fileOfferOperations> {
  const { offers, taker } = dependencies;
  const view = (offer: FileOffer) => fileOfferView(offer, taker);
  return {
    fileOffer: async ({ aid, recipient, object_id: objectId, name, message, temporary = false }, context) => {
      context.requireToken();
      const request = { recipient, objectId, name, message, temporary };
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

async function content(exchange: StreamExchange, taker: OfferReceiver<RemoteObject>): Promise<void> {
  const { request, response, input, context } = exchange;
  context.requireToken();
  const aid: Aid = parseAid(String(input['aid']));
  const { range } = request.headers;
  const { object, objectId } = await taker.read(aid, String(input['id']), range, context.signal);
  response.once('close', () => object.body.destroy());
  response.writeHead(object.status, headersOf(object, objectId));
  if (object.status === 416) {
    object.body.resume();
    response.end();
  } else await sendBody(object, objectId, response);
}

export function fileOfferStreamHandlers({
  taker,
}: Pick<FileOfferHandlerDependencies, 'taker'>): StreamHandlers<typeof fileOfferStreams> {
  return { fileOfferContent: (exchange) => content(exchange, taker) };
}
