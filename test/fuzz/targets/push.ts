/** Notifications from other nodes for webhooks of local programs. */
import { decodeNotification, encodeNotification, isHeaderList } from '../../../src/capabilities/push/wire.ts';
import { MAX_NOTIFICATION_BYTES } from '../../../src/foundation/domain/push.ts';
import { editCbor } from '../engine/cbor.ts';
import { decoder, violation } from '../engine/properties.ts';
import type { FuzzTarget } from '../engine/target.ts';

const NAMES = { webhook: '0123456789abcdef', id: '00112233445566778899aabbccddeeff' };

const notification = decoder({
  name: 'push-notification',
  inputs: 4000,
  edit: editCbor,
  seeds: () => [
    encodeNotification({ ...NAMES, headers: [], body: new Uint8Array() }),
    encodeNotification({
      ...NAMES,
      headers: ['Content-Type', 'application/json', 'X-A2A-Notification-Token', 'secret'],
      body: Buffer.from('{"kind":"task"}'),
    }),
  ],
  decode: decodeNotification,
  encode: encodeNotification,
  canonical: true,
  check: ({ webhook, id, headers, body }, bytes) => {
    if (!/^[0-9a-f]{16}$/.test(webhook) || !/^[0-9a-f]{32}$/.test(id)) throw violation('an invalid id', bytes);
    if (body.length > MAX_NOTIFICATION_BYTES || !isHeaderList(headers))
      throw violation('a value over its limit', bytes);
    if (headers.some((text) => /[\r\n\0]/.test(text))) throw violation('a header with a line break', bytes);
  },
});

export const pushTargets: readonly FuzzTarget[] = [notification];
