import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeNotification, encodeNotification } from '../../../src/capabilities/push/wire.ts';

/** A notification from another node with this header, as it is read here. */
function read(name: string, value = 'x') {
  const headers = ['Content-Type', 'application/json', name, value];
  const body = new Uint8Array(2);
  const names = { webhook: '0123456789abcdef', id: '00112233445566778899aabbccddeeff' };
  return decodeNotification(encodeNotification({ ...names, headers, body }));
}

test('descriptive headers of a notification are forwarded', () => {
  for (const name of ['Authorization', 'X-A2A-Notification-Token', 'A2A-Version', 'traceparent', 'Content-Encoding'])
    assert.deepEqual(read(name)?.headers, ['Content-Type', 'application/json', name, 'x']);
});

test('a notification cannot smuggle a second request or impersonate this node or a browser', () => {
  const framing = [
    'Content-Length',
    'transfer-encoding',
    'Transfer_Encoding',
    'Connection',
    'TE',
    'Trailer',
    'Upgrade',
    'Expect',
  ];
  const output = [
    'Host',
    'Svc-Caller-Aid',
    'svc_caller_aid',
    'X-Forwarded-For',
    'Forwarded',
    'X-Real-IP',
    'Proxy',
    'Via',
  ];
  const acting = ['Cookie', 'Origin', 'Referer', 'Sec-Fetch-Site', 'X-HTTP-Method-Override', 'X-Method-Override'];
  for (const name of [...framing, ...output, ...acting]) assert.equal(read(name), null, name);
});
