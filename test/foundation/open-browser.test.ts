import assert from 'node:assert/strict';
import { test } from 'node:test';
import { browserCommand, openInBrowser } from '../../src/foundation/panel-access.ts';

const URL = 'http://127.0.0.1:2121/';

test('opens a browser on a desktop, with the command of the system', () => {
  assert.deepEqual(browserCommand(URL, 'darwin', {}), ['open', URL]);
  assert.deepEqual(browserCommand(URL, 'win32', {}), ['rundll32', 'url.dll,FileProtocolHandler', URL]);
  assert.deepEqual(browserCommand(URL, 'linux', { DISPLAY: ':0' }), ['xdg-open', URL]);
  assert.deepEqual(browserCommand(URL, 'linux', { WAYLAND_DISPLAY: 'wayland-0' }), ['xdg-open', URL]);
});

test('without a desktop, and for a person at another machine, none is opened', () => {
  assert.equal(browserCommand(URL, 'linux', { DISPLAY: '' }), null);
  for (const platform of ['linux', 'darwin', 'win32'] as const)
    assert.equal(browserCommand(URL, platform, { DISPLAY: ':0', SSH_CONNECTION: '192.0.2.1 1 192.0.2.2 22' }), null);
});

test('no desktop is no failure', async () => {
  assert.equal(await openInBrowser(URL, { SSH_CONNECTION: 'x' }), false);
});
