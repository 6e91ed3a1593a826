/** What each kind of network tells the user about the way out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cutOffText, exitText } from '../../../src/foundation/domain/exit.ts';
import { EXITS } from '../../support/exits.ts';

const LOGIN = 'This network wants a login first. Open any website in a browser, and log in.';
const PASSWORD = 'The proxy 10.2.0.1:3128 wants a password. Set HTTPS_PROXY to http://user:password@10.2.0.1:3128.';
const OFF = 'disable_relay excludes TLS. Allow outgoing UDP, or set disable_relay = false.';
const NO_QUIC = 'he network drops QUIC';

/** The line in `svc status`, and the text in errors; null if nothing is wrong. */
const TOLD: Readonly<Record<keyof typeof EXITS, readonly [string, string | null]>> = {
  udp: ['UDP', null],
  'udp-blocked': ['over TLS through helper 203.0.113.10:443, because no node answers over UDP.', null],
  'quic-dropped': [`over TLS through helper 203.0.113.10:443, because t${NO_QUIC}.`, null],
  'lost helper': ['over TLS, because no node answers over UDP.', null],
  'mtu-1200': [
    'over TLS through helper 203.0.113.10:443, because only short UDP packets pass, and QUIC needs an MTU of 1,280 bytes.',
    null,
  ],
  'five-tuple-30s': [
    'over TLS through helper 203.0.113.10:443, because the network drops UDP flows some time after their start.',
    null,
  ],
  'ipv6-only': [
    'over TLS through helper 203.0.113.10:443, because this machine has IPv6 only, and the record network uses IPv4.',
    null,
  ],
  'connect-proxy': [
    'over TLS through helper 203.0.113.10:443, through the proxy 10.2.0.1:3128, because no node answers over UDP.',
    null,
  ],
  inspected: [
    'over TLS through helper 203.0.113.10:443, through the proxy 10.2.0.1:3128, because no node answers over UDP. The network decrypts TLS. Connections between nodes inside stay encrypted.',
    null,
  ],
  searching: [
    'none: no node answers over UDP. A helper is searched over TLS. Try again in a few seconds.',
    'No node answers over UDP. A helper is searched over TLS. Try again in a few seconds.',
  ],
  'relays off': [`none: no node answers over UDP. ${OFF}`, `No node answers over UDP. ${OFF}`],
  'quic-dropped, relays off': [`none: t${NO_QUIC}. ${OFF}`, `T${NO_QUIC}. ${OFF}`],
  'proxy-password': [
    `none: no node answers over UDP. TLS does not work either. ${PASSWORD}`,
    `No node answers over UDP. TLS does not work either. ${PASSWORD}`,
  ],
  portal: [
    `none: no node answers over UDP. TLS does not work either. ${LOGIN}`,
    `No node answers over UDP. TLS does not work either. ${LOGIN}`,
  ],
  'without a helper': [
    'none: no node answers over UDP. No helper can be reached over TLS. Allow outgoing UDP, or TCP port 443.',
    'No node answers over UDP. No helper can be reached over TLS. Allow outgoing UDP, or TCP port 443.',
  ],
};

test('each network has its own text', () => {
  const reported = Object.fromEntries(
    Object.entries(EXITS).map(([name, exit]) => [name, [exitText(exit), cutOffText(exit)]]),
  );
  assert.deepEqual(reported, TOLD);
});
