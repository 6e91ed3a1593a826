/** The doctor's findings about TCP ports for nodes without UDP. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OwnAnswer } from '../../../src/operations/handlers/doctor/examination.ts';
import { examineLending } from '../../../src/operations/handlers/doctor/network.ts';

type Failed = OwnAnswer<'status'>['lent_ports']['failed_addrs'];

function texts(failed_addrs: Failed, listen_addrs: string[] = []): string[] {
  const findings = examineLending({ lent_ports: { listen_addrs, failed_addrs } });
  return findings.map(({ level, code, what, hint }) => `${level} ${code}: ${what} | ${hint}`);
}

test('a TCP port that could not be opened is a warning with its cause and remedy', () => {
  assert.deepEqual(texts([]), []);
  const [taken = '', refused = '', broken = ''] = texts([
    { address: '0.0.0.0:443', trouble: 'in_use' },
    { address: '0.0.0.0:443', trouble: 'not_permitted' },
    { address: '192.0.2.1:443', trouble: 'unusable' },
  ]);
  assert.match(
    taken,
    /^WARN tls_port_in_use: .* at 0\.0\.0\.0:443\/tcp: another program uses it \| .*web server.*tls_listen/,
  );
  assert.match(refused, /^WARN tls_port_not_permitted: .*does not permit ports below 1024 \| .*svcd service install/);
  assert.match(broken, /^WARN tls_port_unusable: .* at 192\.0\.2\.1:443\/tcp.* \| .*log/);
});

test('it is no warning while another TCP port is open', () => {
  const [info = ''] = texts([{ address: '0.0.0.0:443', trouble: 'not_permitted' }], ['0.0.0.0:4121']);
  assert.match(info, /^INFO tls_port_not_permitted: /);
});
