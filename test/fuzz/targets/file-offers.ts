/** The contents of notes about files. */
import {
  decodeEndNotice,
  decodeOffer,
  encodeEndNotice,
  encodeOffer,
} from '../../../src/capabilities/file-offers/wire.ts';
import { MAX_OFFER_MESSAGE_CHARS, MAX_OFFERED_BYTES } from '../../../src/foundation/domain/file-offers.ts';
import { MAX_FILE_NAME_BYTES } from '../../../src/foundation/domain/objects.ts';
import { editCbor } from '../engine/cbor.ts';
import { decoder, violation } from '../engine/properties.ts';
import type { FuzzTarget } from '../engine/target.ts';

const ID = '0123456789abcdef';
const OBJECT_ID = 'e3'.repeat(32);

const offer = decoder({
  name: 'file-offer',
  inputs: 5000,
  edit: editCbor,
  seeds: () => [
    encodeOffer({ id: ID, objectId: OBJECT_ID, size: 0, name: 'plan.pdf', message: '' }),
    encodeOffer({ id: ID, objectId: null, size: 5_000_000, name: 'film.mp4', message: '' }),
    encodeOffer({
      id: ID,
      objectId: OBJECT_ID,
      size: 3_000_000_000,
      name: '../Pläne\u202efdp.exe',
      message: 'as promised',
    }),
  ],
  decode: decodeOffer,
  encode: encodeOffer,
  check: ({ id, objectId, size, name, message }, bytes) => {
    if (!/^[0-9a-f]{16}$/.test(id) || (objectId !== null && !/^[0-9a-f]{64}$/.test(objectId)))
      throw violation('an invalid id', bytes);
    if (!Number.isSafeInteger(size) || size < 0 || size > MAX_OFFERED_BYTES) throw violation('an invalid size', bytes);
    if (Buffer.byteLength(name) > MAX_FILE_NAME_BYTES || message.length > MAX_OFFER_MESSAGE_CHARS)
      throw violation('a text over its limit', bytes);
  },
});

const news = decoder({
  name: 'file-news',
  inputs: 2000,
  edit: editCbor,
  seeds: () => (['taken', 'declined', 'withdrawn'] as const).map((end) => encodeEndNotice({ id: ID, end })),
  decode: decodeEndNotice,
  encode: encodeEndNotice,
  canonical: true,
});

export const fileOfferTargets: readonly FuzzTarget[] = [offer, news];
