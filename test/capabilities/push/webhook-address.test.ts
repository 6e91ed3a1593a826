import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLocalIp, localWebhook } from '../../../src/capabilities/push/webhook-address.ts';

test('svcd replaces webhooks on this machine and in its network', () => {
  const own = [
    ...[
      'http://127.0.0.1:3000/hook',
      'https://localhost/hook',
      'http://[::1]:1/',
      'http://0.0.0.0:80/',
      'http://[::]/',
    ],
    ...['http://10.1.2.3/', 'http://192.168.1.9:8080/x?y=z', 'http://[fd00::1]/', 'http://100.64.0.1/'],
    ...[
      'http://laptop.local/',
      'http://laptop/',
      'http://svc.internal/',
      'http://[::ffff:127.0.0.1]/',
      'http://2130706433/',
    ],
  ];
  for (const text of own) assert.equal(localWebhook(text)?.href, new URL(text).href, text);
});

test('public URLs and invalid URLs are unchanged', () => {
  for (const text of ['https://hooks.example.com/x', 'http://203.0.113.7/', 'ftp://127.0.0.1/', 'hook', '', '/hook'])
    assert.equal(localWebhook(text), null, text);
});

test('forbidden addresses are rejected', () => {
  const refused = [
    ...['http://169.254.169.254/latest', 'http://[fe80::1]/', 'http://100.100.100.200/', 'http://[fd00:ec2::254]/'],
    ...['http://224.0.0.1/', 'http://255.255.255.255/', 'http://user@127.0.0.1/', 'http://:pass@localhost/'],
    ...['http://0xA9FEA9FE/', 'http://[::ffff:169.254.169.254]/', `http://127.0.0.1/${'x'.repeat(2048)}`],
  ];
  for (const text of refused) assert.throws(() => localWebhook(text), { code: 'invalid_request' }, text);
});

test('a name may only resolve to this machine and its network', () => {
  for (const ip of ['127.0.0.1', '::1', '10.0.0.1', 'fd12::1', '::ffff:192.168.0.1']) assert.ok(isLocalIp(ip), ip);
  for (const ip of ['169.254.169.254', 'fe80::1', '8.8.8.8', '100.100.100.200', '0.0.0.0', ''])
    assert.ok(!isLocalIp(ip), ip);
});
